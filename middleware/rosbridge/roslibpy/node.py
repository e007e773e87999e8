"""A client of the bridge in Python, on roslibpy."""

from wattwire_kit import run

if __name__ == "__main__":
    run(
        publisher="topic:publish",
        subscriber="topic:subscribe",
        ping="pingpong:ping",
        pong="pingpong:pong",
    )
