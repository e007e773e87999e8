"""Compare a pipeline of udp/cpp with two chains of programs in C, all at the same time on one core.

One chain only forwards (bare); the other also does the contract's work per message (fair). The
three sources send in turns, a third of a period apart, so the load of a shared machine affects all
chains equally.
"""

from __future__ import annotations

import contextlib
import itertools
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.nodes import Bench
from bench.pairs import BROKEN, Comparison, compared, lose_pair
from contract.conformance.cell import CellUnderTest
from contract.conformance.group import Group, Member
from contract.conformance.leftovers.watchdog import WATCHDOG
from contract.conformance.roles import PATTERNS, chain_roles
from wattwire.rig.bare_clients import HANG_S

CELL, PATTERN = "udp/cpp", "pipeline"
RELAYS = 6
BYTES = 64
PERIOD_NS, MESSAGES = 5_000_000, 400
PROMISE = 1.05
WITH_CONTRACT_WORK = "with the contract's work"
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
    source = Path(__file__).parents[1] / "bare" / "chain.c"
    subprocess.run(["gcc", "-O2", "-Wall", "-pthread", "-o", program, source], check=True)
    label = f"{CELL}, {RELAYS} relays, against forwarders in C"
    latencies: list[tuple[float, ...]] = []
    for number in range(pairs):
        try:
            latencies.append(
                latencies_ns(workbench.folder, cell, [[str(program)], [str(program), "contract"]])
            )
        except BROKEN as error:
            lose_pair(label, number, pairs, error)
    ours, bare, fair = zip(*latencies, strict=True) if latencies else ((), (), ())
    yield from compared(label, "ns", (ours, bare), None)
    yield from compared(f"{label} {WITH_CONTRACT_WORK}", "ns", (ours, fair), PROMISE)
    yield from compared(
        f"forwarders in C {WITH_CONTRACT_WORK}, against those without", "ns", (fair, bare), None
    )


def latencies_ns(
    folder: Path, cell: CellUnderTest, chains: Sequence[Sequence[str]]
) -> tuple[float, ...]:
    """Return the median latencies (ns) of a run of the cell and of the chains in C."""
    members = [Member(cell, role, SPEC) for role in chain_roles(PATTERNS[PATTERN], RELAYS)]
    with contextlib.ExitStack() as stack:
        group = stack.enter_context(Group(folder, PATTERN, members, []))
        started = [stack.enter_context(chain(argv)) for argv in chains]
        group.start()
        group.go(GO_LEAD_NS)
        sources = []
        for number, (argv, (_, port)) in enumerate(zip(chains, started, strict=True), 1):
            begin_ns = group.start_ns + number * PERIOD_NS // (len(chains) + 1)
            words = map(str, [BYTES, PERIOD_NS, MESSAGES, begin_ns])
            sources.append(stack.enter_context(killed_process([*argv, "source", port, *words])))
        for source in sources:
            if source.wait(HANG_S) != 0:
                raise RuntimeError(f"a source in C: exit {source.returncode}")
        printed_ns = [float(sink.communicate(timeout=HANG_S)[0]) for sink, _ in started]
        group.wait_sent()
        group.finish()
        return _median_latency_ns(group), *printed_ns


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
def chain(argv: Sequence[str]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the sink and the relays in C; yield the sink and the port of the first relay."""
    with contextlib.ExitStack() as stack:
        nodes: list[subprocess.Popen[str]] = []
        argument = str(MESSAGES)  # of the sink; the argument of a relay is its successor's port
        for role in ("sink", *itertools.repeat("relay", RELAYS)):
            node = stack.enter_context(killed_process([*argv, role, argument]))
            nodes.append(node)
            assert node.stdout is not None
            argument = node.stdout.readline().strip()
            if not argument:
                raise RuntimeError(f"{' '.join(argv)} {role}: printed no port")
        yield nodes[0], argument


@contextlib.contextmanager
def killed_process(argv: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """Run a process in a separate session, because the kernel schedules sessions as groups.

    Kill it at the end.
    """
    process = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    WATCHDOG.node_started(process.pid)
    try:
        yield process
    finally:
        process.kill()
        with process:  # closes the pipes and waits for the process
            pass
