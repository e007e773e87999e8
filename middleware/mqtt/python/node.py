"""The MQTT cell in Python, on paho-mqtt as its documentation shows it."""

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
        settings={"qos": int, "tcp_nodelay": bool, "broker_tcp_nodelay": bool},
        capabilities=(
            "encoding.bytes",
            "encoding.text",
            "pacing.kit",
            "loop.open",
            "loop.closed",
            "reply.echo",
            "reply.ack",
            "reply.literal",
            "literal",
        ),
    )
