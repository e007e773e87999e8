"""Measure the cost of the agent's tick tier for ten processes, against psutil and a C loop."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.pairs import Comparison, abba, compared
from contract.conformance.leftovers.watchdog import WATCHDOG
from wattwire.rig import AgentClient

BARE = Path(__file__).with_name("bare")
PROCESSES = 10
SECONDS = 4.0
DESCENDANTS_HZ_MAX = 10.0
"""Highest rate at which psutil reads descendants in time: a pass over 140 processes took 7 ms."""
PROMISED_PERCENT = {10.0: 0.2, 100.0: 1.0}
"""Tick rate in Hz → promised share of a core, in percent."""
# The processes sleep briefly and do not fill a core, so their CPU time changes at every tick.
LOAD = "import time\nwhile True:\n    sum(range(2000)); time.sleep(0.02)\n"
# Each reading has a time and a duration, and the reader also measures its own CPU time.
PSUTIL_LOOP = """
import psutil, sys, time
period_s = 1 / float(sys.argv[1])
pids = [int(pid) for pid in sys.argv[2:]]
processes = [psutil.Process(), *map(psutil.Process, pids)]
READ
deadline_s = time.monotonic()
print("ready", flush=True)
readings = []
while True:
    readings.append(read())
    deadline_s += period_s
    time.sleep(max(0.0, deadline_s - time.monotonic()))
"""
READ_ALONE = """
def read():
    times = []
    for process in processes:
        begin_ns = time.monotonic_ns()
        times.append((begin_ns, process.cpu_times(), time.monotonic_ns() - begin_ns))
    return times
"""
# One pass over all processes costs less than children(recursive=True) for each process.
READ_WITH_DESCENDANTS = """
def read():
    begin_ns = time.monotonic_ns()
    table = {p.pid: p.info for p in psutil.process_iter(["ppid", "cpu_times"])}
    sums_s = {process.pid: 0.0 for process in processes}
    for pid, info in table.items():
        ancestor = pid
        while ancestor in table and ancestor not in sums_s:
            ancestor = table[ancestor]["ppid"]
        if ancestor in sums_s and info["cpu_times"]:
            sums_s[ancestor] += sum(info["cpu_times"][:4])
    return begin_ns, sums_s, time.monotonic_ns() - begin_ns
"""


def cpu_s(pid: int) -> float:
    """Return the CPU time (s) of all threads of a process, as clock_getcpuclockid does."""
    return time.clock_gettime((~pid << 3) | 2)


def tick_meters(agent: AgentClient) -> list[str]:
    """Return the available default meters of the tick tier.

    They read the CPU time per process, and energy counters if there are any.
    """
    return [
        meter["name"]
        for meter in agent.hello["meters"]
        if meter["state"] == "present" and meter.get("tier") == "tick" and meter.get("default")
    ]


def spawn_loads(agent: AgentClient, folder: Path) -> list[dict[str, Any]]:
    """Start the processes whose CPU time is read; return the agent's replies."""
    return [
        agent.request(
            "spawn", process=f"load-{k}", run="wwbench", argv=[sys.executable, "-c", LOAD], env={},
            cwd=str(folder), stdout=str(folder / f"{k}.out"), stderr=str(folder / f"{k}.err"),
        )
        for k in range(PROCESSES)
    ]  # fmt: skip


def share_of_a_core(pid: int) -> float:
    """Return the CPU seconds per second of a process, measured over SECONDS."""
    begin_s, wall_s = cpu_s(pid), time.monotonic()
    time.sleep(SECONDS)
    return (cpu_s(pid) - begin_s) / (time.monotonic() - wall_s)


def sampled(agent: AgentClient, folder: Path, tick_hz: float) -> float:
    """Return the agent's share of a core while it samples."""
    meters = tick_meters(agent)
    agent.request("sample_start", path=str(folder / "readings.bin"), tick_hz=tick_hz,
                  meters=meters, subjects={})  # fmt: skip
    try:
        return share_of_a_core(agent.pid)
    finally:
        agent.request("sample_stop")


def share_of_loop(argv: list[str]) -> float:
    """Return the CPU use (share of a core) of a program that prints a line and reads in a loop."""
    reader = subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True)
    WATCHDOG.node_started(reader.pid)
    try:
        assert reader.stdout is not None
        if not reader.stdout.readline():
            raise RuntimeError("the peer did not start; its error is printed above")
        return share_of_a_core(reader.pid)
    finally:
        reader.kill()
        reader.wait()


def peers(
    folder: Path, spawned: list[dict[str, Any]], tick_hz: float
) -> Iterator[tuple[str, list[str], float]]:
    """Yield the name, the command and the promised ratio of each peer of the sampler."""
    pids = [str(reply["pid"]) for reply in spawned]
    programs = [("psutil, processes alone", READ_ALONE, 0.25)]
    if tick_hz <= DESCENDANTS_HZ_MAX:
        programs.append(("psutil, with descendants", READ_WITH_DESCENDANTS, 0.1))
    for name, read, promise in programs:
        program = PSUTIL_LOOP.replace("READ", read, 1)
        yield name, [sys.executable, "-c", program, str(tick_hz), *pids], promise
    files = [usage_file(Path(reply["cgroup"])) for reply in spawned if reply["cgroup"]]
    if not files:
        print("  a loop in C: absent: the agent has no cgroups here", flush=True)
        return
    program_path = folder / "sampler"
    subprocess.run(["gcc", "-O2", "-Wall", "-o", program_path, BARE / "sampler.c"], check=True)
    period_ns = round(1e9 / tick_hz)
    argv = [str(program_path), str(folder / "records"), str(period_ns), *map(str, files)]
    yield "a loop in C", argv, 1.25


def usage_file(cgroup: Path) -> Path:
    """Return the file with the CPU time of a cgroup, for version 2 or 1."""
    of_v2 = cgroup / "cpu.stat"
    return of_v2 if of_v2.exists() else cgroup / "cpuacct.usage"


def comparisons(pairs: int) -> Iterator[tuple[float, list[Comparison]]]:
    """Yield each rate (Hz) with the comparisons of the sampler's and its peers' CPU use."""
    with tempfile.TemporaryDirectory(prefix="wattwire-bench-") as name:
        folder = Path(name)
        agent = AgentClient(folder / "agent")
        try:
            spawned = spawn_loads(agent, folder)
            for tick_hz in PROMISED_PERCENT:
                results: list[Comparison] = []
                for peer, argv, promise in peers(folder, spawned, tick_hz):
                    label = f"tick tier, {PROCESSES} processes, {tick_hz:g} Hz, against {peer}"
                    sides = abba(
                        label,
                        lambda hz=tick_hz: 100 * sampled(agent, folder, hz),  # type: ignore[misc]
                        lambda command=argv: 100 * share_of_loop(command),  # type: ignore[misc]
                        pairs,
                    )
                    results += compared(label, "% of a core", sides, promise)
                yield tick_hz, results
        finally:
            agent.close()
