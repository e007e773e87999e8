"""Detect modes of latencies between two limits, such as calls that wait for a timer.

What it detects: a mode of a treatment's latencies within a band, with its share, its centre and its
evidence.
How: the number of values in the band is compared with its two neighbouring bands, which have the
same width on the log scale, pooled over runs. With a smooth density, the band has about as many
values as its fuller neighbour. A mode must have CONCENTRATION times as many, and significantly more
than odds of two to one by an exact binomial test. A single stall is not a mode: at least half of
the runs must have values in the band, in SLICES_MIN of SLICES parts of the series.
What it misses: modes with less than SHARE_MIN of the messages; modes wider than the band; the cause
of a mode. A handler that always takes that long causes the same mode.
Reference: Silverman, Density Estimation, 6.4 (bumps); Clopper & Pearson 1934 for the binomial tail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

FloatArray = NDArray[np.float64]

SHARE_MIN = 0.01
CONCENTRATION = 3.0
ODDS_SHARE = 2.0 / 3.0
ALARM_MAX = 0.01
SLICES, SLICES_MIN = 8, 3


@dataclass(frozen=True)
class Mode:
    """A mode with `inside` of `total` values (lost messages included), centred at `centre`.

    `centre` is a geometric median. `neighbours` is the number of values in the fuller neighbouring
    band. `runs_hit` of `runs` runs have the mode.
    """

    inside: int
    total: int
    neighbours: int
    centre: float
    runs_hit: int
    runs: int

    @property
    def share(self) -> float:
        """Return the share of all values (0 … 1) within the band."""
        return self.inside / self.total


def mode_between(runs: Sequence[FloatArray], low: float, high: float) -> Mode | None:
    """Return the mode of `runs` between `low` and `high`, or None.

    Each run is a series (n,) in time order. Lost messages are +inf and count in the share. Raise
    ValueError unless 0 < low < high.
    """
    if not 0 < low < high:
        raise ValueError(f"low, high: found {low}, {high}; allowed: 0 < low < high")
    non_empty = [series for series in runs if series.size]
    if not non_empty:
        return None
    all_values = np.concatenate(non_empty)
    width = high / low
    inside = _count(all_values, low, high)
    neighbour_count = max(
        _count(all_values, low / width, low), _count(all_values, high, high * width)
    )
    if (
        inside < SHARE_MIN * all_values.size
        or inside < CONCENTRATION * neighbour_count
        or inside == 0
    ):
        return None
    if float(special.betainc(inside, neighbour_count + 1, ODDS_SHARE)) > ALARM_MAX:
        return None
    runs_hit = sum(_holds(series, low, high) for series in non_empty)
    if 2 * runs_hit < len(non_empty):
        return None
    in_band = all_values[(all_values >= low) & (all_values < high)]
    centre = float(np.exp(np.median(np.log(in_band))))
    return Mode(inside, int(all_values.size), neighbour_count, centre, runs_hit, len(non_empty))


def _count(values: FloatArray, low: float, high: float) -> int:
    return int(np.sum((values >= low) & (values < high)))


def _holds(series: FloatArray, low: float, high: float) -> bool:
    """Return whether one run has the mode in enough slices of its series."""
    in_band = (series >= low) & (series < high)
    if in_band.mean() < SHARE_MIN:
        return False
    slices = [piece for piece in np.array_split(in_band, SLICES) if piece.size]
    return sum(bool(piece.any()) for piece in slices) >= min(SLICES_MIN, len(slices))
