"""Compare where the nodes of different treatments ran, and attribute two modes of one treatment.

A treatment's placement is the mean over its runs of the shares of time that connected nodes spent
on one CPU, on siblings, under one cache and further apart (`run/results/cores.py`).

What is named: pairs of a treatment with its baseline, if a share differs by at least SHARE_MIN and
more than the runs scatter. Few runs do not show how much one treatment scatters, so each variance
is moderated towards the mean variance of all treatments (Smyth 2004, doi:10.2202/1544-6115.1027),
and not below it: five runs of a placement that sticks for a run may all be equal. Holm's step-down
procedure (1979, doi:10.2307/4615733) covers all pairs.
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
    """A treatment and its baseline in `factor`, which ran in different placements."""

    factor: str
    baseline: Placed
    other: Placed
    share: int
    """Index in NEARNESS of the share that differs most."""

    @property
    def difference(self) -> float:
        return float(abs(self.baseline.mean[self.share] - self.other.mean[self.share]))


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
    """Return the pairs with different placements, the largest difference of each factor first."""
    pairs = [*_pairs(evidence, placed(evidence))]
    compared = [(baseline.shares, other.shares) for _, baseline, other in pairs]
    apart = [PlacedApart(*pairs[index], share) for index, share in different_shares(compared)]
    return sorted(apart, key=lambda pair: -pair.difference)


def ratios_by_cores(
    evidence: Evidence, pair: PlacedApart
) -> tuple[Response, list[tuple[Any, stats.Interval]]] | None:
    """Return a response, and (level of `cores`, ratio to the baseline) of the pair's other level.

    The response is the first with a ratio that a question on the factor names. The confidence is
    that of ratios at the levels of another factor. None without two such levels.
    """
    if CORES not in evidence.varied:
        return None
    word = pair.other.treatment[evidence.varied.index(pair.factor)]
    level = next(v for v in evidence.factors[pair.factor] if evidence.word(pair.factor, v) == word)
    confidence = strata_confidence(evidence, pair.factor)
    for response in _responses(evidence, pair.factor):
        pending = stats.NotComputable("not computed")
        baseline = baseline_in(evidence, pair.factor, response)
        answer = Answer("", response, pair.factor, level, baseline, pending, pending)
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


def different_shares(pairs: Sequence[tuple[FloatArray, FloatArray]]) -> list[tuple[int, int]]:
    """Return (pair, index in NEARNESS) of the pairs in which the share that differs most differs.

    A pair has the shares of two groups of runs, of shape (runs, len(NEARNESS)) each. A group may be
    part of several pairs. In at most 5 % of campaigns whose groups are placed alike, a pair is
    returned.
    """
    groups = list({id(group): group for pair in pairs for group in pair}.values())
    total_degrees = sum(len(group) - 1 for group in groups)
    if not total_degrees:
        return []
    squares = [((group - group.mean(axis=0)) ** 2).sum(axis=0) for group in groups]
    mean_variance = np.sum(squares, axis=0) / total_degrees
    shares_vary = np.ptp(np.concatenate(groups), axis=0) > 0
    # The shares of a run have the sum 1, so that one of them follows from the others.
    tests = len(pairs) * max(1, int(shares_vary.sum()) - 1)
    chances = []
    for pair in pairs:
        means = [group.mean(axis=0) for group in pair]
        share = int(np.argmax(np.abs(means[0] - means[1])))
        difference = float(abs(means[0][share] - means[1][share]))
        errors = [_moderated_error(group[:, share], float(mean_variance[share])) for group in pair]
        chances.append((_chance(difference, errors, total_degrees), share, difference))
    found = []
    for rank, index in enumerate(sorted(range(len(pairs)), key=lambda index: chances[index][0])):
        chance, share, difference = chances[index]
        if chance > (1 - CONFIDENCE) / (tests - rank):
            break
        if difference >= SHARE_MIN:
            found.append((index, share))
    return found


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


def _pairs(evidence: Evidence, entries: Sequence[Placed]) -> Iterator[tuple[str, Placed, Placed]]:
    """Yield (factor, baseline, treatment) for each treatment that differs from one in one factor.

    In a study with the factor of placements, only treatments that are left to the scheduler have a
    placement of their own.
    """
    if CORES in evidence.varied:
        position, free = evidence.varied.index(CORES), evidence.word(CORES, FREE)
        entries = [entry for entry in entries if entry.treatment[position] == free]
    for position, factor in enumerate(evidence.varied):
        baseline = evidence.word(factor, baseline_of(evidence, factor))
        groups: dict[Treatment, dict[str, Placed]] = {}
        for entry in entries:
            others = entry.treatment[:position] + entry.treatment[position + 1 :]
            groups.setdefault(others, {})[entry.treatment[position]] = entry
        for group in groups.values():
            if baseline in group:
                entries_of_others = (group[level] for level in group if level != baseline)
                yield from ((factor, group[baseline], entry) for entry in entries_of_others)


def _moderated_error(values: FloatArray, mean_variance: float) -> tuple[float, int]:
    """Return the squared standard error of the mean of some runs, and its degrees of freedom."""
    degrees = PRIOR_DEGREES + len(values) - 1
    squares = float(((values - values.mean()) ** 2).sum())
    moderated = (PRIOR_DEGREES * mean_variance + squares) / degrees
    return max(moderated, mean_variance) / len(values), degrees


def _chance(difference: float, errors: Sequence[tuple[float, int]], degrees_max: int) -> float:
    """Return the two-sided p value of a difference of two means with these squared errors."""
    squared = sum(error for error, _ in errors)
    if squared == 0:
        return float(difference == 0)
    degrees = squared**2 / sum(error**2 / own for error, own in errors)
    return float(2 * stdtr(min(degrees, degrees_max), -difference / math.sqrt(squared)))


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
