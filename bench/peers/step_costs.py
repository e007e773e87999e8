"""Show where a kit's time goes: its steps in Python, and the CPU time of all threads per call.

A step is measured with warm caches (repeated at once) and with cold caches (after a copy of 6 MB,
which evicts the step's code and data). In a round trip, other threads and the kernel run between
two steps of a node, so its steps cost a value between both.
"""

from __future__ import annotations

import contextlib
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from bench.nodes import Bench
from bench.pairs import BROKEN, lose_pair
from bench.peers import libraries
from contract.conformance.cell import CellUnderTest
from contract.conformance.group import Group, Member
from contract.conformance.leftovers.watchdog import WATCHDOG
from contract.conformance.spec import base_spec
from wattwire.model.deployment import PATTERNS
from wattwire.rig.bare_clients import HANG_S, bare_argv, bare_server

KIT = Path(__file__).resolve().parents[2] / "languages" / "python" / "kit"
BYTES = libraries.BYTES
EVICTING_BYTES = 6_000_000
REPEATS = {"warm": 5000, "cold": 400}
CALLS = 25_000
"""Calls of a client whose threads are measured: more than the two times below."""
ROLES = PATTERNS["pingpong"].path
SETTLE_S, SAMPLE_S = 0.7, 1.0


class Step(NamedTuple):
    """A step of a side, and its median duration (ns) with warm and with cold caches."""

    side: str
    name: str
    warm_ns: float
    cold_ns: float


class _SilentDialogue:
    """A dialogue whose window has begun and never ends."""

    start_ns, stop_ns = 1, None

    def __init__(self) -> None:
        self.go_or_stop, self.stop = threading.Event(), threading.Event()
        self.go_or_stop.set()

    def line(self, *_: object) -> None:
        """Discard a line."""


class _EnoughError(Exception):
    """Ends the calls of a client."""


def python_steps(workbench: Bench) -> list[Step]:
    """Return the steps of the Python kit per call of a ping-pong, and the contract's least work."""
    sys.path[:0] = [str(KIT), str(libraries.CONTRACT_WORK)]
    from contract_work import Work  # noqa: PLC0415 - found only in this path
    from wattwire_kit.kit import Kit  # noqa: PLC0415
    from wattwire_kit.recorder import pack_record  # noqa: PLC0415

    cell = workbench.cell("loopback/python")
    assert cell is not None
    kits = {}
    for role, node, peer in (("ping", 1, 2), ("pong", 2, 1)):
        spec = base_spec(cell, "pingpong", role) | {
            "node": node, "peers.nodes": [peer], "loop": "closed", "count": 10**9, "duration_ns": 0,
            "verify": "header", "payload.bytes": BYTES, "record.capacity": 50_000,
            "timeout_ns": 10**10,
        }  # fmt: skip
        kits[role] = Kit(spec, _SilentDialogue(), 0, tempfile.gettempdir())
    ping, pong = kits["ping"], kits["pong"]
    payload, replies, records = ping._payload, ping._replies, ping._recorder
    schedule = ping._schedule
    schedule.start(1)
    pong.wait_go()
    seq = 1 << 48 | 5
    payload.stamp(seq, 7)
    request = bytes(payload.buffer)
    pong.serve(request)

    def serve() -> None:
        pong.serve(request)
        pong.served()

    def record() -> None:
        place = next(records.places)
        if place < records.end:
            pack_record(records.data, place, seq, 1, 2, 3, BYTES, 2, 1, 0)

    client, server = Work(BYTES), Work(BYTES)
    fair_request = client.stamped(seq, 7)

    def fair_client() -> None:
        end_ns = time.monotonic_ns()
        if client.checked(fair_request) == seq:
            client.record(seq, 1, 1, end_ns)
        client.stamped(seq, time.monotonic_ns())

    def fair_server() -> None:
        begin_ns = time.monotonic_ns()
        server.record(server.checked(fair_request), 1, begin_ns, time.monotonic_ns())

    timed = {
        ("client", "clock read (1 of 2)"): time.monotonic_ns,
        ("client", "next message of the schedule"): lambda: schedule.take(5),
        ("client", "stamp of the payload"): lambda: payload.stamp(seq, 7),
        ("client", "check of the reply"): lambda: replies.is_due(seq, request),
        ("client", "record"): record,
        ("client", "the contract's work alone (contract_work.py)"): fair_client,
        ("server", "clock read (1 of 2)"): time.monotonic_ns,
        ("server", "check and record: all of the kit's work"): serve,
        ("server", "the contract's work alone (contract_work.py)"): fair_server,
    }
    steps = [
        Step(*names, *(_median_ns(step, kind) for kind in REPEATS)) for names, step in timed.items()
    ]
    whole = [_between_calls_ns(ping, kind) for kind in REPEATS]
    return [Step("client", "all of the kit's work", *whole), *steps]


def _median_ns(step: Callable[[], object], kind: str) -> float:
    """Return the median duration of a step without that of reading the clock."""
    evicting = bytearray(EVICTING_BYTES)
    times: dict[Callable[[], object], list[int]] = {step: [], _nothing: []}
    for _ in range(REPEATS[kind]):
        for measured, durations in times.items():
            if kind == "cold":
                bytes(evicting)
            begin_ns = time.monotonic_ns()
            measured()
            durations.append(time.monotonic_ns() - begin_ns)
    return max(0.0, statistics.median(times[step]) - statistics.median(times[_nothing]))


def _nothing() -> None:
    pass


def _between_calls_ns(ping: Any, kind: str) -> float:
    """Return the median time from the end of a client's call to the begin of its next call."""
    evicting = bytearray(EVICTING_BYTES)
    times: list[int] = []
    ended_ns = 0

    def call(buffer: bytearray, _timeout_s: float) -> bytes:
        nonlocal ended_ns
        begun_ns = time.monotonic_ns()
        if ended_ns:
            times.append(begun_ns - ended_ns)
        if len(times) == REPEATS[kind]:
            raise _EnoughError
        reply = bytes(buffer)
        if kind == "cold":
            bytes(evicting)
        ended_ns = time.monotonic_ns()
        return reply

    with contextlib.suppress(_EnoughError):
        ping.call_all(call)
    return statistics.median(times)


class ThreadCost(NamedTuple):
    """The CPU time (µs) and the number of waits of one thread per call."""

    role: str
    thread: str
    cpu_us: float
    waits: float


def thread_costs(workbench: Bench, name: str) -> Iterator[tuple[str, float, list[ThreadCost]]]:
    """Yield (side, median round trip in ns, threads) of a cell, its bare and its fair client."""
    cell = workbench.cell(name)
    if cell is None:
        return
    bare = bare_argv(cell.argv)
    assert bare is not None, f"{name}: no bare client in its folder"
    try:
        yield "cell", *_of_cell(workbench, cell)
        yield "bare client", *_of_client(cell, bare)
        if (fair := libraries.fair_argv(bare)) is not None:
            yield "fair client", *_of_client(libraries.with_contract_work(cell), fair)
    except BROKEN as error:
        lose_pair(name, 0, 1, error)


def _of_cell(workbench: Bench, cell: CellUnderTest) -> tuple[float, list[ThreadCost]]:
    keys = {
        "verify": "header", "payload.bytes": BYTES, "timeout_ns": 2_000_000_000, "loop": "closed",
        "count": CALLS, "period_ns": 0, "duration_ns": 0, "record.capacity": CALLS,
        "outstanding_max": 1,
    }  # fmt: skip
    members = [Member(cell, role, keys) for role in ROLES]
    with (
        cell.service() as endpoints,
        Group(workbench.folder, "pingpong", members, endpoints) as group,
    ):
        group.start()
        group.go()
        sample = _sample({role: group.node(role).pid for role in ROLES})
        group.wait_sent()
        group.finish()
        records = group.samples(group.node(ROLES[0])).records
    median_ns = statistics.median(r.end_ns - r.begin_ns for r in records if not r.flags)
    return median_ns, _per_call(*sample, median_ns)


def _of_client(cell: CellUnderTest, argv: Sequence[str]) -> tuple[float, list[ThreadCost]]:
    caller, server = ROLES
    env = {**os.environ, **cell.env}
    with (
        cell.service() as endpoints,
        bare_server([*argv, server, *endpoints], env) as endpoint,
        subprocess.Popen(
            [*argv, caller, endpoint, str(BYTES), str(CALLS)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env,
            start_new_session=True,
        ) as client,
    ):  # fmt: skip
        WATCHDOG.node_started(client.pid)
        try:
            sample = _sample({caller: client.pid, server: _child([*argv, server])})
            median_ns = float(client.communicate(timeout=HANG_S)[0])
        finally:
            client.kill()
    return median_ns, _per_call(*sample, median_ns)


def _child(argv: Sequence[str]) -> int:
    """Return the number of this process's child whose command begins with `argv`."""
    for children in Path("/proc/self/task").glob("*/children"):
        for pid in children.read_text().split():
            if Path(f"/proc/{pid}/cmdline").read_text().split("\0")[: len(argv)] == list(argv):
                return int(pid)
    raise RuntimeError(f"{argv[-1]}: no such process")


Times = dict[tuple[str, str, int], tuple[int, int]]


def _sample(processes: dict[str, int]) -> tuple[int, Times]:
    """Return the elapsed ns and, by role, name and number of a thread, its CPU ns and its waits."""
    time.sleep(SETTLE_S)
    before, begin_ns = thread_times(processes), time.monotonic_ns()
    time.sleep(SAMPLE_S)
    after, end_ns = thread_times(processes), time.monotonic_ns()
    differences = {
        key: (after[key][0] - cpu_ns, after[key][1] - waits)
        for key, (cpu_ns, waits) in before.items()
        if key in after
    }
    return end_ns - begin_ns, differences


def thread_times(processes: dict[str, int]) -> Times:
    """Return CPU ns and voluntary switches by role, name and number of a thread."""
    times = {}
    for role, pid in processes.items():
        for task in Path(f"/proc/{pid}/task").iterdir():
            cpu_ns = int((task / "schedstat").read_text().split()[0])
            waits = re.search(
                r"^voluntary_ctxt_switches:\s+(\d+)", (task / "status").read_text(), re.M
            )
            assert waits is not None
            times[role, (task / "comm").read_text().strip(), int(task.name)] = cpu_ns, int(waits[1])
    return times


def _per_call(elapsed_ns: int, times: Times, round_trip_ns: float) -> list[ThreadCost]:
    """Return the costs per call of the threads that run in at least every tenth call."""
    calls = elapsed_ns / round_trip_ns
    costs = [
        ThreadCost(role, thread, cpu_ns / calls / 1e3, waits / calls)
        for (role, thread, _), (cpu_ns, waits) in times.items()
    ]
    return [cost for cost in costs if cost.waits >= 0.1]


def report(workbench: Bench, cells: Sequence[str]) -> None:
    """Print the steps of the Python kit, and the threads of cells with a bare client."""
    print(f"\n## Steps of the Python kit per call, {BYTES} B, echo, verify = header\n")
    print("| side | step | warm caches, ns | cold caches, ns |\n|---|---|---|---|")
    for step in python_steps(workbench):
        print(f"| {step.side} | {step.name} | {step.warm_ns:.0f} | {step.cold_ns:.0f} |")
    print("\n## CPU time of the threads per call, both sides on one core\n")
    print("| program | role | thread | CPU time, µs | waits |\n|---|---|---|---|---|")
    for name in libraries.cells_with_bare_client(workbench):
        if not any(fnmatch(name, pattern) for pattern in cells):
            continue
        for side, median_ns, costs in thread_costs(workbench, name):
            label = f"{name}, {side}"
            for cost in costs:
                cells_ = f"{cost.role} | {cost.thread} | {cost.cpu_us:.1f} | {cost.waits:.1f}"
                print(f"| {label} | {cells_} |")
            print(f"| {label} | | median round trip | {median_ns / 1e3:.1f} | |", flush=True)
