"""Pass messages on after 3 ms of work, as a newcomer would write it."""

import contextlib
import time

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from std_msgs.msg import String

WORK_NS = 3_000_000
SILENCE_S = 2.0


class Relay(Node):
    def __init__(self) -> None:
        super().__init__("relay")
        self.passed = 0
        self.publisher = self.create_publisher(String, "relayed", 10)
        self.last_s = 0.0
        self.create_timer(0.5, self.end_after_silence)
        # The talker waits for the relay, which waits for the listener: no message is too early.
        self.beginning = self.create_timer(0.02, self.begin)

    def begin(self) -> None:
        if self.publisher.get_subscription_count() > 0:
            self.beginning.cancel()
            self.create_subscription(String, "chatter", self.pass_on, 10)

    def end_after_silence(self) -> None:
        if self.last_s and time.monotonic() > self.last_s + SILENCE_S:
            raise SystemExit

    def pass_on(self, message: String) -> None:
        end_ns = time.monotonic_ns() + WORK_NS
        while time.monotonic_ns() < end_ns:
            pass
        self.passed += 1
        self.last_s = time.monotonic()
        self.publisher.publish(message)


rclpy.init()
node = Relay()
with contextlib.suppress(SystemExit, KeyboardInterrupt, ExternalShutdownException):
    rclpy.spin(node)
print(f"relay passed {node.passed}", flush=True)
