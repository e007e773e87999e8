"""A bridge of the rosbridge protocol, version 2: JSON over WebSocket to topics of ROS 1.

Usage: main.py --websocket HOST:PORT [--queue-size N] [--tcp-nodelay true|false]. ROS_MASTER_URI
names the master. When the bridge accepts connections, it prints one line. SIGTERM ends it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterable, Awaitable, Callable
from importlib.metadata import version

import rospy
from outbox import Outbox
from protocol import Client
from topics import Topics
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

MESSAGE_BYTES_MAX = 1 << 24
"""Longest message of a client. The library's default of 1 MiB is too short for large payloads."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--websocket", required=True, metavar="HOST:PORT")
    parser.add_argument("--queue-size", type=int, default=1000)
    parser.add_argument("--tcp-nodelay", choices=("true", "false"), default="false")
    arguments = parser.parse_args()
    rospy.init_node("rosbridge", anonymous=True, argv=[], disable_signals=True)
    asyncio.run(bridge(arguments))
    return 0


async def bridge(arguments: argparse.Namespace) -> None:
    topics = Topics(arguments.queue_size, arguments.tcp_nodelay == "true")
    server = await websocket_server(arguments.websocket, topics, arguments.queue_size)
    print(f"rosbridge on websockets {version('websockets')}", flush=True)
    await server.wait_closed()


async def websocket_server(endpoint: str, topics: Topics, capacity: int) -> Server:
    """Return a server that accepts connections. It does not compress, like rosbridge_suite."""

    async def on_connection(connection: ServerConnection) -> None:
        await converse(topics, capacity, connection, connection.send)

    host, _, port = endpoint.rpartition(":")
    return await serve(on_connection, host, int(port), compression=None, max_size=MESSAGE_BYTES_MAX)


async def converse(
    topics: Topics,
    capacity: int,
    messages: AsyncIterable[str | bytes],
    send: Callable[[str], Awaitable[None]],
) -> None:
    """Execute the operations of one client until its connection ends."""
    outbox = Outbox(capacity)
    client = Client(topics, outbox)
    draining = asyncio.create_task(outbox.drain(send))
    try:
        async for message in messages:
            await client.handle(message)
    except ConnectionClosed:
        pass  # without a closing handshake, such as a client that was killed
    finally:
        draining.cancel()
        await asyncio.gather(draining, return_exceptions=True)
        await client.close()


if __name__ == "__main__":
    sys.exit(main())
