"""Find two modes among the runs of a treatment, and attribute them to placement or to time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from wattwire.analysis.answering.confidence import CONFIDENCE
from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.analysis.responses import LATENCY_P50
from wattwire.analysis.topics.placements.apart import SHARE_MIN, Treatment, shares_of
from wattwire.model.derived import FloatArray, column

MODES_RUNS_MIN = 6
MODE_RUNS_MIN = 2
MODE_RATIO_MIN = 1.3
MODE_GAP_SDS = 4.0
BY_PLACEMENT, BY_TIME, UNKNOWN = "placement", "time", "unknown"
BoolArray = npt.NDArray[np.bool_]


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


def modes(evidence: Evidence) -> list[Modes]:
    """Return the treatments whose runs have two modes of the median latency, each with its cause.

    The runs are divided where the sum of squares of the logarithm within both parts is smallest.
    They are modes if the gap between the parts is at least MODE_RATIO_MIN and MODE_GAP_SDS standard
    deviations within them. A cause by time needs fewer changes between the modes, in the order of
    the runs, than chance gives with 5 % (Wald and Wolfowitz 1940, doi:10.1214/aoms/1177731909).
    There are none without the latency or the order of the runs.
    """
    if not {LATENCY_P50.column, "position"} <= set(evidence.usable.columns):
        return []
    return [
        found
        for treatment, frame in by_treatment(evidence, evidence.usable).items()
        for found in _modes_of(treatment, frame)
    ]


def _modes_of(treatment: Treatment, frame: pl.DataFrame) -> Iterator[Modes]:
    in_order = frame.sort("block", "position")
    values = column(in_order, LATENCY_P50.column)
    usable = np.isfinite(values) & (values > 0)
    logs, shares = np.log(values[usable]), shares_of(in_order)[usable]
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


def _cause(is_high: BoolArray, shares: FloatArray) -> str:
    """Return the cause of two modes: placement if a share separates them, or the order of time."""
    for share in shares.T:  # without readings, no comparison with NaN holds
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
