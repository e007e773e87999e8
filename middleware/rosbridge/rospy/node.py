"""The robot's side: a ROS node that does not know the bridge, with the roles of ros1/python."""

from wattwire_kit import run

if __name__ == "__main__":
    run(
        roles={
            "publisher": "topic:publish",
            "subscriber": "topic:subscribe",
            "ping": "pingpong:ping",
            "pong": "pingpong:pong",
        },
        settings={
            "server": str,
            "encoding": str,
            "wait": str,
            "tcp_nodelay": bool,
            "queue_size": int,
        },
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
        payload_bytes_max=8_388_608,
    )
