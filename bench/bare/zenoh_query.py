"""A bare Zenoh query and its reply: `pong ENDPOINT` or `ping ENDPOINT BYTES COUNT`, peers over TCP.

Ping prints the median round trip in ns; pong answers until it is ended.
"""

from __future__ import annotations

import json
import sys
import time

import zenoh

KEY = "bare/service"


def opened(side: str, endpoint: str) -> zenoh.Session:
    config = zenoh.Config()
    config.insert_json5("mode", '"peer"')
    config.insert_json5("scouting/multicast/enabled", "false")
    config.insert_json5(f"{side}/endpoints", json.dumps([endpoint]))
    if side == "connect":
        config.insert_json5("listen/endpoints", "[]")
    return zenoh.open(config)


def pong(endpoint: str) -> None:
    session = opened("listen", endpoint)
    queryable = session.declare_queryable(  # noqa: F841 - lives as long as it is referred to
        KEY, lambda query: query.reply(KEY, query.payload.to_bytes())
    )
    print("ready", flush=True)
    sys.stdin.read()


def ping(endpoint: str, length: int, count: int) -> None:
    session = opened("connect", endpoint)
    payload, times = bytes(length), []
    while len(times) < count:
        begin_ns = time.monotonic_ns()
        for reply in session.get(KEY, payload=payload):
            if reply.ok:
                times.append(time.monotonic_ns() - begin_ns)
    print(sorted(times)[count // 2])
    session.close()


if __name__ == "__main__":
    role, endpoint, *rest = sys.argv[1:]
    {"pong": pong, "ping": ping}[role](endpoint, *map(int, rest))
