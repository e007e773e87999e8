"""The bare Zenoh query of bare.py with the contract's work per message; same command line."""

from __future__ import annotations

import sys
import time
from time import monotonic_ns

import zenoh
from bare import KEY, TIMEOUT_S, free_endpoint, opened
from contract_work import UNKNOWN_NS, Work, watch_input


def pong() -> None:
    work = Work()

    def on_query(query: zenoh.Query) -> None:
        request = query.payload.to_bytes()
        begin_ns = monotonic_ns()
        seq = work.checked(request)
        query.reply(KEY, request)
        work.record(seq, UNKNOWN_NS, begin_ns, monotonic_ns())

    endpoint = free_endpoint()
    session = opened("listen", endpoint)
    queryable = session.declare_queryable(KEY, on_query)  # noqa: F841 - lives while referenced
    print(endpoint, flush=True)
    sys.stdin.read()


def ping(endpoint: str, length: int, count: int) -> None:
    watch_input()
    session = opened("connect", endpoint)
    key = session.declare_keyexpr(KEY)
    work = Work(length)
    seq = 0
    while seq < count:
        begin_ns = monotonic_ns()
        payload = work.stamped(seq, begin_ns)
        try:
            reply = session.get(key, payload=payload, timeout=TIMEOUT_S).recv()
        except zenoh.ZError:  # no reply: the queryable may not be discovered yet
            time.sleep(0.005)
            continue
        if reply.ok is None:
            continue
        answer = reply.ok.payload.to_bytes()
        end_ns = monotonic_ns()
        if work.checked(answer) == seq:
            work.record(seq, begin_ns, begin_ns, end_ns)
            seq += 1
    print(work.median_ns(count))
    session.close()


if __name__ == "__main__":
    role, *rest = sys.argv[1:]
    if role == "pong":
        pong()
    else:
        ping(rest[0], *map(int, rest[1:]))
