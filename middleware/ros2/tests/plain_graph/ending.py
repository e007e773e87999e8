"""The end of the nodes in this folder, which run until their input ends."""

import sys
import threading

from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node


def spin_until_input_ends(*nodes: Node) -> None:
    executor = SingleThreadedExecutor()
    for node in nodes:
        executor.add_node(node)
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    while not over.is_set():
        executor.spin_once(0.1)
