"""RPC node: JSON-RPC 2.0 by Flask-JSONRPC under gunicorn, and requests."""

from wattwire_kit import run

run(
    roles={
        "client": "calls:client",
        "server": "answers:server",
        "ping": "calls:client",
        "pong": "answers:server",
    },
    settings={"keep_alive": str, "tcp_nodelay": str, "tls": bool, "server_workers": int},
    capabilities=(
        *("encoding.text", "encoding.record", "pacing.kit", "loop.open", "loop.closed"),
        *("reply.echo", "reply.ack", "reply.literal", "literal", "async_client"),
    ),
    payload_bytes_max=16_777_216,
    record_bytes_max=4_194_304,
    allowed={"tcp_nodelay": ("default", "on")},
)
