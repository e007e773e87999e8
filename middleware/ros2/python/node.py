"""The ROS 2 cell in Python, on rclpy as its tutorials show it."""

from wattwire_kit import run

if __name__ == "__main__":
    run(
        publisher="topic:publish",
        subscriber="topic:subscribe",
        server="service:serve",
        client="service:call",
        pong="service:serve",
        ping="service:call",
        action_server="action_server:serve",
        action_client="action_client:perform",
        source="topic:publish",
        relay="pipeline:relay",
        sink="topic:subscribe",
        member="members:member",
    )
