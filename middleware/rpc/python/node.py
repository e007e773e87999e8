"""RPC node: JSON-RPC 2.0 by Flask-JSONRPC under gunicorn, and requests."""

from wattwire_kit import run

run(
    client="calls:client",
    server="answers:server",
    ping="calls:client",
    pong="answers:server",
)
