"""A bare request and reply through the bridge, with websockets and the JSON of the standard
library: `pong MASTER WEBSOCKET …` or `ping WEBSOCKET BYTES COUNT`.

Pong prints the endpoint for ping and answers until it is killed; ping prints the median round trip
in ns.
"""

from __future__ import annotations

import base64
import json
import sys
import time

from websockets.sync.client import ClientConnection, connect

TYPE = "std_msgs/UInt8MultiArray"
TIMEOUT_S, CONNECTED_S = 2.0, 20.0


def open_topics(connection: ClientConnection, outgoing: str, incoming: str) -> None:
    for fields in (
        {"op": "advertise", "topic": outgoing, "type": TYPE},
        {"op": "subscribe", "topic": incoming, "type": TYPE},
    ):
        connection.send(json.dumps(fields))


def publish(connection: ClientConnection, topic: str, data: bytes) -> None:
    value = base64.b64encode(data).decode("ascii")
    connection.send(json.dumps({"op": "publish", "topic": topic, "msg": {"data": value}}))


def received(connection: ClientConnection, timeout_s: float | None = None) -> bytes:
    """Return the payload of the next message."""
    return base64.b64decode(json.loads(connection.recv(timeout_s))["msg"]["data"])


def pong(connection: ClientConnection, bridge: str) -> None:
    open_topics(connection, "/bare/reply", "/bare/request")
    print(bridge, flush=True)
    while True:
        publish(connection, "/bare/reply", received(connection))


def ping(connection: ClientConnection, length: int, count: int) -> None:
    open_topics(connection, "/bare/request", "/bare/reply")
    # Both directions are connected when the reply to a first request arrives.
    deadline_s = time.monotonic() + CONNECTED_S
    while True:
        publish(connection, "/bare/request", bytes(length))
        try:
            received(connection, 0.5)
            break
        except TimeoutError:
            if time.monotonic() > deadline_s:
                sys.exit(f"no reply within {CONNECTED_S:g} s")
    times = []
    for number in range(1, count + 1):
        data = number.to_bytes(8, "little") + bytes(length - 8)
        begin_ns = time.monotonic_ns()
        publish(connection, "/bare/request", data)
        reply = received(connection, TIMEOUT_S)
        while reply == bytes(length):  # to another of the first requests
            reply = received(connection, TIMEOUT_S)
        if reply != data:
            sys.exit(f"another reply than that to call {number}")
        times.append(time.monotonic_ns() - begin_ns)
    print(sorted(times)[count // 2])


if __name__ == "__main__":
    role, *rest = sys.argv[1:]
    bridge = rest[1] if role == "pong" else rest[0]
    with connect(f"ws://{bridge}", compression=None) as connection:
        pong(connection, bridge) if role == "pong" else ping(connection, *map(int, rest[1:]))
