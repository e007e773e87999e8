"""Cost of the agent's tick tier for ten processes, compared with psutil on the same processes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.pairs import Comparison, abba
from wattwire.rig import AgentClient

PROCESSES = 10
SECONDS = 4.0
# The processes neither sleep for long nor fill a core, so their CPU time changes at every tick.
LOAD = "import time\nwhile True:\n    sum(range(2000)); time.sleep(0.02)\n"
PSUTIL = """
import psutil, sys, time
period_s = 1 / float(sys.argv[1])
processes = [psutil.Process(int(pid)) for pid in sys.argv[2:]]
due_s = time.monotonic()
print("ready", flush=True)
readings = []
while True:
    readings.append([process.cpu_times() for process in processes])
    due_s += period_s
    time.sleep(max(0.0, due_s - time.monotonic()))
"""


def cpu_s(pid: int) -> float:
    """Return the CPU time of all threads of a process, in s, by clock_getcpuclockid's clock."""
    return time.clock_gettime((~pid << 3) | 2)


def tick_meters(agent: AgentClient) -> list[str]:
    """Return the present default meters of the tick tier.

    They read CPU time per process, and energy counters where there are any.
    """
    return [
        meter["name"]
        for meter in agent.hello["meters"]
        if meter["state"] == "present" and meter.get("tier") == "tick" and meter.get("default")
    ]


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


def with_psutil(pids: list[int], tick_hz: float) -> float:
    """Return the share of a core of a loop with psutil that reads these processes."""
    reader = subprocess.Popen(
        [sys.executable, "-c", PSUTIL, str(tick_hz), *map(str, pids)], stdout=subprocess.PIPE
    )
    try:
        assert reader.stdout is not None
        if not reader.stdout.readline():
            raise RuntimeError("the psutil loop did not start; what it says stands above")
        return share_of_a_core(reader.pid)
    finally:
        reader.kill()
        reader.wait()


def comparisons(pairs: int) -> Iterator[Comparison]:
    """Yield the comparisons of shares of a core at 10 and 100 Hz; the promise is a ratio of 0.1."""
    with tempfile.TemporaryDirectory(prefix="wattwire-bench-") as name:
        folder = Path(name)
        agent = AgentClient(folder / "agent")
        try:
            pids = [
                agent.request("spawn", process=f"load-{k}", run="wwbench", argv=[sys.executable,
                              "-c", LOAD], env={}, cwd=name, stdout=str(folder / f"{k}.out"),
                              stderr=str(folder / f"{k}.err"))["pid"]
                for k in range(PROCESSES)
            ]  # fmt: skip
            for tick_hz in (10.0, 100.0):
                label = f"tick tier, {PROCESSES} processes, {tick_hz:g} Hz, against psutil"
                ours, peer = abba(
                    label,
                    lambda hz=tick_hz: 100 * sampled(agent, folder, hz),  # type: ignore[misc]
                    lambda hz=tick_hz: 100 * with_psutil(pids, hz),  # type: ignore[misc]
                    pairs,
                )
                yield Comparison(label, "% of a core", ours, peer, 0.1)
        finally:
            agent.close()
