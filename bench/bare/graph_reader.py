"""Read the delay of each message as `ros2 topic delay` does: graph_reader.py TOPICS SECONDS.

Prints four figures of the window, which begins when all topics have sent a message: the CPU time
(ns), the number of messages, the median delay (ns), and how much longer than the message's time
through the middleware a delay is, in the median (ns).
"""

import statistics
import sys
import time

import rclpy
from rclpy.time import Time
from sensor_msgs.msg import Image

topics, seconds = int(sys.argv[1]), float(sys.argv[2])
rclpy.init()
node = rclpy.create_node("reader")
seen, delays, ways = set(), [], []


def reader(at):
    def read(message, info):
        seen.add(at)
        now = node.get_clock().now()
        stamp = Time.from_msg(message.header.stamp, clock_type=now.clock_type)
        delays.append((now - stamp).nanoseconds)
        ways.append(info)

    return read


for at in range(topics):
    node.create_subscription(Image, f"load/t{at}", reader(at), 1000)
executor = rclpy.executors.SingleThreadedExecutor()
executor.add_node(node)
give_up_s = time.monotonic() + 30
while len(seen) < topics:
    if time.monotonic() > give_up_s:
        sys.exit(f"{len(seen)} of {topics} topics sent a message within 30 s")
    executor.spin_once(timeout_sec=0.1)
begin_cpu_ns, count, end_s = time.process_time_ns(), len(delays), time.monotonic() + seconds
while time.monotonic() < end_s:
    executor.spin_once(timeout_sec=0.1)
cpu_ns = time.process_time_ns() - begin_cpu_ns
delays, ways = delays[count:], ways[count:]
errors = [
    delay - (way["received_timestamp"] - way["source_timestamp"])
    for delay, way in zip(delays, ways, strict=True)
]
print(cpu_ns, len(delays), statistics.median(delays), statistics.median(errors))
