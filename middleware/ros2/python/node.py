"""The ROS 2 cell in Python, on rclpy as its tutorials show it."""

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
            "action_server": "action_server:serve",
            "action_client": "action_client:perform",
        },
        settings={
            "reliability": ("reliable", "best_effort"),
            "history": ("keep_last", "keep_all"),
            "depth": range(1, 2**31),
            "durability": ("volatile", "transient_local"),
            "rmw": str,
            "rmw_profile": str,
            "transports": ("default", "udp"),
            "domain": range(0, 102),
            "discovery": ("localhost", "subnet"),
            "late_feedback": ("keep", "drop"),
        },
        capabilities=(
            "encoding.bytes",
            "encoding.text",
            "pacing.kit",
            "pacing.native",
            "loop.open",
            "loop.closed",
            "reply.echo",
            "reply.ack",
            "reply.literal",
            "literal",
            "async_client",
        ),
    )
