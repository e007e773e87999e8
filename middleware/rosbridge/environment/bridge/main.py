"""A bridge of the rosbridge protocol, version 2, from WebSocket, TCP and UDP to topics of ROS 1.

Usage: main.py --websocket HOST:PORT --tcp HOST:PORT --udp HOST:PORT [--queue-size N]
[--tcp-nodelay true|false]. ROS_MASTER_URI names the master. When the bridge accepts connections, it
prints one line. SIGTERM ends it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from importlib.metadata import version

import rospy
from servers import Servers
from topics import Topics

TRANSPORTS = ("websocket", "tcp", "udp")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    for transport in TRANSPORTS:
        parser.add_argument(f"--{transport}", required=True, metavar="HOST:PORT")
    parser.add_argument("--queue-size", type=int, default=1000)
    parser.add_argument("--tcp-nodelay", choices=("true", "false"), default="false")
    arguments = parser.parse_args()
    rospy.init_node("rosbridge", anonymous=True, argv=[], disable_signals=True)
    asyncio.run(bridge(arguments))
    return 0


async def bridge(arguments: argparse.Namespace) -> None:
    """Open all servers, report that they accept connections, and serve until SIGTERM."""
    topics = Topics(arguments.queue_size, arguments.tcp_nodelay == "true")
    servers = Servers(topics, arguments.queue_size)
    opened = []
    for transport in TRANSPORTS:
        host, _, port = getattr(arguments, transport).rpartition(":")
        opened.append(await getattr(servers, transport)(host, int(port)))
    print(f"rosbridge on websockets {version('websockets')}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    sys.exit(main())
