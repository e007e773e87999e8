"""Plain rclpy nodes with what a graph of a robot should not have. It ends with its input.

Two nodes are named `twin`, and publish on one topic. Two others publish different types on one
topic. Others publish stamps that are zero, of a simulated clock, or of a clock that is a minute
ahead, or messages of our interfaces. A subscription requests more than its publisher offers.
"""

import sys
import time

import rclpy
from ending import spin_until_input_ends
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Temperature
from std_msgs.msg import String

PERIOD_S = 0.02


def stamped(stamp_ns: int) -> Temperature:
    message = Temperature()
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp_ns, 10**9)
    return message


def main() -> None:
    rclpy.init()
    twins = [rclpy.create_node("twin") for _ in range(2)]
    odd = rclpy.create_node("odd")
    publishers = [twin.create_publisher(String, "shared", 10) for twin in twins]
    zero = odd.create_publisher(Temperature, "zero", 10)
    simulated = odd.create_publisher(Temperature, "simulated", 10)
    ahead = odd.create_publisher(Temperature, "ahead", 10)
    latched = odd.create_publisher(
        String, "latched", QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    )
    latched.publish(String(data="once"))
    best_effort = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
    unreliable = odd.create_publisher(String, "unreliable", best_effort)
    odd.create_subscription(String, "unreliable", lambda _: None, 10)
    odd.create_subscription(String, "unpublished", lambda _: None, 10)
    begun_ns = time.monotonic_ns()
    if "own_interface" in sys.argv:
        from wattwire_interfaces.msg import Bytes  # noqa: PLC0415 - not in every environment

        own = odd.create_publisher(Bytes, "own_interface", 10)
        odd.create_timer(PERIOD_S, lambda: own.publish(Bytes()))
        # A participant of DDS cannot have a topic with two types. The first one sorts first.
        odd.create_publisher(Bytes, "two_types", 10)
        context = rclpy.Context()
        rclpy.init(context=context)
        other = rclpy.create_node("other", context=context)
        publishers.append(other.create_publisher(String, "two_types", 10))

    def publish() -> None:
        for publisher in (*publishers, unreliable):
            publisher.publish(String(data="text"))
        zero.publish(stamped(0))
        simulated.publish(stamped(time.monotonic_ns() - begun_ns + 1))
        ahead.publish(stamped(time.time_ns() + 60 * 10**9))

    odd.create_timer(PERIOD_S, publish)
    spin_until_input_ends(*twins, odd)


if __name__ == "__main__":
    main()
