"""A bare Zenoh query and its reply: `pong` or `ping ENDPOINT BYTES COUNT`, peers over TCP.

Pong prints its endpoint and answers until it is ended; ping prints the median round trip in ns.
With BARE_TLS = "AUTHORITY CERTIFICATE KEY", paths of PEM files, both use TLS.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time

import zenoh

KEY = "bare/service"
TIMEOUT_S = 2.0
CREDENTIALS = os.environ.get("BARE_TLS", "").split()


def opened(side: str, endpoint: str) -> zenoh.Session:
    config = zenoh.Config()
    config.insert_json5("mode", '"peer"')
    config.insert_json5("scouting/multicast/enabled", "false")
    config.insert_json5(f"{side}/endpoints", json.dumps([endpoint]))
    if side == "connect":
        config.insert_json5("listen/endpoints", "[]")
    if CREDENTIALS:
        authority, certificate, key = CREDENTIALS
        table = {"root_ca_certificate": authority, "enable_mtls": True}
        for end in ("listen", "connect"):
            table |= {f"{end}_certificate": certificate, f"{end}_private_key": key}
        config.insert_json5("transport/link/tls", json.dumps(table))
    return zenoh.open(config)


def free_endpoint() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"{'tls' if CREDENTIALS else 'tcp'}/127.0.0.1:{probe.getsockname()[1]}"


def pong() -> None:
    endpoint = free_endpoint()
    session = opened("listen", endpoint)
    queryable = session.declare_queryable(  # noqa: F841 - lives as long as it is referred to
        KEY, lambda query: query.reply(KEY, query.payload.to_bytes())
    )
    print(endpoint, flush=True)
    sys.stdin.read()


def ping(endpoint: str, length: int, count: int) -> None:
    session = opened("connect", endpoint)
    key = session.declare_keyexpr(KEY)
    payload, times = bytes(length), []
    while len(times) < count:
        begin_ns = time.monotonic_ns()
        try:
            # There is only one reply, so the end of the query is not awaited.
            reply = session.get(key, payload=payload, timeout=TIMEOUT_S).recv()
        except zenoh.ZError:  # no reply: the queryable may not be discovered yet
            time.sleep(0.005)
            continue
        if reply.ok is not None and len(reply.ok.payload.to_bytes()) == length:
            times.append(time.monotonic_ns() - begin_ns)
    print(sorted(times)[count // 2])
    session.close()


if __name__ == "__main__":
    role, *rest = sys.argv[1:]
    if role == "pong":
        pong()
    else:
        ping(rest[0], *map(int, rest[1:]))
