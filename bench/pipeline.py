"""Compare a pipeline of udp/cpp with a chain of programs in C, both at the same time on one core.

The two sources send alternately, half a period apart, so the load of a shared machine affects both
chains equally.
"""

from __future__ import annotations

import contextlib
import itertools
import statistics
import subprocess
from collections.abc import Iterator
from pathlib import Path

from bench.nodes import Bench
from bench.pairs import BROKEN, Comparison, compared, lose_pair
from contract.conformance.cell import CellUnderTest
from contract.conformance.group import Group, Member
from contract.conformance.roles import PATTERNS, chain_roles
from wattwire.rig.bare_clients import HANG_S

CELL, PATTERN = "udp/cpp", "pipeline"
RELAYS = 6
BYTES = 64
PERIOD_NS, MESSAGES = 5_000_000, 400
PROMISE = 1.05
GO_LEAD_NS = 400_000_000
"""Time from GO to the first message; the other chain's source starts in this time."""
SPEC = {
    "verify": "header", "payload.bytes": BYTES, "period_ns": PERIOD_NS,
    "duration_ns": MESSAGES * PERIOD_NS, "record.capacity": 2 * MESSAGES,
}  # fmt: skip


def comparisons(workbench: Bench, pairs: int) -> Iterator[Comparison]:
    """Yield the comparison of the median end-to-end latencies (ns) of both chains."""
    cell = workbench.cell(CELL)
    if cell is None:
        return
    program = workbench.folder / "chain"
    source = Path(__file__).with_name("bare") / "chain.c"
    subprocess.run(["gcc", "-O2", "-Wall", "-o", program, source], check=True)
    label = f"{CELL}, {RELAYS} relays, against forwarders in C"
    ours: list[float] = []
    peer: list[float] = []
    for number in range(pairs):
        try:
            latencies = latencies_ns(workbench.folder, cell, program)
        except BROKEN as error:
            lose_pair(label, number, pairs, error)
            continue
        ours.append(latencies[0])
        peer.append(latencies[1])
    yield from compared(label, "ns", (tuple(ours), tuple(peer)), PROMISE)


def latencies_ns(folder: Path, cell: CellUnderTest, program: Path) -> tuple[float, float]:
    """Return the median latencies (ns) of a run of the cell and of the chain in C."""
    members = [Member(cell, role, SPEC) for role in chain_roles(PATTERNS[PATTERN], RELAYS)]
    with Group(folder, PATTERN, members, []) as group, bare_chain(program) as (sink, port):
        group.start()
        group.go(GO_LEAD_NS)
        words = [BYTES, PERIOD_NS, MESSAGES, group.start_ns + PERIOD_NS // 2]
        subprocess.run(
            [program, "source", port, *map(str, words)],
            check=True, timeout=HANG_S, start_new_session=True,
        )  # fmt: skip
        printed = sink.communicate(timeout=HANG_S)[0]
        group.wait_sent()
        group.finish()
        return _median_latency_ns(group), float(printed)


def _median_latency_ns(group: Group) -> float:
    """Return the median time (ns) from the source's send call to the sink's callback."""
    sent, arrived = (
        group.samples(group.node(role)).records
        for role in (PATTERNS[PATTERN].sender, PATTERNS[PATTERN].receiver)
    )
    begins_ns = {record.seq: record.begin_ns for record in sent}
    times_ns = [record.end_ns - begins_ns[record.seq] for record in arrived if not record.flags]
    if len(times_ns) < 0.9 * MESSAGES:
        raise RuntimeError(f"{CELL}: only {len(times_ns)} of {MESSAGES} messages arrived")
    return statistics.median(times_ns)


@contextlib.contextmanager
def bare_chain(program: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the sink and the relays in C; yield the sink and the port of the first relay."""
    nodes: list[subprocess.Popen[str]] = []
    argument = str(MESSAGES)  # of the sink; the argument of a relay is its successor's port
    try:
        for role in ("sink", *itertools.repeat("relay", RELAYS)):
            # Each node has a separate session, because the kernel schedules sessions as groups.
            node = subprocess.Popen(
                [program, role, argument],
                stdout=subprocess.PIPE, text=True, start_new_session=True,
            )  # fmt: skip
            nodes.append(node)
            assert node.stdout is not None
            argument = node.stdout.readline().strip()
            if not argument:
                raise RuntimeError(f"{program.name} {role}: printed no port")
        yield nodes[0], argument
    finally:
        for node in nodes:
            node.kill()
            with node:  # closes the pipe and waits for the process
                pass
