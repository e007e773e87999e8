"""The ROS 1 cell in Python, on rospy as its tutorials show it."""

from wattwire_kit import run

if __name__ == "__main__":
    run(
        publisher="topic:publish",
        subscriber="topic:subscribe",
        ping="pingpong:ping",
        pong="pingpong:pong",
        source="topic:publish",
        relay="pipeline:relay",
        sink="topic:subscribe",
    )
