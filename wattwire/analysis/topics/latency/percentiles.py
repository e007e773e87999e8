"""Compute the percentiles of latency of each treatment, and decide where there are too few data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis import carried, not_compared
from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.analysis.latency import Series
from wattwire.analysis.topics.rates.numbers import delivered_hz
from wattwire.model.derived import FloatArray, column

SHARES = (0.5, 0.9, 0.99, 0.999)
SINCE_SEND_SHARES = (0.5, 0.99)
RUNS_MIN = 3
"""Minimum number of runs for a mean percentile. With fewer runs, the table has the percentile of
the first run.
"""
DIFFERENCE_MIN = 0.1
"""Smallest relative difference with which the table shows both latencies."""
Percentile = stats.Interval | stats.TooFew | stats.NotComputable | float
"""A percentile in µs; infinite if lost messages reach it."""


@dataclass(frozen=True)
class Percentiles:
    """The percentiles of a treatment's latencies (µs), at SHARES and SINCE_SEND_SHARES.

    The sample consists of the `latencies` and of the messages that were lost or `unsent`. Times
    `since_send` start at the send call and omit unsent messages. `band_us` is the widest error of
    the hosts' clocks; None on one clock. `per_s` is the rate of delivery; None if unknown.
    """

    treatment: tuple[str, ...]
    runs: int
    messages: int
    latencies: int
    lost: int
    unsent: int
    per_s: float | None
    percentiles: tuple[Percentile, ...]
    since_send: tuple[Percentile, ...]
    band_us: float | None

    @property
    def is_late(self) -> bool:
        """Whether a percentile is much larger than that since the send call."""
        late = (self.percentiles[SHARES.index(share)] for share in SINCE_SEND_SHARES)
        pairs = zip(map(_estimate, late), map(_estimate, self.since_send), strict=True)
        return any(
            late_us is not None
            and prompt_us is not None
            and late_us > (1 + DIFFERENCE_MIN) * prompt_us
            for late_us, prompt_us in pairs
        )


def _estimate(result: Percentile) -> float | None:
    if isinstance(result, stats.Interval):
        return result.estimate
    return result if isinstance(result, float) else None


def percentiles(evidence: Evidence, series: Mapping[str, Series]) -> Iterator[Percentiles]:
    """Yield the percentiles of each treatment with runs in `series`."""
    for treatment, frame in by_treatment(evidence, evidence.usable).items():
        of_runs = [series[run] for run in frame["run"].to_list() if run in series]
        if not of_runs:
            continue
        runs_us = [of_run.values_us for of_run in of_runs]
        unsent = sum(of_run.unsent for of_run in of_runs)
        # Messages that were never sent, which come last, have no send call.
        sent_us = [r.since_send_us[: r.since_send_us.size - r.unsent] for r in of_runs]
        yield Percentiles(
            treatment,
            len(runs_us),
            sum(run_us.size for run_us in runs_us),
            sum(int(np.isfinite(run_us).sum()) for run_us in runs_us),
            _lost_count(runs_us) - unsent,
            unsent,
            delivered_hz(frame),
            tuple(_percentiles_of_runs(runs_us, SHARES)),
            tuple(_percentiles_of_runs(sent_us, SINCE_SEND_SHARES)),
            _band_us(frame),
        )


def _band_us(frame: pl.DataFrame) -> float | None:
    """Return the widest band of the runs' clocks (µs), or None on one clock."""
    bands_us = column(frame, not_compared.BAND)
    bands_us = bands_us[bands_us > 0]
    return float(bands_us.max()) if bands_us.size else None


def _percentiles_of_runs(
    runs: Sequence[FloatArray], shares: Sequence[float]
) -> Iterator[Percentile]:
    if len(runs) >= RUNS_MIN:
        ordered = [np.sort(values) for values in runs]
        return (_typical_percentile(ordered, share) for share in shares)
    return (_percentile_of_few(runs, share) for share in shares)


def _percentile_of_few(runs: Sequence[FloatArray], share: float) -> Percentile:
    results = [stats.percentile(values, share) for values in runs]
    refused = [result for result in results if isinstance(result, stats.TooFew)]
    if refused and _among_lost(runs, share):
        return math.inf
    if refused:
        return min(refused, key=lambda few: few.count)
    return next(result.interval for result in results if isinstance(result, stats.Percentile))


def _typical_percentile(runs: Sequence[FloatArray], share: float) -> Percentile:
    """Return the geometric mean of the runs' percentiles in µs, as in the answers.

    The values of each run are sorted. The result is TooFew if a run has too few messages, or inf if
    losses reach the percentile.
    """
    fewest = min(values.size for values in runs)
    if fewest < stats.carried_size(share):
        few = stats.TooFew(fewest, stats.carried_size(share), carried.WHAT)
        return math.inf if _among_lost(runs, share) else few
    of_runs = [stats.nearest_rank(values, share) for values in runs]
    return stats.geometric_mean(of_runs) if all(map(math.isfinite, of_runs)) else math.inf


def _among_lost(runs: Sequence[FloatArray], share: float) -> bool:
    """Return whether losses make the percentile infinite for any number of messages."""
    expected = sum(values.size for values in runs)
    if not expected:
        return False
    return stats.share_interval(_lost_count(runs), expected).low > 1.0 - share


def _lost_count(runs: Sequence[FloatArray]) -> int:
    return sum(int(np.isinf(values).sum()) for values in runs)
