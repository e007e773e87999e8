"""A plain rclpy node that passes each message of a topic on after 3 ms of work.

Usage: relay.py FILE. It ends with its input, and writes how many messages it has passed on.
"""

import json
import sys
import threading
import time

import rclpy
from rclpy.executors import SingleThreadedExecutor
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
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    while not over.is_set():
        executor.spin_once(0.1)
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump({"count": count}, file)


if __name__ == "__main__":
    main()
