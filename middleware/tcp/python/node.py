"""TCP node: length-prefixed frames, one or two connections for each pair of nodes."""

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
        "tcp_nodelay": bool,
        "tcp_quickack": str,
        "connections": int,
        "writes": int,
        "receive_buffer_bytes": int,
        "send_buffer_bytes": int,
        "bind_address": str,
    },
    capabilities=(
        *("encoding.bytes", "encoding.text", "pacing.kit", "loop.open", "loop.closed"),
        *("reply.echo", "reply.ack", "reply.literal", "literal", "async_client"),
    ),
)
