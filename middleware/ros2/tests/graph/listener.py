"""Print the age of each message in nanoseconds, as a newcomer would write it."""

import contextlib
import time

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from std_msgs.msg import String

SILENCE_S = 3.0


class Listener(Node):
    def __init__(self) -> None:
        super().__init__("listener")
        self.ages_ns: list[int] = []
        self.create_subscription(String, "relayed", self.hear, 10)
        self.last_s = 0.0
        self.create_timer(0.5, self.end_after_silence)

    def end_after_silence(self) -> None:
        if self.last_s and time.monotonic() > self.last_s + SILENCE_S:
            raise SystemExit

    def hear(self, message: String) -> None:
        self.ages_ns.append(time.monotonic_ns() - int(message.data))
        self.last_s = time.monotonic()


rclpy.init()
node = Listener()
with contextlib.suppress(SystemExit, KeyboardInterrupt, ExternalShutdownException):
    rclpy.spin(node)
print("listener ages_ns " + " ".join(map(str, node.ages_ns)), flush=True)
