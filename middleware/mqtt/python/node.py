"""The MQTT cell in Python, on paho-mqtt as its documentation shows it."""

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
