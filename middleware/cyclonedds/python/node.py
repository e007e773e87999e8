"""The Cyclone DDS cell in Python, on the package cyclonedds."""

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
            "reliability": str,
            "history": str,
            "depth": int,
            "interface": str,
            "multicast": bool,
            "domain": int,
        },
        capabilities=(
            "encoding.bytes",
            "encoding.text",
            "encoding.record",
            "encoding.pointcloud",
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
