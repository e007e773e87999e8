"""Measure what reading a meter costs at 1 to 1,000 Hz, next to loops of psutil and PowerJoular.

The agent reads one meter of this machine at each rate. A meter outside the machine has its own
rate, so an emulated one is read at this rate only. The psutil loop reads the CPU times of a process
with psutil, and the energy counters. The loop like that of PowerJoular (`bare/power_reader.c`)
reads the counters, the CPU time of the machine and that of a process, and writes a line. Without a
readable counter, both loops read a file that takes its place.
"""

from __future__ import annotations

import functools
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from bench.pairs import interleaved
from bench.sampler import BARE, LOAD, PSUTIL_LOOP, share_of_a_core, share_of_loop
from meters.http_plug.tests.emulator import Plug
from meters.watts_up.tests.emulator import WattsUp
from wattwire.rig import AgentClient

RATES_HZ = (1.0, 10.0, 100.0, 1000.0)
ROUNDS = 5
POWER_W = 41.3
OUTSIDE = " (outside, emulated)"
COUNTERS = "/sys/class/powercap/*/energy_uj"
READ_WITH_ENERGY = """
def read():
    begin_ns = time.monotonic_ns()
    energies_uj = [int(open(path).read()) for path in PATHS]
    return begin_ns, processes[-1].cpu_times(), energies_uj, time.monotonic_ns() - begin_ns
"""
Side = Callable[[], float]


def counters(folder: Path) -> list[str]:
    """Return the readable energy counters of this machine, or a file that takes their place."""
    readable = []
    for path in sorted(Path("/").glob(COUNTERS.lstrip("/"))):
        try:
            path.read_text()
        except OSError:
            continue
        readable.append(str(path))
    if readable:
        return readable
    print("no readable energy counter: the loops read a file in its place", flush=True)
    stand_in = folder / "energy_uj"
    stand_in.write_text("123456789\n")
    return [str(stand_in)]


def meters_of_ticks(agent: AgentClient) -> list[str]:
    """Return the readable meters of this machine that the agent reads at each tick."""
    return [
        meter["name"]
        for meter in agent.hello["meters"]
        if meter["state"] == "present" and meter["tier"] == "tick"
    ]


def percent_of_agent(
    agent: AgentClient, folder: Path, tick_hz: float, name: str, addresses: Mapping[str, str]
) -> float:
    """Return the percent of a core that the agent uses to read a meter at a rate (Hz).

    A busy machine lets the agent miss ticks, which the loops make up for, so the result is that of
    all ticks.
    """
    agent.request(
        "sample_start", path=str(folder / "readings.bin"), tick_hz=tick_hz, meters=[name],
        subjects={}, addresses={name: addresses[name]} if name in addresses else {},
    )  # fmt: skip
    try:
        share = share_of_a_core(agent.pid)
    finally:
        done = agent.request("sample_stop")
    return 100 * share * (done["ticks"] + done["missed"]) / done["ticks"]


def loop_sides(folder: Path, paths: list[str], pid: int, tick_hz: float) -> dict[str, Side]:
    """Return the measurements of both loops, as percent of a core."""
    psutil_loop = PSUTIL_LOOP.replace("READ", READ_WITH_ENERGY, 1).replace("PATHS", repr(paths), 1)
    program = folder / "power_reader"
    if not program.exists():
        source = BARE / "power_reader.c"
        subprocess.run(["gcc", "-O2", "-Wall", "-o", program, source], check=True)
    period_ns = round(1e9 / tick_hz)
    loops = {
        "psutil loop": [sys.executable, "-c", psutil_loop, str(tick_hz), str(pid)],
        "loop like PowerJoular's (C)": [
            str(program), str(folder / "lines"), str(period_ns), str(pid), *paths,
        ],
    }  # fmt: skip
    return {
        name: functools.partial(lambda argv: 100 * share_of_loop(argv), argv)
        for name, argv in loops.items()
    }


def measured(rounds: int) -> Iterator[tuple[float, dict[str, tuple[float, ...]]]]:
    """Yield each rate (Hz) with the percent of a core that each reader used in each round."""
    with tempfile.TemporaryDirectory(prefix="wattwire-bench-") as name:
        folder = Path(name)
        agent, plug = AgentClient(folder / "agent"), Plug(POWER_W)
        meter = WattsUp(lambda _: POWER_W)
        addresses = {"watts_up": meter.path, "http_plug": f"shelly:127.0.0.1:{plug.port}"}
        try:
            load = agent.request(
                "spawn", process="load", run="wwbench", argv=[sys.executable, "-c", LOAD], env={},
                cwd=name, stdout=str(folder / "load.out"), stderr=str(folder / "load.err"),
            )  # fmt: skip
            paths = counters(folder)
            for hz in RATES_HZ:
                names = [*meters_of_ticks(agent), *(addresses if hz == RATES_HZ[0] else ())]
                sides: dict[str, Side] = {
                    f"{name}{OUTSIDE if name in addresses else ''}": functools.partial(
                        percent_of_agent, agent, folder, hz, name, addresses
                    )
                    for name in names
                }
                sides |= loop_sides(folder, paths, int(load["pid"]), hz)
                columns = interleaved(f"{hz:g} Hz", list(sides.values()), rounds)
                yield hz, dict(zip(sides, columns, strict=True))
        finally:
            agent.close()
            plug.close()
            meter.close()


def report(rounds: int) -> None:
    """Print the cost of each reader at each rate: the median over rounds, and the highest."""
    rows: dict[str, dict[float, tuple[float, ...]]] = {}
    for hz, columns in measured(rounds):
        for name, values in columns.items():
            rows.setdefault(name, {})[hz] = values
    print(f"\n## Reading a meter, % of a core: median (highest) of {rounds} rounds\n")
    print(f"| reader | {' | '.join(f'{hz:,.0f} Hz' for hz in RATES_HZ)} |")
    print("|---" * (1 + len(RATES_HZ)) + "|")
    for name, by_rate in rows.items():
        cells = [_cell(by_rate.get(hz, ())) for hz in RATES_HZ]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def _cell(values: Sequence[float]) -> str:
    if not values:
        return "–"
    return f"{statistics.median(values):.3f} ({max(values):.3f})"
