"""The ROS 1 cell in Python, on rospy as its tutorials show it."""

from wattwire_kit import run

if __name__ == "__main__":
    run(
        roles={
            "publisher": "topic:publish",
            "subscriber": "topic:subscribe",
            "ping": "pingpong:ping",
            "pong": "pingpong:pong",
            "source": "topic:publish",
            "relay": "pipeline:relay",
            "sink": "topic:subscribe",
        },
        settings={"wait": str, "transport": str, "tcp_nodelay": bool, "queue_size": int},
        allowed={"transport": ("tcp",)},
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
