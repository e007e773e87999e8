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
        },
        settings={
            "reliability": ("reliable", "best_effort"),
            "history": ("keep_last", "keep_all"),
            "depth": range(1, 2**31),
            "interface": str,
            "domain": range(0, 231),
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
