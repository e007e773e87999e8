"""Compare where the nodes of different treatments ran.

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
import polars as pl
from scipy.special import stdtr

from wattwire import stats
from wattwire.analysis.answering.answer_types import Answer
from wattwire.analysis.answering.baselines import baseline_in, baseline_of
from wattwire.analysis.answering.confidence import CONFIDENCE
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
PRIOR_DEGREES = 4
"""Weight of the mean variance of all treatments in that of each: as that of five own runs."""
COLUMNS = tuple(f"ran_on_{name}" for name in NEARNESS)
Treatment = tuple[str, ...]


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
