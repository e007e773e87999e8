"""Loopback node: datagrams of AF_UNIX between processes of one host."""

from wattwire_kit import run

run(
    roles={
        "publisher": "topic:publish",
        "subscriber": "topic:subscribe",
        "client": "service:client",
        "server": "service:server",
        "ping": "service:client",
        "pong": "service:server",
        "action_client": "action:client",
        "action_server": "action:server",
        "source": "topic:publish",
        "relay": "pipeline:relay",
        "sink": "topic:subscribe",
    },
    settings={
        "fault_role": str,
        "die_at": str,
        "hang_at": str,
        "drop_every": int,
        "drop_counters": str,
        "duplicate_every": int,
        "delay_us": int,
    },
    capabilities=(
        *("encoding.bytes", "encoding.text", "pacing.kit", "pacing.native", "loop.open"),
        *("loop.closed", "reply.echo", "reply.ack", "reply.literal", "literal"),
        *("encoding.record", "async_client"),
    ),
    payload_bytes_max=196_608,
    record_bytes_max=57_344,
)
