"""Publish on many topics from one rclpy node: graph_talker.py TOPICS BYTES HZ.

It runs until it is killed.
"""

import sys

import rclpy
from sensor_msgs.msg import Image

topics, size, hz = (int(word) for word in sys.argv[1:])
rclpy.init()
node = rclpy.create_node("talker")
message = Image(data=bytes(size))
publishers = [node.create_publisher(Image, f"load/t{at}", 10) for at in range(topics)]


def publish():
    message.header.stamp = node.get_clock().now().to_msg()
    for publisher in publishers:
        publisher.publish(message)


node.create_timer(1 / hz, publish)
print("ready", flush=True)
rclpy.spin(node)
