"""Compare where the nodes of different treatments ran, and attribute two modes of one treatment.

A treatment's placement is the mean over its runs of the shares of time that connected nodes spent
on one CPU, on siblings, under one cache and further apart (`run/results/cores.py`).

What is named: a level of a factor beside its baseline, on average over the other factors or in one
treatment, if a share differs by at least SHARE_MIN and more than the runs scatter. Few runs do not
show how much one treatment scatters, so each variance is moderated towards the mean variance of all
treatments (Smyth 2004, doi:10.2202/1544-6115.1027), and not below it: five runs of a placement that
sticks for a run may all be equal. Holm's step-down procedure (1979, doi:10.2307/4615733) covers all
comparisons.
What it misses: treatments whose placement the study controls, because they run as asked or their
runs are invalid.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.special import stdtr

from wattwire import stats
from wattwire.analysis.answering.answer_types import Answer
from wattwire.analysis.answering.baselines import baseline_in, baseline_of
from wattwire.analysis.answering.disagreement import strata_confidence
from wattwire.analysis.answering.single_contrast import contrast
from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.analysis.responses import LATENCY_P50, Response, measured, resolve
from wattwire.model.cores import CORES, FREE
from wattwire.model.cores.topology import NEARNESS
from wattwire.model.derived import FloatArray, column

SHARE_MIN = 0.25
"""Smallest difference of a share that is named: the latency of a pair on one CPU is a fraction of
that on two, so a quarter of the time changes a mean by more than usual margins.
"""
CONFIDENCE = 0.95
PRIOR_DEGREES = 4
"""Weight of the mean variance of all treatments in that of each: as that of five own runs."""
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
    """A level of `factor` and its baseline, which ran in different placements.

    `pairs` has the treatments (baseline, level), which are equal in the other factors.
    """

    factor: str
    pairs: tuple[tuple[Placed, Placed], ...]
    share: int
    """Index in NEARNESS of the share that differs most."""

    @property
    def shares(self) -> tuple[float, float]:
        """Return the share of baseline and level, as means over the pairs."""
        baseline, level = np.mean([[p.mean[self.share] for p in pair] for pair in self.pairs], 0)
        return float(baseline), float(level)

    @property
    def difference(self) -> float:
        return abs(self.shares[0] - self.shares[1])


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
    found = []
    for treatment, frame in by_treatment(evidence, evidence.usable).items():
        shares = shares_of(frame)
        known = shares[np.isfinite(shares).all(axis=1)]
        if len(known):
            found.append(Placed(treatment, known))
    return found


def placed_apart(evidence: Evidence) -> list[PlacedApart]:
    """Return what ran in different placements, the largest difference first."""
    comparisons = [*_comparisons(evidence, placed(evidence))]
    shares = [[(one.shares, other.shares) for one, other in pairs] for _, pairs in comparisons]
    apart = [PlacedApart(*comparisons[index], share) for index, share in different_shares(shares)]
    return sorted(apart, key=lambda found: -found.difference)


def ratios_by_cores(
    evidence: Evidence, apart: PlacedApart
) -> tuple[Response, list[tuple[Any, stats.Interval]]] | None:
    """Return a response, and (level of `cores`, ratio to the baseline) of what ran apart.

    The response is the first with a ratio that a question on the factor names. The confidence is
    that of ratios at the levels of another factor. None without two such levels.
    """
    if CORES not in evidence.varied:
        return None
    factor = apart.factor
    word = apart.pairs[0][1].treatment[evidence.varied.index(factor)]
    level = next(v for v in evidence.factors[factor] if evidence.word(factor, v) == word)
    confidence = strata_confidence(evidence, factor)
    for response in _responses(evidence, factor):
        pending = stats.NotComputable("not computed")
        baseline = baseline_in(evidence, factor, response)
        answer = Answer("", response, factor, level, baseline, pending, pending)
        results = [
            (cores, contrast(evidence, evidence.usable, answer, confidence, (CORES, cores)))
            for cores in evidence.factors[CORES]
        ]
        ratios = [(cores, r.interval) for cores, r in results if isinstance(r, stats.Ratio)]
        if len(ratios) > 1:
            return response, ratios
    return None


def _responses(evidence: Evidence, factor: str) -> list[Response]:
    """Return the measured responses of the questions on a factor, and the median latency."""
    questions = [q for q in evidence.study.questions if factor in q.factors]
    named = [resolve(name, evidence.described) for q in questions for name in q.responses]
    responses = dict.fromkeys((*named, LATENCY_P50))
    return [response for response in responses if measured(evidence.usable, response)]


def different_shares(
    comparisons: Sequence[Sequence[tuple[FloatArray, FloatArray]]],
) -> list[tuple[int, int]]:
    """Return (comparison, index in NEARNESS) where the share that differs most differs.

    A comparison is the mean over its pairs. A pair has the shares of two groups of runs, of shape
    (runs, len(NEARNESS)) each. A group may be part of several comparisons. In at most 5 % of
    campaigns whose groups are placed alike, a comparison is returned.
    """
    groups = {id(group): group for pairs in comparisons for pair in pairs for group in pair}
    total_degrees = sum(len(group) - 1 for group in groups.values())
    if not total_degrees:
        return []
    squares = [((group - group.mean(axis=0)) ** 2).sum(axis=0) for group in groups.values()]
    variances = np.sum(squares, axis=0) / total_degrees
    shares_vary = np.ptp(np.concatenate([*groups.values()]), axis=0) > 0
    # The shares of a run have the sum 1, so that one of them follows from the others.
    tests = len(comparisons) * max(1, int(shares_vary.sum()) - 1)
    results = [_largest_difference(pairs, variances, total_degrees) for pairs in comparisons]
    found = []
    for rank, index in enumerate(sorted(range(len(results)), key=lambda index: results[index][0])):
        chance, share, difference = results[index]
        if chance > (1 - CONFIDENCE) / (tests - rank):
            break
        if difference >= SHARE_MIN:
            found.append((index, share))
    return found


def _largest_difference(
    pairs: Sequence[tuple[FloatArray, FloatArray]], variances: FloatArray, degrees_max: int
) -> tuple[float, int, float]:
    """Return the two-sided p value of the largest difference of shares, its index and its size."""
    means = np.mean([one.mean(axis=0) - other.mean(axis=0) for one, other in pairs], axis=0)
    share = int(np.argmax(np.abs(means).round(6)))  # the first of equal ones
    errors = [
        _moderated_error(group[:, share], float(variances[share])) for p in pairs for group in p
    ]
    squared = sum(error for error, _ in errors)
    difference = float(abs(means[share]))
    if squared == 0:
        return float(difference == 0), share, difference
    degrees = squared**2 / sum(error**2 / own for error, own in errors)
    statistic = difference * len(pairs) / math.sqrt(squared)
    return float(2 * stdtr(min(degrees, degrees_max), -statistic)), share, difference


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


def shares_of(frame: pl.DataFrame) -> FloatArray:
    """Return the shares of each run, shape (runs, len(NEARNESS)); NaN without readings."""
    return np.column_stack([column(frame, name) for name in COLUMNS])


def _comparisons(
    evidence: Evidence, entries: Sequence[Placed]
) -> Iterator[tuple[str, tuple[tuple[Placed, Placed], ...]]]:
    """Yield a factor, and pairs of treatments with the baseline and with one other level.

    The pairs of a level are compared together and each alone. In a study with the factor of
    placements, only treatments that are left to the scheduler have a placement of their own.
    """
    if CORES in evidence.varied:
        position, free = evidence.varied.index(CORES), evidence.word(CORES, FREE)
        entries = [entry for entry in entries if entry.treatment[position] == free]
    known = {entry.treatment: entry for entry in entries}
    for position, factor in enumerate(evidence.varied):
        baseline = evidence.word(factor, baseline_of(evidence, factor))
        pairs: dict[str, list[tuple[Placed, Placed]]] = {}
        for entry in entries:
            level, at_baseline = entry.treatment[position], [*entry.treatment]
            at_baseline[position] = baseline
            if level != baseline and tuple(at_baseline) in known:
                pair = (known[tuple(at_baseline)], entry)
                pairs.setdefault(level, []).append(pair)
        for of_level in pairs.values():
            yield factor, tuple(of_level)
            if len(of_level) > 1:
                yield from ((factor, (pair,)) for pair in of_level)


def _moderated_error(values: FloatArray, mean_variance: float) -> tuple[float, int]:
    """Return the squared standard error of the mean of some runs, and its degrees of freedom."""
    degrees = PRIOR_DEGREES + len(values) - 1
    squares = float(((values - values.mean()) ** 2).sum())
    moderated = (PRIOR_DEGREES * mean_variance + squares) / degrees
    return max(moderated, mean_variance) / len(values), degrees


def _modes_of(treatment: Treatment, frame: pl.DataFrame, response: str) -> Iterator[Modes]:
    in_order = frame.sort("block", "position")
    values = column(in_order, response)
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
