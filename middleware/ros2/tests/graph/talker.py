"""Publish a number of messages at 50 Hz, with the time of each, as a newcomer would write it."""

import contextlib
import sys
import time

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from std_msgs.msg import String


class Talker(Node):
    def __init__(self, count: int) -> None:
        super().__init__("talker")
        self.left, self.sent = count, 0
        self.publisher = self.create_publisher(String, "chatter", 10)
        self.timer = self.create_timer(0.02, self.tick)

    def tick(self) -> None:
        if self.publisher.get_subscription_count() == 0:
            return
        if self.left == 0:
            raise SystemExit
        self.left -= 1
        self.sent += 1
        message = String()
        message.data = str(time.monotonic_ns())  # the last statement before the publication
        self.publisher.publish(message)


rclpy.init()
node = Talker(int(sys.argv[1]))
with contextlib.suppress(SystemExit, KeyboardInterrupt, ExternalShutdownException):
    rclpy.spin(node)
print(f"talker sent {node.sent}", flush=True)
