"""Compare where the nodes of different treatments ran, and attribute two modes of one treatment.

A treatment's placement is the mean over its runs of the shares of time that connected nodes spent
on one CPU, on siblings, under one cache and further apart (`run/results/cores.py`).

What is named: pairs of treatments that differ in one factor, if a share differs by at least
SHARE_MIN and Welch's interval of the difference, with Bonferroni over pairs and shares, excludes 0.
Reference: Welch (1947), doi:10.1093/biomet/34.1-2.28.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.special import stdtrit

from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.model.cores import CORES
from wattwire.model.cores.topology import NEARNESS
from wattwire.model.derived import FloatArray, column

SHARE_MIN = 0.25
"""Smallest difference of a share that is named: the latency of a pair on one CPU is a fraction of
that on two, so a quarter of the time changes a mean by more than usual margins.
"""
CONFIDENCE = 0.95
MODES_RUNS_MIN = 6
MODE_RUNS_MIN = 2
MODE_RATIO_MIN = 1.3
MODE_GAP_SDS = 4.0
BY_PLACEMENT, BY_TIME, UNKNOWN = "placement", "time", "unknown"
COLUMNS = tuple(f"ran_on_{name}" for name in NEARNESS)
Treatment = tuple[str, ...]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Placed:
    """Where the nodes of a treatment ran. `shares` has shape (runs, len(NEARNESS))."""

    treatment: Treatment
    shares: FloatArray

    @property
    def mean(self) -> FloatArray:
        """Return the mean share of each entry of NEARNESS."""
        return np.asarray(self.shares.mean(axis=0))


@dataclass(frozen=True)
class PlacedApart:
    """Two treatments that differ in `factor` and ran in different placements."""

    factor: str
    one: Placed
    other: Placed
    share: int
    """Index in NEARNESS of the share that differs most."""

    @property
    def difference(self) -> float:
        return float(abs(self.one.mean[self.share] - self.other.mean[self.share]))


@dataclass(frozen=True)
class Modes:
    """Two modes among the runs of a treatment. `ratio` is that of their geometric means."""

    treatment: Treatment
    ratio: float
    runs: tuple[int, int]
    """Number of runs of the lower and of the higher mode."""
    cause: str
    """BY_PLACEMENT, BY_TIME (the modes follow each other, as a change of the machine does) or
    UNKNOWN.
    """


def placed(evidence: Evidence) -> list[Placed]:
    """Return where each treatment's nodes ran; none without readings."""
    if not {*COLUMNS} <= {*evidence.usable.columns}:
        return []
    found = []
    for treatment, frame in by_treatment(evidence, evidence.usable).items():
        shares = _shares(frame)
        known = shares[np.isfinite(shares).all(axis=1)]
        if len(known):
            found.append(Placed(treatment, known))
    return found


def placed_apart(evidence: Evidence) -> list[PlacedApart]:
    """Return the pairs with different placements, the largest difference of each factor first."""
    pairs = [*_pairs(evidence, placed(evidence))]
    level = 1 - (1 - CONFIDENCE) / max(1, len(pairs) * len(NEARNESS))
    apart = [
        PlacedApart(factor, one, other, share)
        for factor, one, other in pairs
        for share in [int(np.argmax(np.abs(one.mean - other.mean)))]
        if _differ(one.shares[:, share], other.shares[:, share], level)
    ]
    return sorted(apart, key=lambda pair: -pair.difference)


def modes(evidence: Evidence, response: str = "latency_p50_us") -> list[Modes]:
    """Return the treatments whose runs have two modes of a response, each with its cause.

    The runs are divided where the sum of squares of the logarithm within both parts is smallest.
    They are modes if the gap between the parts is at least MODE_RATIO_MIN and MODE_GAP_SDS standard
    deviations within them. A cause by time needs fewer changes between the modes, in the order of
    the runs, than chance gives with 5 % (Wald and Wolfowitz 1940, doi:10.1214/aoms/1177731909).
    """
    if response not in evidence.usable.columns:
        return []
    return [
        found
        for treatment, frame in by_treatment(evidence, evidence.usable).items()
        for found in _modes_of(treatment, frame, response)
    ]


def _shares(frame: pl.DataFrame) -> FloatArray:
    return np.column_stack([column(frame, name) for name in COLUMNS])


def _pairs(evidence: Evidence, entries: Sequence[Placed]) -> Iterator[tuple[str, Placed, Placed]]:
    """Yield the pairs of treatments that differ in one factor alone, other than the placement."""
    for position, factor in enumerate(evidence.varied):
        groups: dict[Treatment, list[Placed]] = {}
        for entry in entries if factor != CORES else ():
            others = entry.treatment[:position] + entry.treatment[position + 1 :]
            groups.setdefault(others, []).append(entry)
        for group in groups.values():
            yield from ((factor, *pair) for pair in combinations(group, 2))


def _differ(one: FloatArray, other: FloatArray, level: float) -> bool:
    """Return whether the means differ by SHARE_MIN and an interval of this level excludes 0."""
    difference = abs(float(one.mean() - other.mean()))
    if difference < SHARE_MIN or min(len(one), len(other)) < 2:
        return False
    variances = np.array([one.var(ddof=1) / len(one), other.var(ddof=1) / len(other)])
    if variances.sum() == 0:
        return True
    degrees = variances.sum() ** 2 / (
        variances[0] ** 2 / (len(one) - 1) + variances[1] ** 2 / (len(other) - 1)
    )
    half_width = stdtrit(degrees, (1 + level) / 2) * math.sqrt(variances.sum())
    return bool(difference > half_width)


def _modes_of(treatment: Treatment, frame: pl.DataFrame, response: str) -> Iterator[Modes]:
    in_order = frame.sort("block", "position")
    values = column(in_order, response)
    usable = np.isfinite(values) & (values > 0)
    logs, shares = np.log(values[usable]), _shares_or_none(in_order, usable)
    if len(logs) < MODES_RUNS_MIN:
        return
    ranked = np.sort(logs)
    splits = range(MODE_RUNS_MIN, len(ranked) - MODE_RUNS_MIN + 1)
    split = min(splits, key=lambda n: ranked[:n].var() * n + ranked[n:].var() * (len(ranked) - n))
    low, high = ranked[:split], ranked[split:]
    gap = high[0] - low[-1]
    within = math.sqrt((low.var() * len(low) + high.var() * len(high)) / (len(ranked) - 2))
    if gap < math.log(MODE_RATIO_MIN) or gap < MODE_GAP_SDS * within:
        return
    is_high = logs >= high[0]
    ratio = float(math.exp(high.mean() - low.mean()))
    yield Modes(treatment, ratio, (len(low), len(high)), _cause(is_high, shares))


def _shares_or_none(frame: pl.DataFrame, usable: BoolArray) -> FloatArray | None:
    if not {*COLUMNS} <= {*frame.columns}:
        return None
    return _shares(frame)[usable]


def _cause(is_high: BoolArray, shares: FloatArray | None) -> str:
    """Return the cause of two modes: placement if a share separates them, or the order of time."""
    if shares is not None:
        for share in shares.T:
            low, high = share[~is_high], share[is_high]
            separate = low.max() < high.min() or high.max() < low.min()
            if separate and abs(low.mean() - high.mean()) >= SHARE_MIN:
                return BY_PLACEMENT
    changes = int(np.count_nonzero(is_high[1:] != is_high[:-1]))
    return BY_TIME if _chance_of_changes(changes, is_high) <= 1 - CONFIDENCE else UNKNOWN


def _chance_of_changes(changes: int, is_high: BoolArray) -> float:
    """Return the probability of at most this number of changes in a random order."""
    high = int(np.count_nonzero(is_high))
    low = len(is_high) - high
    orders = math.comb(low + high, high)

    def with_runs(runs: int) -> int:
        """Return the number of orders with this number of runs of equal values."""
        half, odd = divmod(runs, 2)
        if not odd:
            return 2 * math.comb(low - 1, half - 1) * math.comb(high - 1, half - 1)
        return math.comb(low - 1, half) * math.comb(high - 1, half - 1) + math.comb(
            low - 1, half - 1
        ) * math.comb(high - 1, half)

    return sum(with_runs(runs) for runs in range(2, changes + 2)) / orders
