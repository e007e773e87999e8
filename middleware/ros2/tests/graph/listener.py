"""Print the age of each message in nanoseconds, as a newcomer would write it."""

import contextlib
import time

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from std_msgs.msg import String


class Listener(Node):
    def __init__(self) -> None:
        super().__init__("listener")
        self.ages_ns: list[int] = []
        self.create_subscription(String, "relayed", self.hear, 10)

    def hear(self, message: String) -> None:
        self.ages_ns.append(time.monotonic_ns() - int(message.data))


rclpy.init()
node = Listener()
with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
    rclpy.spin(node)
print("listener ages_ns", *node.ages_ns, flush=True)
