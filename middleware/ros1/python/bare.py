"""A bare rospy request and reply over two topics: `pong MASTER` or `ping MASTER BYTES COUNT`.

Pong prints the endpoint for ping and answers until it is killed; ping prints the median round trip
in ns.
"""

from __future__ import annotations

import os
import queue
import sys
import tempfile
import time
from collections.abc import Callable

import rospy
from std_msgs.msg import UInt8MultiArray

QUEUE_SIZE = 1000
TIMEOUT_S, CONNECTED_S = 2.0, 20.0


def publisher_and_subscriber(
    outgoing: str, incoming: str, on_message: Callable[[rospy.Publisher, UInt8MultiArray], None]
) -> rospy.Publisher:
    """Return a publisher of `outgoing`; `on_message` receives the messages of `incoming`."""
    rospy.init_node(f"bare_{os.getpid()}", argv=[], disable_signals=True)
    publisher = rospy.Publisher(outgoing, UInt8MultiArray, queue_size=QUEUE_SIZE)
    rospy.Subscriber(
        incoming, UInt8MultiArray, lambda message: on_message(publisher, message),
        queue_size=QUEUE_SIZE,
    )  # fmt: skip
    return publisher


def pong(master: str) -> None:
    publisher_and_subscriber("/bare/reply", "/bare/request", rospy.Publisher.publish)
    print(master, flush=True)
    sys.stdin.read()


def ping(length: int, count: int) -> None:
    replies: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    publisher = publisher_and_subscriber(
        "/bare/request", "/bare/reply", lambda _, reply: replies.put(reply.data)
    )
    request, times = UInt8MultiArray(data=bytes(length)), []
    # Both directions are connected when the reply to a first request arrives.
    deadline_s = time.monotonic() + CONNECTED_S
    while replies.empty():
        if time.monotonic() > deadline_s:
            sys.exit(f"no reply within {CONNECTED_S:g} s")
        publisher.publish(request)
        time.sleep(0.1)
    for number in range(1, count + 1):
        request.data = number.to_bytes(8, "little") + bytes(length - 8)
        begin_ns = time.monotonic_ns()
        publisher.publish(request)
        reply = replies.get(timeout=TIMEOUT_S)
        while reply == bytes(length):  # to another of the first requests
            reply = replies.get(timeout=TIMEOUT_S)
        if reply != request.data:
            sys.exit(f"another reply than that to call {number}")
        times.append(time.monotonic_ns() - begin_ns)
    print(sorted(times)[count // 2])


if __name__ == "__main__":
    role, master, *rest = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(
            ROS_MASTER_URI=f"http://{master}/", ROS_IP="127.0.0.1", ROS_HOME=folder,
            ROS_LOG_DIR=folder,
        )  # fmt: skip
        pong(master) if role == "pong" else ping(*map(int, rest))
