"""The robot's side: a ROS node that does not know the bridge, with the roles of ros1/python."""

from wattwire_kit import run

if __name__ == "__main__":
    run(
        publisher="topic:publish",
        subscriber="topic:subscribe",
        ping="pingpong:ping",
        pong="pingpong:pong",
    )
