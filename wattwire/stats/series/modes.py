"""Whether latencies heap up between two limits, as those do that wait for a timer.

What: a mode of a treatment's latencies inside a band: its share, its centre, its evidence.
How: the band's count against those of its two neighbours of the same width on the log scale,
pooled over runs. A smooth density gives the band about as many as its fuller neighbour; here it
must hold CONCENTRATION times as many, and more than odds of two to one explain by an exact
binomial test. One stall is no mode: the band must be hit in half of the runs or more, and there
in SLICES_MIN of SLICES parts of the series.
What it misses: modes of less than SHARE_MIN of the messages, modes wider than the band, and why
the mode is there: a handler that always takes that long has one too.
Reference: Silverman, Density Estimation, 6.4 (bumps); Clopper & Pearson 1934 for the binomial tail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats as scipy_stats

FloatArray = NDArray[np.float64]

SHARE_MIN = 0.01
CONCENTRATION = 3.0
ODDS_SHARE = 2.0 / 3.0
ALARM_MAX = 0.01
SLICES, SLICES_MIN = 8, 3


@dataclass(frozen=True)
class Mode:
    """A heap of values: `inside` of `total` (lost ones included), geometric median `centre`.

    `beside` is the count of the fuller neighbour; `runs_hit` of `runs` hold the mode.
    """

    inside: int
    total: int
    beside: int
    centre: float
    runs_hit: int
    runs: int

    @property
    def share(self) -> float:
        """Share of all values that lie in the band."""
        return self.inside / self.total


def mode_between(runs: Sequence[FloatArray], low: float, high: float) -> Mode | None:
    """The mode of `runs`, each a series (n,) in time order, between `low` and `high`, or None.

    Lost messages are +inf and count in the share. Raises ValueError unless 0 < low < high.
    """
    if not 0 < low < high:
        raise ValueError(f"low, high: {low}, {high} found, 0 < low < high is allowed")
    filled = [series for series in runs if series.size]
    if not filled:
        return None
    everything = np.concatenate(filled)
    width = high / low
    inside = _count(everything, low, high)
    beside = max(_count(everything, low / width, low), _count(everything, high, high * width))
    if inside < SHARE_MIN * everything.size or inside < CONCENTRATION * beside or inside == 0:
        return None
    if float(scipy_stats.binom.sf(inside - 1, inside + beside, ODDS_SHARE)) > ALARM_MAX:
        return None
    hit = sum(_holds(series, low, high) for series in filled)
    if 2 * hit < len(filled):
        return None
    values = everything[(everything >= low) & (everything < high)]
    centre = float(np.exp(np.median(np.log(values))))
    return Mode(inside, int(everything.size), beside, centre, hit, len(filled))


def _count(values: FloatArray, low: float, high: float) -> int:
    return int(np.sum((values >= low) & (values < high)))


def _holds(series: FloatArray, low: float, high: float) -> bool:
    """Whether one run holds the mode, and not in one stretch of it only."""
    found = (series >= low) & (series < high)
    if found.mean() < SHARE_MIN:
        return False
    slices = [part for part in np.array_split(found, SLICES) if part.size]
    return sum(bool(part.any()) for part in slices) >= min(SLICES_MIN, len(slices))
