"""The Cyclone DDS cell in Python, on the package cyclonedds."""

from wattwire_kit import run

if __name__ == "__main__":
    run(
        publisher="topic:publish",
        subscriber="topic:subscribe",
        server="service:serve",
        client="service:call",
        pong="service:serve",
        ping="service:call",
        source="topic:publish",
        relay="pipeline:relay",
        sink="topic:subscribe",
    )
