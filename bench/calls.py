"""Compare clients of cells with bare clients of the same library, on the cell's server.

A bare client is a cell `CELL-bare` in the bench's root: the documented loop of the library without
a kit, run as `ARGV… HOST PORT WARM CALLS`. It makes a call, prints `begun`, makes WARM more calls
and prints `warm`. Then it makes CALLS more calls and prints the calls per second. The two clients
run in turns, each with a separate server.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any
from urllib.parse import urlsplit

from bench.nodes import Bench
from bench.pairs import BROKEN, Comparison, compared, lose_pair
from bench.turns import Turn, on_cores, place, take_turns
from contract.conformance.cell import CellUnderTest
from contract.conformance.group import Group, Member
from contract.conformance.leftovers.watchdog import WATCHDOG
from contract.conformance.process import NodeProcess
from contract.conformance.spec import RECEIVER_NODE, SENDER_NODE

PAIRS = 10
PROMISE = 0.95
SUFFIX = "-bare"
TEXT = "Hello World"
SIDE_S = 1.0
"""Intended duration of the timed calls of one side, within the limits of CALLS."""
CALLS = (500, 10_000)
"""Fewest and most timed calls of one side."""
WARM_CALLS = 100
COMPILED_LATE = {"csharp": 3000, "java": 3000, "javascript": 3000}
"""Calls before the timed calls, for languages that compile at run time. Their first thousand calls
run different code than later calls.
"""
WARM_S = 10.0
"""Longest warm-up: thousands of calls that wait 40 ms each would take minutes."""
TRIAL_CALLS = 300
HANG_S = 300.0


def comparisons(
    workbench: Bench, pairs: int, patterns: Sequence[str], side_s: float, together: bool
) -> Iterator[Comparison]:
    """Yield a comparison for each cell whose bare client can be built.

    For other cells, print the reason.
    """
    for name in chosen(workbench.catalog.cells, patterns):
        if name + SUFFIX not in workbench.catalog.cells:
            print(f"  {name}: absent: it has no bare client {name}{SUFFIX}", flush=True)
            continue
        cell, bare = workbench.cell(name), workbench.cell(name + SUFFIX)
        if cell is None or bare is None:
            continue
        try:
            yield from _compare(Sides(workbench, cell, bare, *cores(together)), pairs, side_s)
        except BROKEN as error:
            lose_pair(f"{name}, the trial", 0, 1, error)


def chosen(cells: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """Return the matching cells of each middleware that has at least one bare client."""
    with_bare_client = {name.partition("/")[0] for name in cells if name.endswith(SUFFIX)}
    return [
        name
        for name in cells
        if name.partition("/")[0] in with_bare_client and not name.endswith(SUFFIX)
        if any(fnmatch(name, pattern) for pattern in patterns)
    ]


def cores(together: bool) -> tuple[int, int]:
    """Return the core of the clients and the core of the servers."""
    allowed = os.sched_getaffinity(0)
    return max(allowed), max(allowed) if together else min(allowed)


@dataclass(frozen=True)
class Sides:
    """A cell, its bare client, and the cores of the clients and servers."""

    made: Bench
    cell: CellUnderTest
    bare: CellUnderTest
    client_core: int
    server_core: int


def _compare(sides: Sides, pairs: int, side_s: float) -> Iterator[Comparison]:
    """Yield the comparison of a cell with its bare client over `pairs` pairs.

    If a pair fails, it is lost, and the comparison continues with the next pair. A trial run
    determines the number of calls for `side_s` seconds. The rates are printed.
    """
    _, trial_per_s = _pair(sides, WARM_CALLS, TRIAL_CALLS, 0)
    count = int(min(max(round(trial_per_s * side_s, -2), CALLS[0]), CALLS[1]))
    language = sides.cell.name.rpartition("/")[2]
    warm_calls = int(min(COMPILED_LATE.get(language, WARM_CALLS), trial_per_s * WARM_S))
    rates = []
    for number in range(pairs):
        try:
            rates.append(_pair(sides, warm_calls, count, number))
        except BROKEN as error:
            lose_pair(sides.cell.name, number, pairs, error)
            continue
        text = "{:.0f} calls/s, bare {:.0f}".format(*rates[-1])
        progress = f"{sides.cell.name}, pair {number + 1} of {pairs}"
        print(f"  {progress}: {text}", file=sys.stderr, flush=True)
    name = f"{sides.cell.name}, {count} calls"
    columns = (tuple(rate[0] for rate in rates), tuple(rate[1] for rate in rates))
    for comparison in compared(name, "calls/s", columns, PROMISE, at_least=True):
        limits = f"{comparison.limit(-1):.3f} … {comparison.limit(1):.3f}"
        print(f"  {name}: {comparison.ratio:.3f} of its bare client ({limits})", flush=True)
        yield comparison


def _pair(sides: Sides, warm: int, count: int, number: int) -> tuple[float, float]:
    """Return the calls per second of the cell's client and of the bare client.

    The clients run in turns. In every second pair, the bare client has the first turn.
    """
    workbench, cell, total = sides.made, sides.cell, warm + count
    with (
        started(workbench, cell, total, "server") as bare_group,
        started(workbench, cell, total, "client", "server") as cell_group,
    ):
        bare_group.go()
        # The bare client starts within the window, in which its server records, like the cell's
        # server.
        sleep_until(bare_group.start_ns)
        server = bare_group.node("server")
        with _BareClient(workbench, sides.bare, server, warm, count) as bare_client:
            client = cell_group.node("client")
            bare_client.wait_begun()
            bare_client.turn.stop()
            for answering_server in (server, cell_group.node("server")):
                place(answering_server.pid, sides.server_core)
            for session in (client.pid, bare_client.turn.group):
                place(session, sides.client_core)
            cell_group.go()
            sleep_until(cell_group.start_ns)
            turn = Turn(client.pid, lambda: client.line("SENT") is not None)
            order = (turn, bare_client.turn) if number % 2 == 0 else (bare_client.turn, turn)
            with on_cores(sides.client_core):
                take_turns(*order, timeout_s=HANG_S, seed=number)
            cell_group.wait_sent()
            bare_per_s = bare_client.calls_per_s()
        bare_group.finish()
        cell_group.finish()
        cell_per_s = timed_per_s(cell_group, turn, warm, count)
    return cell_per_s, bare_per_s


def timed_per_s(group: Group, turn: Turn, warm: int, count: int) -> float:
    """Return the calls per second of a client after its first `warm` calls, from its records.

    Raise RuntimeError if not all calls were answered.
    """
    records = group.samples(group.node("client")).records
    answered = sum(not record.flags for record in records)
    if answered != warm + count:
        raise RuntimeError(f"{answered} of {warm + count} calls were answered")
    timed = sorted(records, key=lambda record: record.begin_ns)[warm:]
    return count * 1e9 / turn.active_ns(timed[0].begin_ns, timed[-1].end_ns)


def sleep_until(t_ns: int) -> None:
    time.sleep(max(0, t_ns - time.monotonic_ns()) / 1e9)


class _BareClient:
    """Context manager that runs the process of a bare client and kills it at the end."""

    def __init__(
        self, workbench: Bench, bare: CellUnderTest, server: NodeProcess, warm: int, count: int
    ) -> None:
        # `http://127.0.0.1:8080/echo`, or the same without scheme and path
        endpoint = server.fields("LISTENING")["endpoints"][0]
        address = urlsplit(endpoint if "//" in endpoint else f"//{endpoint}")
        env = {name: value for name, value in os.environ.items() if "WATTWIRE" not in name}
        self._name, self._count = bare.name, count
        self._process = subprocess.Popen(
            [*bare.argv, str(address.hostname), str(address.port), str(warm), str(count)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**env, **bare.env}, cwd=workbench.folder, start_new_session=True,
        )  # fmt: skip
        WATCHDOG.node_started(self._process.pid)
        self.turn = Turn(self._process.pid, lambda: self._process.poll() is not None)
        self._guard = threading.Timer(HANG_S, self._kill)
        self._guard.start()
        self._reader = threading.Thread(target=self._note_warm)

    def __enter__(self) -> _BareClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._guard.cancel()
        self._kill()
        with self._process:  # closes the pipes and waits for the process
            pass

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def wait_begun(self) -> None:
        """Wait until the client has made its first call, and start reading its output."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line != "begun\n":
            self._kill()
            raise self._broken(*self._process.communicate())
        self._reader.start()

    def _note_warm(self) -> None:
        """Record the time at which the client prints its next line and starts its clock."""
        assert self._process.stdout is not None
        self._process.stdout.readline()
        self._warm_ns = time.monotonic_ns()

    def calls_per_s(self) -> float:
        """Wait until the client ends, and return its rate without the time when it was stopped."""
        self._reader.join()  # ends no later than the process
        output, errors = self._process.communicate(timeout=HANG_S)
        if self._process.returncode != 0:
            raise self._broken(output, errors)
        elapsed_ns = round(self._count * 1e9 / float(output))
        return self._count * 1e9 / self.turn.active_ns(self._warm_ns, self._warm_ns + elapsed_ns)

    def _broken(self, output: str, errors: str) -> RuntimeError:
        code = self._process.returncode
        return RuntimeError(f"{self._name}: exit {code}: {(errors or output)[-600:].strip()}")


def _changes(count: int) -> dict[str, Any]:
    """Return the spec keys of both nodes for `count` consecutive calls.

    TEXT is the message and the reply.
    """
    return {
        "loop": "closed", "count": count, "period_ns": 0, "duration_ns": 0, "outstanding_max": 1,
        "payload.encoding": "text", "payload.bytes": len(TEXT), "payload.literal": TEXT,
        "reply": "literal", "reply.literal": TEXT, "record.capacity": count + 10,
        "peers.nodes": [RECEIVER_NODE],
    }  # fmt: skip


@contextlib.contextmanager
def started(
    workbench: Bench,
    cell: CellUnderTest,
    count: int,
    *roles: str,
    client: CellUnderTest | None = None,
    **payload: Any,
) -> Iterator[Group]:
    """Start new nodes of the cell in these roles, and yield their group.

    `client` is the cell of the client if it is another one. `payload` contains keys of the spec
    that replace the keys for the literal TEXT.
    """
    changes = {"client": {**_changes(count), **payload}}
    changes["server"] = {**changes["client"], "peers.nodes": [SENDER_NODE], "peers.count": 1}
    cells = {"client": client or cell, "server": cell}
    members = [Member(cells[role], role, changes[role]) for role in roles]
    with (
        cell.service() as endpoints,
        Group(workbench.folder, "service", members, endpoints) as group,
    ):
        group.start()
        yield group
