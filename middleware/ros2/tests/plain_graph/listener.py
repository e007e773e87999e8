"""A plain rclpy node that writes the stamps of the messages that it received, and their times.

Usage: listener.py FILE [reliable|best_effort]. It ends with its input.
"""

import json
import sys
import time

import rclpy
from ending import spin_until_input_ends
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Image


def main() -> None:
    reliability = sys.argv[2] if len(sys.argv) > 2 else "reliable"
    rclpy.init()
    node = rclpy.create_node("listener")
    received: list[tuple[int, int]] = []

    def note(message: Image) -> None:
        stamp = message.header.stamp
        received.append((stamp.sec * 10**9 + stamp.nanosec, time.time_ns()))

    qos = QoSProfile(depth=10, reliability=ReliabilityPolicy[reliability.upper()])
    node.create_subscription(Image, "relayed", note, qos)
    spin_until_input_ends(node)
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(received, file)


if __name__ == "__main__":
    main()
