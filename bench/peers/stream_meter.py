"""Measure what an emulated meter outside the machine adds to the agent, and whether it costs ticks.

The meter sends a record per second, and the tick tier reads ten processes meanwhile. In each pair,
the agent samples once with the meter and once without it. Then 20 agents sample at once, each with
a meter of its own that hangs for 30 s, and the ticks of each are counted.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from bench.nodes import peak_mib
from bench.pairs import CONFIDENCE, compared, interleaved, table
from bench.sampler import (
    PROCESSES,
    PROMISED_PERCENT,
    share_of_a_core,
    spawn_loads,
    tick_meters,
)
from meters.http_plug.tests.emulator import Plug
from meters.watts_up.tests.emulator import WattsUp
from wattwire.model.deployment import Deployment
from wattwire.rig import AgentClient
from wattwire.run.results.convert import quantities_frame

PAIRS = 10
POWER_W = 41.3
METER, PLUG, FAST = "watts_up", "http_plug", "fake"
THREAD_PERCENT_MAX = 0.05
ADDED_MIB_MAX = 1.0
TRIALS = 20
HANG_S, BEFORE_S, AFTER_S = 30.0, 4.0, 4.0
TICK_HZ = 10.0


@dataclass(frozen=True)
class Cost:
    """What a sampling used: percent of a core (agent, thread of the meter), peak of memory."""

    agent_percent: float
    thread_percent: float
    peak_mib: float


def thread_s(pid: int, name: str) -> float:
    """Return the CPU time (s) of the threads of this name of a process."""
    times_ns = [
        int((task / "schedstat").read_text().split()[0])
        for task in Path(f"/proc/{pid}/task").iterdir()
        if (task / "comm").read_text().strip() == name
    ]
    return sum(times_ns) / 1e9


def cost(folder: Path, tick_hz: float, addresses: Mapping[str, str]) -> Cost:
    """Return the cost of a sampling by a new agent, with the meters at `addresses`."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        agent = AgentClient(Path(name, "agent"))
        try:
            spawn_loads(agent, Path(name))
            agent.request("sample_start", path=f"{name}/readings.bin", tick_hz=tick_hz,
                          meters=[*tick_meters(agent), *addresses], subjects={},
                          addresses=dict(addresses))  # fmt: skip
            thread_before_s, began_s = thread_s(agent.pid, METER), time.monotonic()
            share = share_of_a_core(agent.pid)
            thread_used_s = thread_s(agent.pid, METER) - thread_before_s
            seconds = time.monotonic() - began_s
            done = agent.request("sample_stop")
            # Missed ticks would make the agent look cheaper.
            share *= (done["ticks"] + done["missed"]) / done["ticks"]
            return Cost(100 * share, 100 * thread_used_s / seconds, peak_mib(agent.pid))
        finally:
            agent.close()


def costs(pairs: int) -> Iterator[tuple[float, tuple[Cost, ...], tuple[Cost, ...]]]:
    """Yield each rate (Hz) with the costs of the samplings with the meter, and without it."""
    meter = WattsUp(lambda _: POWER_W)
    try:
        with tempfile.TemporaryDirectory(prefix="wattwire-bench-") as name:
            for tick_hz in PROMISED_PERCENT:
                sides: list[Callable[[], Cost]] = [
                    lambda hz=tick_hz, at=at: cost(Path(name), hz, at)  # type: ignore[misc]
                    for at in ({METER: meter.path}, {})
                ]
                with_meter, without = interleaved(f"stream meter, {tick_hz:g} Hz", sides, pairs)
                yield tick_hz, with_meter, without
    finally:
        meter.close()


@dataclass(frozen=True)
class Trial:
    """The ticks of a sampling in which a meter hung, and the meter's readings after that."""

    due: int
    ticks: int
    missed: int
    readings_after: int
    faults: int

    @property
    def is_lossless(self) -> bool:
        """Whether the agent noticed the hang, missed no tick and read the meter afterwards."""
        is_noticed = self.faults > 0 and self.readings_after > 0
        return is_noticed and self.missed == 0 and self.ticks >= self.due


def run_in_real_time(pid: int) -> None:
    """Let an agent run before all others, so that only the meter can cost it a tick.

    The agent's later threads inherit this. Without the right, other load costs ticks, too.
    """
    with contextlib.suppress(PermissionError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setscheduler(int(task.name), os.SCHED_RR, os.sched_param(1))


def hang_between_records(meter: WattsUp, _: Plug) -> None:
    """Let the meter stop right after a record."""
    records = len(meter.sent_w)
    while len(meter.sent_w) == records:
        time.sleep(0.001)
    meter.hangs_until_s = time.monotonic() + HANG_S


def hang_in_a_record(meter: WattsUp, _: Plug) -> None:
    """Let the meter stop within a record."""
    meter.hangs_until_s = time.monotonic() + HANG_S
    os.write(meter.end, meter.record(POWER_W)[:20])


def hang_in_a_request(_: WattsUp, plug: Plug) -> None:
    """Let the plug accept each connection and request, and answer nothing."""
    plug.hang_s = HANG_S
    threading.Timer(HANG_S, setattr, (plug, "hang_s", 0.0)).start()


HANGS: dict[str, tuple[str, Callable[[WattsUp, Plug], None] | None]] = {
    "watts_up, between records": (METER, hang_between_records),
    "watts_up, within a record": (METER, hang_in_a_record),
    "watts_up, before it answers the first request": (METER, None),
    "http_plug, during a request": (PLUG, hang_in_a_request),
}
"""Kind of hang → meter, and the function that begins the hang; None: it begins before the agent."""


def trial(kind: str, folder: Path, start: threading.Barrier) -> Trial:
    """Return the ticks of a sampling in which the meter hangs, once all trials are ready."""
    name, hang = HANGS[kind]
    meter, plug = WattsUp(lambda _: POWER_W), Plug(POWER_W)
    at = {METER: meter.path, PLUG: f"shelly:127.0.0.1:{plug.port}"}[name]
    path = folder / "readings.bin"
    agent = AgentClient(folder / "agent")
    try:
        run_in_real_time(agent.pid)
        start.wait()
        if hang is None:
            meter.hangs_until_s = time.monotonic() + HANG_S
        agent.request("sample_start", path=str(path), tick_hz=TICK_HZ, subjects={},
                      meters=[FAST, *tick_meters(agent), name], addresses={name: at})  # fmt: skip
        if hang is not None:
            time.sleep(BEFORE_S)
            hang(meter, plug)
        time.sleep(HANG_S)
        after_ns = time.monotonic_ns()
        time.sleep(AFTER_S)
        done: Any = agent.request("sample_stop")
    finally:
        agent.close()
        plug.close()
        meter.close()
    frame = quantities_frame("run", Deployment(()), path, done["series"])
    info = next(s["info"] for s in done["series"] if s["meter"] == name)
    # Read at the start, at each tick and at the stop. The first tick begins within a period.
    times_ns = frame.filter(pl.col("meter") == FAST)["t_ns"].to_numpy()
    due = int((times_ns[-1] - times_ns[0]) / 1e9 * TICK_HZ) - 1
    after = frame.filter((pl.col("meter") == name) & (pl.col("t_ns") > after_ns))
    return Trial(due, done["ticks"], done["missed"], after.height, info["faults"])


def report(pairs: int) -> None:
    """Print the added cost, with verdicts, and the ticks of the trials."""
    rows = list(costs(pairs))
    print("\n## A meter outside the machine and the sampler's tick tier\n")
    print(
        "| what | without it, median | with it, median | 95 % limit, upper | promised | verdict |"
    )
    print("|---|---|---|---|---|---|")
    for tick_hz, with_meter, without in rows:
        label = f"agent, {PROCESSES} processes, {tick_hz:g} Hz, % of a core"
        percents = [[c.agent_percent for c in side] for side in (without, with_meter)]
        print(_row(label, percents[0], percents[1], percents[1], PROMISED_PERCENT[tick_hz]))
        shares = [c.thread_percent for c in with_meter]
        print(_row("its thread for the meter, % of a core", [], shares, shares, THREAD_PERCENT_MAX))
        peaks = [[c.peak_mib for c in side] for side in (without, with_meter)]
        added = [after - before for before, after in zip(*peaks, strict=True)]
        label = "peak of its resident memory, MiB; limit and promise of the difference"
        print(_row(label, peaks[0], peaks[1], added, ADDED_MIB_MAX), flush=True)
    ratios = [
        comparison
        for tick_hz, with_meter, without in rows
        for comparison in compared(
            f"agent with the meter against without, {tick_hz:g} Hz", "% of a core",
            (
                tuple(c.agent_percent for c in with_meter),
                tuple(c.agent_percent for c in without),
            ),
            None,
        )
    ]  # fmt: skip
    print(f"\n{table(ratios)}", flush=True)
    hanging()


def _row(
    what: str,
    without: Sequence[float],
    with_meter: Sequence[float],
    judged: Sequence[float],
    promise: float,
) -> str:
    """Return a row. The limits are one-sided t limits of the mean of `judged`."""
    count = len(judged)
    if count < 2:
        return f"| {what} | – | – | – | ≤ {promise:g} | absent |"
    error = np.std(judged, ddof=1) / np.sqrt(count) * stats.t.ppf(CONFIDENCE, count - 1)
    low, high = np.mean(judged) - error, np.mean(judged) + error
    verdict = "passed" if high <= promise else "failed" if low > promise else "undecided"
    medians = [
        f"{statistics.median(values):.4g}" if values else "–" for values in (without, with_meter)
    ]
    return f"| {what} | {' | '.join(medians)} | {high:.4g} | ≤ {promise:g} | {verdict} |"


def hanging() -> None:
    """Print the ticks of agents whose meters hang for HANG_S, and how many missed none."""
    kinds = [list(HANGS)[k % len(HANGS)] for k in range(TRIALS)]
    start = threading.Barrier(TRIALS)
    with tempfile.TemporaryDirectory(prefix="wattwire-bench-") as name:
        folders = [Path(name, str(k)) for k in range(TRIALS)]
        with ThreadPoolExecutor(TRIALS) as pool:
            trials = list(pool.map(lambda kf: trial(*kf, start), zip(kinds, folders, strict=True)))
    print(f"\n## A meter that hangs for {HANG_S:g} s, ticks at {TICK_HZ:g} Hz\n")
    print("| meter, hang | ticks expected | recorded | missed | faults | readings after |")
    print("|---|---|---|---|---|---|")
    for kind, one in zip(kinds, trials, strict=True):
        counts = (one.due, one.ticks, one.missed, one.faults, one.readings_after)
        print(f"| {kind} | {' | '.join(map(str, counts))} |")
    lossless = sum(one.is_lossless for one in trials)
    print(f"\nTrials without a missed tick: {lossless} of {TRIALS}", flush=True)
