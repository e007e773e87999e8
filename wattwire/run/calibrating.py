"""Measure the machine's energy at several CPU loads, for a calibration."""

from __future__ import annotations

import queue
import random
import secrets
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wattwire.model.deployment import Deployment
from wattwire.model.errors import MissingError, unknown
from wattwire.rig import AgentClient
from wattwire.run.node_specs import SECOND_NS
from wattwire.run.results import power
from wattwire.run.results.convert import quantities_frame
from wattwire.run.results.resources import Readings

TICK_HZ = 20.0
SETTLE_S = 0.3
"""Wait (s) after a load begins or ends, until its processes have started or ended."""

LOAD = """
import sys, time
cpu_s, period_s = float(sys.argv[1]), 0.023
due = time.monotonic()
while True:
    end = time.thread_time() + cpu_s * period_s
    while time.thread_time() < end: pass
    due = max(due + period_s, time.monotonic() - period_s)
    time.sleep(max(0.0, due - time.monotonic()))
"""
"""Uses a share of a core. Its period is not a multiple of a clock tick, to avoid aliasing."""


@dataclass(frozen=True)
class Measured:
    """Measured CPU use and power of one load step.

    `requested_cores` is the requested load, `load_cores` the CPU use of the load processes, and
    `busy_cores` the CPU use of the whole machine. Power is in W.
    """

    block: int
    requested_cores: float
    busy_cores: float
    load_cores: float
    power_w: float


def ranked_meters(meters: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the meters that have a ranked energy source, whether or not it is readable."""
    return [m for m in meters if any(q.get("rank") is not None for q in m["quantities"])]


def counter_meters(meters: list[dict[str, Any]], named: str | None) -> list[str]:
    """Return the names of the meters to calibrate with: the meter `named`, or all readable meters.

    Raise MissingError, with each meter's requirements, if no such meter is readable.
    """
    ranked = {m["name"]: m for m in ranked_meters(meters)}
    if named is not None and named not in ranked:
        raise unknown("calibrate: --meter", "meter with an energy counter", named, ranked)
    candidates = [ranked[named]] if named else [m for m in ranked.values() if m["default"]]
    present = [m["name"] for m in candidates if m["state"] == "present"]
    if not present:
        lines = [f"  {m['name']}: {m['reason']}" for m in candidates]
        lines += [f"  to grant it: {m['grant']}" for m in candidates if m["grant"]]
        raise MissingError(
            "calibrate: no energy counter can be read here, so calibration has no reference:\n"
            + "\n".join(lines)
            + "\nThe estimate uses its default range."
        )
    return present


class LoadSteps:
    """Constant loads of `step_s` each, in random order, with idle steps between them."""

    def __init__(
        self,
        agent: AgentClient,
        folder: Path,
        blocks: int,
        step_s: float,
        cores: int,
        tell: Callable[[str], None],
        seed: int = 1,
    ) -> None:
        self._agent, self._folder = agent, folder
        self._blocks, self._step_s, self._cores = blocks, step_s, cores
        self._tell, self._random = tell, random.Random(seed)
        self._token = "ww" + secrets.token_hex(5)
        self._spans: list[tuple[int, float, power.Span, list[str]]] = []
        self._events: queue.Queue[dict[str, Any]] = queue.Queue()
        self._count = 0

    @property
    def levels(self) -> list[float]:
        """Return the loads to run, in cores: half a core, one core and all cores."""
        return sorted({0.5, 1.0, float(self._cores)})

    @property
    def seconds(self) -> float:
        """Return the approximate duration (s) of all steps."""
        return self._blocks * (2 * len(self.levels) + 1) * (self._step_s + SETTLE_S)

    def measure(self, meters: list[str]) -> tuple[power.Source | None, list[Measured]]:
        """Run all steps.

        Return the energy source that covers all of them, and the measured steps.
        """
        path = self._folder / "readings.bin"
        request = self._agent.request
        request("sample_start", path=str(path), tick_hz=TICK_HZ, meters=meters, subjects={})
        try:
            for block in range(1, self._blocks + 1):
                self._block(block)
        finally:
            sampling = request("sample_stop")
            request("clean", run=self._token)
        series = sampling["series"]
        readings = Readings(quantities_frame("calibration", Deployment(()), path, series))
        source = power.choose(readings, series, [span for _, _, span, _ in self._spans])
        return source, [self._measured(readings, source, *step) for step in self._spans]

    def _block(self, block: int) -> None:
        levels = self._random.sample(self.levels, len(self.levels))
        self._tell(f"block {block} of {self._blocks}")
        self._step(block, 0.0)
        for level in levels:
            self._step(block, level)
            self._step(block, 0.0)

    def _step(self, block: int, level: float) -> None:
        names = [self._load(share) for share in _shares(level)]
        try:
            time.sleep(SETTLE_S)
            begin_ns = int(self._agent.request("mark", name=f"begin-{self._count}")["t_ns"])
            time.sleep(self._step_s)
            end_ns = int(self._agent.request("mark", name=f"end-{self._count}")["t_ns"])
        finally:
            for name in names:
                self._agent.request("signal", process=name, signal="KILL", tree=True)
        self._spans.append((block, level, (begin_ns, end_ns), names))

    def _load(self, share: float) -> str:
        self._count += 1
        name = f"load-{self._count}"
        log = str(self._folder / f"{name}.log")
        self._agent.request(
            "spawn",
            process=name,
            run=self._token,
            argv=[sys.executable, "-S", "-c", LOAD, str(share)],
            env={},
            cwd=str(self._folder),
            stdout=log,
            stderr=log,
            clear_env=False,
        )
        return name

    @staticmethod
    def _measured(
        readings: Readings,
        source: power.Source | None,
        block: int,
        requested_cores: float,
        span: power.Span,
        names: list[str],
    ) -> Measured:
        busy_ns_per_s = readings.rate("busy_time", "machine", "machine", *span)
        watts = power.mean_w(readings, source, span)
        if busy_ns_per_s is None or watts is None:
            raise MissingError(
                "calibrate: no counter could be read throughout (for example, a battery was "
                "charging or a device disappeared). Nothing was written. "
                "Fix the cause and calibrate again."
            )
        rates = [readings.rate("cpu_time", "process", name, *span) for name in names]
        load_ns_per_s = sum(rate for rate in rates if rate is not None)
        return Measured(
            block, requested_cores, busy_ns_per_s / SECOND_NS, load_ns_per_s / SECOND_NS, watts
        )


def _shares(level: float) -> list[float]:
    """Return the share of one core that each load process uses, for a load of `level` cores."""
    full_cores = int(level)
    return [1.0] * full_cores + ([level - full_cores] if level > full_cores else [])
