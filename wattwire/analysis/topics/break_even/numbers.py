"""Compute the amount of work from which handing it over takes less time than doing it locally.

The time per unit of each worker is measured: the difference of its round trips with and without
work. A message over another carrier takes that carrier's round trip without work, plus the
worker's time. `Worker.error` shows how well this sum predicts the measured round trips with work.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis.carried import carried
from wattwire.analysis.dataset import Evidence, levels_of, levels_run, rows_at
from wattwire.analysis.responses import Response, resolve
from wattwire.model import words
from wattwire.model.derived import FloatArray
from wattwire.model.output_requests import ShownBreakEven
from wattwire.stats.break_even import (
    BreakEven,
    InSomeBlocks,
    NeverUpTo,
    break_even,
    crossing,
    unit_time,
)

ADDITIVE_MAX = 0.15
"""Largest relative error of predicted round trips that count as additive."""
SIZES_MIN = 2
Curve = Mapping[float, float]
"""Units of work → round trip (in the response's unit) of one block."""


@dataclass(frozen=True)
class Worker:
    """A worker with its time per unit in each block, in the response's unit.

    `error` is the largest relative deviation of the median predicted from the median measured
    round trip with work. Above `error_max`, round trip and work are not additive.
    """

    title: str
    per_unit: Mapping[int, float]
    error: float
    error_max: float = ADDITIVE_MAX

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return len(self.per_unit)

    @property
    def time(self) -> stats.Interval | float:
        """The mean time per unit over the blocks, with a t interval from three blocks on."""
        return stats.mean_interval(list(self.per_unit.values()))

    @property
    def mean(self) -> float:
        """The mean time per unit over the blocks."""
        return math.fsum(self.per_unit.values()) / len(self.per_unit)

    @property
    def is_additive(self) -> bool:
        """Whether the sum of round trip and work predicts the measured round trips."""
        return self.error <= self.error_max


@dataclass(frozen=True)
class Offload:
    """The break-even if `carrier` hands the work of a robot with `own` over to `worker`.

    `carrier` is the title of a level. `unit_title` is the plural of a unit of work.
    """

    carrier: str
    worker: Worker
    own: Worker
    result: BreakEven
    unit_title: str

    @property
    def is_faster(self) -> bool:
        """Whether the worker needs less time per unit than the robot's own one."""
        return self.worker.mean < self.own.mean

    @property
    def interval(self) -> stats.Interval | None:
        """The break-even with its interval; None without an interval."""
        return self.result if isinstance(self.result, stats.Interval) else None

    @property
    def kind(self) -> str:
        """The kind of a result without an interval: "never", "in some blocks" or "without"."""
        if isinstance(self.result, NeverUpTo):
            return "never"
        return "in some blocks" if isinstance(self.result, InSomeBlocks) else "without"

    @property
    def units(self) -> int:
        """The whole units of the largest message of a break-even that is never reached, else 0.

        The message may have room for a fraction of another unit.
        """
        return math.floor(self.result.units) if isinstance(self.result, NeverUpTo) else 0


@dataclass(frozen=True)
class Request:
    """A request of the study: the workers with a measured time per unit, and their break-evens.

    `number` is its place in the study, from 1 on. `unit` is that of the response. `varied` has the
    titles of other factors that vary. If it is not empty, there are no results, because they would
    mix treatments.
    """

    number: int
    spec: ShownBreakEven
    unit: str
    varied: tuple[str, ...] = ()
    workers: tuple[Worker, ...] = ()
    offloads: tuple[Offload, ...] = ()

    @property
    def faster(self) -> tuple[Offload, ...]:
        """The break-evens with workers that are faster than the robot's own one."""
        return tuple(offload for offload in self.offloads if offload.is_faster)

    @property
    def slower(self) -> tuple[Offload, ...]:
        """The break-evens with workers that are not faster than the robot's own one."""
        return tuple(offload for offload in self.offloads if not offload.is_faster)


@dataclass(frozen=True)
class BreakEvens:
    """All break-evens that the study requests."""

    requests: tuple[Request, ...] = ()


def break_evens(evidence: Evidence) -> BreakEvens:
    """Return the time per unit of each worker, and the break-even of each pair and carrier."""
    specs = evidence.study.shown.break_evens
    return BreakEvens(tuple(_requested(evidence, spec, n) for n, spec in enumerate(specs, 1)))


def _requested(evidence: Evidence, spec: ShownBreakEven, number: int) -> Request:
    response = resolve(spec.response, evidence.described)
    used = (spec.size, spec.work, spec.by, *spec.where)
    others = [words.factor_title(name) for name in evidence.varied if name not in used]
    if others:
        return Request(number, spec, response.unit, tuple(others))
    idle, busy = (_curves(evidence, spec, response, level) for level in (spec.idle, spec.busy))
    titles = {level: evidence.title(spec.by, level) for level in levels_run(evidence, spec.by)}
    workers = [
        worker
        for level, title in titles.items()
        if str(level) in spec.workers
        for worker in [_worker(title, idle.get(level, {}), busy.get(level, {}))]
        if worker is not None
    ]
    offloads = [
        Offload(title, worker, own, result, spec.unit_title)
        for carrier, title in titles.items()
        for own in workers
        for worker in workers
        if worker is not own
        for result in [_break_even(idle.get(carrier, {}), worker, own)]
        if result is not None
    ]
    return Request(number, spec, response.unit, (), tuple(workers), tuple(offloads))


def _curves(
    evidence: Evidence, spec: ShownBreakEven, response: Response, work: str
) -> dict[Any, dict[int, dict[float, float]]]:
    """Return level of `by` → block → curve of the valid runs at a level of `work`."""
    frame = evidence.usable.filter(pl.Series(rows_at(evidence.usable, spec.where)))
    values = carried(frame, response.column)
    fixed = evidence.study.fixed
    rows = zip(
        *(
            levels_of(frame, name) if name in evidence.varied else [fixed.get(name)] * frame.height
            for name in (spec.by, spec.size, spec.work)
        ),
        frame["block"].to_list(),
        values.tolist(),
        strict=True,
    )
    curves: dict[Any, dict[int, dict[float, float]]] = {}
    for level, size, run_work, block, value in rows:
        if str(run_work) == work and np.isfinite(value):
            units = (float(size) - spec.frame) / spec.unit
            curves.setdefault(level, {}).setdefault(int(block), {})[units] = value
    return curves


def _worker(title: str, idle: Mapping[int, Curve], busy: Mapping[int, Curve]) -> Worker | None:
    """Return a worker, or None if no block has its round trips with and without work."""
    per_unit = {}
    for block in sorted(set(idle) & set(busy)):
        units = [k for k in sorted(busy[block]) if k > 0 and k in idle[block]]
        if units:
            per_unit[block] = unit_time(
                np.array(units), _at(idle[block], units), _at(busy[block], units)
            )
    if not per_unit:
        return None
    return Worker(title, per_unit, max(_errors(idle, busy, per_unit)))


def _errors(
    idle: Mapping[int, Curve], busy: Mapping[int, Curve], per_unit: Mapping[int, float]
) -> Iterator[float]:
    """Yield the relative error of the prediction at each size, medians over the blocks."""
    sizes = {k for block in per_unit for k in busy[block] if k > 0 and k in idle[block]}
    for k in sorted(sizes):
        blocks = [block for block in per_unit if k in busy[block] and k in idle[block]]
        predicted = np.median([idle[block][k] + k * per_unit[block] for block in blocks])
        measured = np.median([busy[block][k] for block in blocks])
        yield float(abs(predicted / measured - 1.0))


def _break_even(idle: Mapping[int, Curve], worker: Worker, own: Worker) -> BreakEven | None:
    """Return the break-even over a carrier, or None if no block has all round trips."""
    crossings, largest = [], 0.0
    for block in sorted(set(idle) & set(worker.per_unit) & set(own.per_unit)):
        units = sorted(idle[block])
        if len(units) >= SIZES_MIN and units[-1] >= 1:
            saved = own.per_unit[block] - worker.per_unit[block]
            crossings.append(crossing(np.array(units), _at(idle[block], units), saved))
            largest = max(largest, units[-1])
    return break_even(np.array(crossings), largest) if crossings else None


def _at(curve: Curve, units: list[float]) -> FloatArray:
    return np.array([curve[k] for k in units], dtype=np.float64)
