"""Program inside a host's network namespace: it sends and receives numbered UDP frames.

It uses only the standard library and runs as a script, because it must start quickly. It reads one
plan as a JSON line, acts until the line "end", prints its observations as a JSON line, and ends.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import socket
import struct
import sys
import threading
import time
from typing import Any

SIOCSARP = 0x8955
PERMANENT = 0x02 | 0x04
SO_RCVBUFFORCE = 33
BUFFER_BYTES = 64 << 20
PORT = 47_000
MARK = struct.Struct("<Q")
WATCH_GAP_NS = 2_000_000
PRIORITY = 45
"""Above the emulator's priority, so that the watcher does not report the emulator as a stall."""


def main() -> None:
    print("ready", flush=True)
    plan: dict[str, Any] = json.loads(sys.stdin.readline())  # waits: the end of its input
    observations = watch_stalls(plan) if "cpu" in plan else exchange(plan)
    print(json.dumps(observations), flush=True)


def exchange(plan: dict[str, Any]) -> list[int]:
    """Send the planned frames and return the marks of all received frames."""
    set_neighbour(plan)
    endpoint = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    endpoint.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
    endpoint.bind((plan["address"], PORT))
    received: list[int] = []

    def receive() -> None:
        while True:
            received.append(MARK.unpack(endpoint.recv(2048)[-MARK.size :])[0])

    threading.Thread(target=receive, daemon=True).start()
    padding = bytes(plan["payload_bytes"] - MARK.size)
    for number in range(plan["count"]):
        wait_until(plan["start_ns"] + number * plan["gap_ns"])
        mark = MARK.pack(plan["first_mark"] + number)
        endpoint.sendto(padding + mark, (plan["peer"], PORT))
    sys.stdin.readline()  # waits: the end of its input
    return list(received)


def wait_until(at_ns: int) -> None:
    while (left_ns := at_ns - time.monotonic_ns()) > 0:
        time.sleep(left_ns / 1e9)


def set_neighbour(plan: dict[str, Any]) -> None:
    """Make the peer's hardware address known, because the link could lose the question for it."""
    address = struct.pack("=HH4s8x", socket.AF_INET, 0, socket.inet_aton(plan["peer"]))
    hardware = struct.pack("=H6s8x", 1, bytes.fromhex(plan["peer_hardware"]))
    device = plan["device"].encode()
    request = struct.pack("=16s16si16s16s", address, hardware, PERMANENT, b"", device)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSARP, request)


def watch_stalls(plan: dict[str, Any]) -> list[list[int]]:
    """Wake at regular times on one CPU; return [due, awake] in ns for each late awakening."""
    os.sched_setaffinity(0, {plan["cpu"]})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    stalls = []
    due_ns = time.monotonic_ns()
    while not select.select([sys.stdin], [], [], 0)[0]:
        due_ns += WATCH_GAP_NS
        wait_until(due_ns)
        awake_ns = time.monotonic_ns()
        if awake_ns - due_ns > plan["stall_ns"]:
            stalls.append([due_ns, awake_ns])
            due_ns = awake_ns
    return stalls


if __name__ == "__main__":
    main()
