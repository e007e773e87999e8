"""A UDP proxy that adds a delay and losses, and logs its actual effects.

It is independent of the kits. `python proxy.py LISTEN TARGET DELAY_MS LOSS SEED LOG` forwards every
datagram from 127.0.0.1:LISTEN to 127.0.0.1:TARGET after DELAY_MS, and drops it with probability
LOSS. At the end of its input, it writes the JSON file LOG: the sequence numbers of dropped and
forwarded payloads, and the actual delay (ns) of each forwarded payload. The delay is measured from
the kernel's time stamp of the arrival to the call that forwards the datagram, so it includes the
wake-up of the proxy.
"""

from __future__ import annotations

import collections
import json
import random
import select
import socket
import struct
import sys
import time
from pathlib import Path

SO_TIMESTAMPNS = 35  # from asm-generic/socket.h; the socket module does not define it
SPIN_NS = 200_000
"""The proxy spins just before a due time, so that the planted delay equals the requested one."""


def main() -> None:
    listen, target, delay_ms, loss, seed, log = sys.argv[1:]
    source = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    source.bind(("127.0.0.1", int(listen)))
    source.setblocking(False)
    source.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    address = ("127.0.0.1", int(target))
    done = forward(source, address, float(delay_ms), float(loss), random.Random(int(seed)))
    Path(log).write_text(json.dumps(done))


def forward(
    source: socket.socket,
    address: tuple[str, int],
    delay_ms: float,
    loss: float,
    rng: random.Random,
) -> dict[str, list[int]]:
    """Forward until standard input ends; return the action for each datagram, in order."""
    delay_ns = round(delay_ms * 1e6)
    waiting: collections.deque[tuple[int, int, bytes]] = collections.deque()
    done: dict[str, list[int]] = {"dropped": [], "forwarded": [], "stayed_ns": []}
    while True:
        due_ns = waiting[0][0] if waiting else None
        timeout_s = None if due_ns is None else max(0, due_ns - SPIN_NS - time.monotonic_ns()) / 1e9
        readable, _, _ = select.select([source, sys.stdin], [], [], timeout_s)
        if source in readable:
            data, arrived_ns = receive(source)
            if rng.random() < loss:
                done["dropped"].append(int.from_bytes(data[:8], "little"))
            else:
                waiting.append((arrived_ns + delay_ns, arrived_ns, data))
        while waiting and waiting[0][0] - time.monotonic_ns() <= SPIN_NS:
            due_ns, arrived_ns, data = waiting.popleft()
            while time.monotonic_ns() < due_ns:
                pass
            sent_ns = time.monotonic_ns()
            source.sendto(data, address)
            done["forwarded"].append(int.from_bytes(data[:8], "little"))
            done["stayed_ns"].append(sent_ns - arrived_ns)
        if sys.stdin in readable and not waiting:
            return done


def receive(source: socket.socket) -> tuple[bytes, int]:
    """Return the next datagram and the monotonic time (ns) of its arrival at this socket."""
    data, ancillary, _, _ = source.recvmsg(65536, socket.CMSG_SPACE(16))
    ((_, _, stamp),) = ancillary
    seconds, nanoseconds = struct.unpack("qq", stamp)
    waited_ns = time.time_ns() - (seconds * 1_000_000_000 + nanoseconds)  # the stamp is wall time
    return data, time.monotonic_ns() - waited_ns


if __name__ == "__main__":
    main()
