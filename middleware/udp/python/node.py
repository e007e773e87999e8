"""UDP node: one datagram per message, blocking sockets."""

from wattwire_kit import run

run(
    roles={
        "publisher": "topic:publish",
        "subscriber": "topic:subscribe",
        "client": "service:client",
        "server": "service:server",
        "ping": "service:client",
        "pong": "service:server",
        "source": "topic:publish",
        "relay": "pipeline:relay",
        "sink": "topic:subscribe",
    },
    settings={
        "receive_buffer_bytes": int,
        "send_buffer_bytes": int,
        "bind_address": str,
        "bind_port": int,
        "endpoint_override": str,
    },
    capabilities=(
        *("encoding.bytes", "encoding.text", "pacing.kit", "loop.open", "loop.closed"),
        *("reply.echo", "reply.ack", "reply.literal", "literal"),
        "async_client",
    ),
    payload_bytes_max=65_507,
)
