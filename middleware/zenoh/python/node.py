"""The Zenoh cell in Python, on eclipse-zenoh as its documentation shows it."""

from wattwire_kit import run

if __name__ == "__main__":
    run(
        roles={
            "publisher": "topic:publish",
            "subscriber": "topic:subscribe",
            "server": "service:serve",
            "client": "service:call",
            "pong": "service:serve",
            "ping": "service:call",
            "source": "topic:publish",
            "relay": "pipeline:relay",
            "sink": "topic:subscribe",
        },
        settings={
            "via": str,
            "transport": str,
            "shared_memory": bool,
            "batching": bool,
            "express": bool,
            "congestion_control": str,
            "reliability": str,
            "scouting": bool,
        },
        capabilities=(
            "encoding.bytes",
            "encoding.text",
            "encoding.record",
            "pacing.kit",
            "loop.open",
            "loop.closed",
            "reply.echo",
            "reply.ack",
            "reply.literal",
            "literal",
            "async_client",
        ),
    )
