"""The bare pair of Cyclone DDS topics of bare.py with the contract's work; same command line."""

import os
import sys
import threading
from time import monotonic_ns

from bare import CLIENT, TIMEOUT_NS, Bytes, BytesCall, Call, Side, free_domain
from contract_work import UNKNOWN_NS, Work, watch_input


def pong() -> None:
    work = Work()
    domain = free_domain()
    side = Side(domain, "bare_reply", "bare_request")
    print(domain, flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    while True:
        for request in side.take(TIMEOUT_NS):
            data = bytes(request.body.data)
            begin_ns = monotonic_ns()
            seq = work.checked(data)
            side.writer.write(BytesCall(request.call, Bytes(data)))
            work.record(seq, UNKNOWN_NS, begin_ns, monotonic_ns())


def answered(side: Side, work: Work, number: int, timeout_ns: int) -> bool:
    """Return whether the reply to this call arrived in time, and record the call."""
    begin_ns = monotonic_ns()
    deadline_ns = begin_ns + timeout_ns
    payload = work.stamped(number, begin_ns)
    side.writer.write(BytesCall(Call(CLIENT, number), Bytes(payload)))
    while (left_ns := deadline_ns - monotonic_ns()) > 0:
        for reply in side.take(left_ns):
            if reply.call.client == CLIENT and reply.call.number == number:
                answer = bytes(reply.body.data)
                end_ns = monotonic_ns()
                if work.checked(answer) != number:
                    return False
                work.record(number, begin_ns, begin_ns, end_ns)
                return True
    return False


def ping(domain: int, length: int, count: int) -> None:
    watch_input()
    side = Side(domain, "bare_request", "bare_reply")
    work = Work(length)
    # The other side does not answer until it has discovered this side.
    if not any(answered(side, work, number, TIMEOUT_NS // 20) for number in range(200)):
        sys.exit("no reply to the first call")
    for number in range(1000, 1000 + count):
        if not answered(side, work, number, TIMEOUT_NS):
            sys.exit(f"no reply to call {number - 1000} in {TIMEOUT_NS / 1e9:g} s")
    print(work.median_ns(count))


if __name__ == "__main__":
    role, *rest = sys.argv[1:]
    {"pong": pong, "ping": ping}[role](*map(int, rest))
