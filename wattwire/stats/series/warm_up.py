"""Does a series settle? Classes of one run's course, and what the runs of a cell agree on.

What: whether a run's values in time order are "flat", show a "warm-up" (settle lower), a "slowdown"
(settle higher) or reach "no steady state"; else "cannot tell". It only classifies: the cut itself
is fixed per cell from pilot runs before a campaign.
How: the correlation of neighbours is estimated so that jumps do not move it, taken out of the
series, and the whitened series is cut into pieces of constant mean at the least total of squares
and a penalty per cut. Long series are first averaged into POINTS_MAX points. Pieces whose means
differ from the last one's by less than one standard deviation count as settled; a series is settled
if the last settled stretch is SETTLED_SHARE of it or more. Runs agree where AGREEING_SHARE do.
What it misses: slow trends below the penalty; dependence of longer range than a neighbour's. A
plain changepoint search without the correlation alarms on nearly every such series.
Reference: Chakar, Lebarbier, Lévy-Leduc & Robin 2017, Bernoulli 23:1408 (robust AR(1));
Jackson et al. 2005, IEEE Signal Processing Letters 12:105 (optimal partitioning); Killick,
Fearnhead & Eckley 2012, JASA 107:1590 (pruning); Barrett et al. 2017, Proc. ACM Program. Lang. 1:52
(the classes).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

POINTS_MIN, POINTS_MAX = 60, 300
PIECE_MIN = 5
PENALTY = 6.0
"""Per cut, times the logarithm of the length and the whitened variance."""
CORRELATION_MAX = 0.9
CORRELATION_ERRORS = 1.5
"""Standard errors (1/√n) added to the correlation: too low a one turns noise into cuts."""
SETTLED_SHARE = 0.25
AGREEING_SHARE = 0.75
RUNS_MIN = 3

FLAT, WARM_UP, SLOWDOWN = "flat", "warm-up", "slowdown"
UNSETTLED, CANNOT_TELL = "no steady state", "cannot tell"


@dataclass(frozen=True)
class Course:
    """What became of one series: its class, and the share of it (0 … 1) after which it settled."""

    name: str
    settled_after: float | None
    cuts: tuple[int, ...]


def classify(series: Sequence[float] | FloatArray) -> Course:
    """The course of `series` (n,) in time order; values that are not finite are left out."""
    data = np.asarray(series, dtype=np.float64)
    data = data[np.isfinite(data)]
    if data.size < POINTS_MIN:
        return Course(CANNOT_TELL, None, ())
    points = _averaged(data)
    if np.ptp(points) == 0:
        return Course(FLAT, 0.0, ())
    correlation = neighbour_correlation(points) + CORRELATION_ERRORS / np.sqrt(points.size)
    if correlation > CORRELATION_MAX:
        # A series this close to a random walk has no level that it could settle at.
        return Course(CANNOT_TELL, None, ())
    white = points[1:] - correlation * points[:-1]
    scale = _scale(white)
    if scale == 0:
        return Course(CANNOT_TELL, None, ())
    cuts = _cuts(white / scale)
    return _course(points, [cut + 1 for cut in cuts], scale / np.sqrt(1.0 - correlation**2))


def consensus(names: Sequence[str]) -> str:
    """The class that AGREEING_SHARE of a cell's runs (three or more) have, else cannot tell."""
    if len(names) < RUNS_MIN:
        return CANNOT_TELL
    name, count = Counter(names).most_common(1)[0]
    return name if count >= AGREEING_SHARE * len(names) else CANNOT_TELL


def neighbour_correlation(points: FloatArray) -> float:
    """AR(1) coefficient, 0 … 1, from median absolute differences: a few jumps don't move it."""
    near = float(np.median(np.abs(np.diff(points))))
    far = float(np.median(np.abs(points[2:] - points[:-2])))
    if near == 0:
        return 0.0
    return float(np.clip((far / near) ** 2 - 1.0, 0.0, 1.0))


def _averaged(data: FloatArray) -> FloatArray:
    width = int(np.ceil(data.size / POINTS_MAX))
    whole = data[: data.size - data.size % width]
    return np.asarray(whole.reshape(-1, width).mean(axis=1), dtype=np.float64)


def _scale(white: FloatArray) -> float:
    # Differences of whitened values: free of the level, and 1.4826/√2 makes the median a sigma.
    return float(np.median(np.abs(np.diff(white)))) * 1.4826 / np.sqrt(2.0)


def _cuts(values: FloatArray) -> list[int]:
    """Places where pieces begin, the first left out, by pruned optimal partitioning."""
    count = values.size
    penalty = PENALTY * np.log(count)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    squares = np.concatenate([[0.0], np.cumsum(values**2)])
    best = np.full(count + 1, np.inf)
    best[0] = -penalty
    last = np.zeros(count + 1, dtype=np.int64)
    starts = np.array([0], dtype=np.int64)
    for end in range(PIECE_MIN, count + 1):
        usable = starts[end - starts >= PIECE_MIN]
        cost = squares[end] - squares[usable] - (sums[end] - sums[usable]) ** 2 / (end - usable)
        total = best[usable] + cost
        place = int(np.argmin(total))
        best[end], last[end] = total[place] + penalty, usable[place]
        kept = usable[total <= best[end]]
        starts = np.concatenate([kept, starts[end - starts < PIECE_MIN], [end]])
    found: list[int] = []
    end = count
    while last[end] > 0:
        end = int(last[end])
        found.append(end)
    return found[::-1]


def _course(points: FloatArray, cuts: list[int], scale: float) -> Course:
    edges = [0, *cuts, points.size]
    means = [float(points[a:b].mean()) for a, b in zip(edges[:-1], edges[1:], strict=True)]
    settled = len(means) - 1
    while settled > 0 and abs(means[settled - 1] - means[-1]) < scale:
        settled -= 1
    begin = edges[settled]
    places = tuple(cuts)
    if begin == 0:
        return Course(FLAT, 0.0, places)
    if points.size - begin < SETTLED_SHARE * points.size:
        return Course(UNSETTLED, None, places)
    before = float(points[:begin].mean())
    after = float(points[begin:].mean())
    return Course(WARM_UP if before > after else SLOWDOWN, begin / points.size, places)
