"""A plain rclpy node that publishes stamped messages, and writes the stamps that it has sent.

Usage: talker.py FILE [HZ] [BYTES] [reliable|best_effort] [TOPIC]. It ends with its input.
"""

import json
import sys
import time

import rclpy
from ending import spin_until_input_ends
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Image


def main() -> None:
    path, hz, size, reliability, topic = [
        *sys.argv[1:], *["talker.json", "50", "0", "reliable", "chatter"][len(sys.argv) - 1 :]
    ]  # fmt: skip
    rclpy.init()
    node = rclpy.create_node("talker")
    qos = QoSProfile(depth=10, reliability=ReliabilityPolicy[reliability.upper()])
    publisher = node.create_publisher(Image, topic, qos)
    message = Image()
    message.data = bytes(int(size))
    sent: list[tuple[int, int]] = []

    def publish() -> None:
        stamp_ns = time.time_ns()
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp_ns, 10**9)
        sent.append((stamp_ns, time.monotonic_ns()))
        publisher.publish(message)

    node.create_timer(1 / float(hz), publish)
    spin_until_input_ends(node)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(sent, file)


if __name__ == "__main__":
    main()
