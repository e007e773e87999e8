"""Clients of cells beside bare clients of the same library, against the cell's own server.

A bare client is a cell called `CELL-bare` in the bench's own root: the library's documented loop,
without a kit, run as `ARGV… HOST PORT WARM CALLS`. It makes a call, prints `begun`, makes WARM more
and prints `warm`, makes CALLS more and prints how many of these took a second. The two clients take
turns, each with a server of its own.
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
from bench.pairs import Comparison
from bench.turns import Turn, on_cores, place, take_turns
from contract.conformance.cell import Broken, CellUnderTest
from contract.conformance.group import Group, Member
from contract.conformance.process import NodeProcess
from contract.conformance.spec import RECEIVER_NODE, SENDER_NODE

PAIRS = 10
PROMISE = 0.95
SUFFIX = "-bare"
TEXT = "Hello World"
SIDE_S = 1.0
"""How long the timed calls of one side should take, within what CALLS allows."""
CALLS = (500, 10_000)
WARM_CALLS = 100
COMPILED_LATE = {"csharp": 3000, "java": 3000, "javascript": 3000}
"""Calls before the timed ones, of languages that compile as they run: the first thousand calls
run another program than the rest."""
WARM_S = 10.0
"""But for no longer than this: thousands of calls that wait 40 ms each would take minutes."""
TRIAL_CALLS = 300
HANG_S = 300.0


def comparisons(
    made: Bench, pairs: int, patterns: Sequence[str], side_s: float, together: bool
) -> Iterator[Comparison]:
    """One for each cell that has a bare client and can be built; says why others are absent."""
    for name in chosen(made.catalog.cells, patterns):
        if name + SUFFIX not in made.catalog.cells:
            print(f"  {name}: absent: it has no bare client {name}{SUFFIX}", flush=True)
            continue
        cell, bare = made.cell(name), made.cell(name + SUFFIX)
        if cell is None or bare is None:
            continue
        try:
            yield _compared(Sides(made, cell, bare, *_cores(together)), pairs, side_s)
        except (Broken, RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"  {name}: absent: its runs broke off: {error}", flush=True)


def chosen(cells: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """The cells of all middleware with a bare client, of them those that a pattern names."""
    beside = {name.partition("/")[0] for name in cells if name.endswith(SUFFIX)}
    return [
        name
        for name in cells
        if name.partition("/")[0] in beside and not name.endswith(SUFFIX)
        if any(fnmatch(name, pattern) for pattern in patterns)
    ]


def _cores(together: bool) -> tuple[int, int]:
    """The cores of clients and of servers."""
    allowed = os.sched_getaffinity(0)
    return max(allowed), max(allowed) if together else min(allowed)


@dataclass(frozen=True)
class Sides:
    """A cell, its bare client, and the cores that clients and servers are kept on."""

    made: Bench
    cell: CellUnderTest
    bare: CellUnderTest
    client_core: int
    server_core: int


def _compared(sides: Sides, pairs: int, side_s: float) -> Comparison:
    _, trial = _pair(sides, WARM_CALLS, TRIAL_CALLS, 0)
    count = int(min(max(round(trial * side_s, -2), CALLS[0]), CALLS[1]))
    language = sides.cell.name.rpartition("/")[2]
    warm = int(min(COMPILED_LATE.get(language, WARM_CALLS), trial * WARM_S))
    found = []
    for number in range(pairs):
        found.append(_pair(sides, warm, count, number))
        told = "{:.0f} calls/s, bare {:.0f}".format(*found[-1])
        where = f"{sides.cell.name}, pair {number + 1} of {pairs}"
        print(f"  {where}: {told}", file=sys.stderr, flush=True)
    name = f"{sides.cell.name}, {count} calls"
    ours, theirs = zip(*found, strict=True)
    comparison = Comparison(name, "calls/s", ours, theirs, PROMISE, at_least=True)
    limits = f"{comparison.limit(-1):.3f} … {comparison.limit(1):.3f}"
    print(f"  {name}: {comparison.ratio:.3f} of its bare client ({limits})", flush=True)
    return comparison


def _pair(sides: Sides, warm: int, count: int, number: int) -> tuple[float, float]:
    """Calls per second of the cell's client and of the bare one, which take turns.

    Every second pair, the bare client takes the first turn.
    """
    made, cell, total = sides.made, sides.cell, warm + count
    with (
        _started(made, cell, total, "server") as its_server,
        _started(made, cell, total, "client", "server") as ours,
    ):
        its_server.go()
        # As the cell's client, it calls a server that records: the window has begun.
        _sleep_until(its_server.start_ns)
        server = its_server.node("server")
        with _BareClient(made, sides.bare, server, warm, count) as its_client:
            client = ours.node("client")
            its_client.wait_begun()
            its_client.turn.stop()
            for answering in (server, ours.node("server")):
                place(answering.pid, sides.server_core)
            for session in (client.pid, its_client.turn.group):
                place(session, sides.client_core)
            ours.go()
            _sleep_until(ours.start_ns)
            turn = Turn(client.pid, lambda: client.line("SENT") is not None)
            order = (turn, its_client.turn) if number % 2 == 0 else (its_client.turn, turn)
            with on_cores(sides.client_core):
                take_turns(*order, timeout_s=HANG_S, seed=number)
            ours.wait_sent()
            bare_per_s = its_client.calls_per_s()
        its_server.finish()
        ours.finish()
        records = ours.samples(client).records
    answered = sum(not record.flags for record in records)
    if answered != total:
        raise RuntimeError(f"{cell.name}: {answered} of {total} calls were answered")
    timed = sorted(records, key=lambda record: record.begin_ns)[warm:]
    return count * 1e9 / turn.active_ns(timed[0].begin_ns, timed[-1].end_ns), bare_per_s


def _sleep_until(t_ns: int) -> None:
    time.sleep(max(0, t_ns - time.monotonic_ns()) / 1e9)


class _BareClient:
    """A bare client's process; at the end of the context it is gone."""

    def __init__(
        self, made: Bench, bare: CellUnderTest, server: NodeProcess, warm: int, count: int
    ) -> None:
        # http://127.0.0.1:8080/echo, or without scheme and path
        endpoint = server.fields("LISTENING")["endpoints"][0]
        address = urlsplit(endpoint if "//" in endpoint else f"//{endpoint}")
        env = {name: value for name, value in os.environ.items() if "WATTWIRE" not in name}
        self._name, self._count = bare.name, count
        self._process = subprocess.Popen(
            [*bare.argv, str(address.hostname), str(address.port), str(warm), str(count)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**env, **bare.env}, cwd=made.folder, start_new_session=True,
        )  # fmt: skip
        self.turn = Turn(self._process.pid, lambda: self._process.poll() is not None)
        self._guard = threading.Timer(HANG_S, self._kill)
        self._guard.start()
        self._reader = threading.Thread(target=self._hear_warm)

    def __enter__(self) -> _BareClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._guard.cancel()
        self._kill()
        with self._process:  # closes its pipes and waits for it
            pass

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def wait_begun(self) -> None:
        """Returns once it has made a call, and the others follow."""
        assert self._process.stdout is not None
        told = self._process.stdout.readline()
        if told != "begun\n":
            self._kill()
            raise self._broken(*self._process.communicate())
        self._reader.start()

    def _hear_warm(self) -> None:
        """Its next line, which it prints as its clock starts."""
        assert self._process.stdout is not None
        self._process.stdout.readline()
        self._warm_ns = time.monotonic_ns()

    def calls_per_s(self) -> float:
        """What it prints, less the time that it could not run; waits for its end."""
        self._reader.join()  # at the process's end at the latest
        told, warned = self._process.communicate(timeout=HANG_S)
        if self._process.returncode != 0:
            raise self._broken(told, warned)
        took_ns = round(self._count * 1e9 / float(told))
        return self._count * 1e9 / self.turn.active_ns(self._warm_ns, self._warm_ns + took_ns)

    def _broken(self, told: str, warned: str) -> RuntimeError:
        code = self._process.returncode
        return RuntimeError(f"{self._name}: exit {code}: {(warned or told)[-600:].strip()}")


def _changes(count: int) -> dict[str, Any]:
    """Spec keys of both nodes: `count` calls of TEXT one after the other, answered by TEXT."""
    return {
        "loop": "closed", "count": count, "period_ns": 0, "duration_ns": 0, "outstanding_max": 1,
        "payload.encoding": "text", "payload.bytes": len(TEXT), "payload.literal": TEXT,
        "reply": "literal", "reply.literal": TEXT, "record.capacity": count + 10,
        "peers.nodes": [RECEIVER_NODE],
    }  # fmt: skip


@contextlib.contextmanager
def _started(made: Bench, cell: CellUnderTest, count: int, *roles: str) -> Iterator[Group]:
    """A fresh server of the cell, and with it the cell's client where `roles` says so."""
    changes = {"client": _changes(count)}
    changes["server"] = {**changes["client"], "peers.nodes": [SENDER_NODE], "peers.count": 1}
    members = [Member(cell, role, changes[role]) for role in roles]
    with cell.service() as endpoints, Group(made.folder, "service", members, endpoints) as group:
        group.start()
        yield group
