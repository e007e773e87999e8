"""gRPC node: grpcio, its thread pool server and its stubs."""

from wattwire_kit import run

run(
    roles={
        "client": "calls:client",
        "server": "answers:server",
        "ping": "calls:client",
        "pong": "answers:server",
    },
    settings={"keep_alive": str, "tls": bool, "server_workers": int},
    capabilities=(
        *("encoding.bytes", "encoding.text", "encoding.record", "pacing.kit", "loop.open"),
        *("loop.closed", "reply.echo", "reply.ack", "reply.literal", "literal", "async_client"),
    ),
    payload_bytes_max=4_000_000,
    record_bytes_max=3_000_000,
)
