"""A plain rclpy node that passes each message of a topic on after 3 ms of work.

Usage: relay.py FILE. It ends with its input, and writes how many messages it has passed on.
"""

import json
import sys
import time

import rclpy
from ending import spin_until_input_ends
from sensor_msgs.msg import Image

WORK_S = 0.003


def main() -> None:
    rclpy.init()
    node = rclpy.create_node("relay")
    publisher = node.create_publisher(Image, "relayed", 10)
    count = 0

    def pass_on(message: Image) -> None:
        nonlocal count
        end_s = time.perf_counter() + WORK_S
        while time.perf_counter() < end_s:
            pass
        count += 1
        publisher.publish(message)

    node.create_subscription(Image, "chatter", pass_on, 10)
    spin_until_input_ends(node)
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump({"count": count}, file)


if __name__ == "__main__":
    main()
