"""REST node: Flask under gunicorn, and requests."""

from wattwire_kit import run

run(
    client="calls:client",
    server="answers:server",
    ping="calls:client",
    pong="answers:server",
)
