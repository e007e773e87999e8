"""Classify the warm-up and steady state of a run's series, and the consensus of a cell.

What it computes: whether the values of a run in time order are "flat", show a "warm-up" (settle
lower) or a "slowdown" (settle higher), or reach "no steady state"; otherwise "cannot tell". This is
only a classification. Settling runs before the campaign determine the warm-up that is discarded.
How: each value is replaced by the normal quantile of its rank, so that spikes of any size have
little weight. Long series are averaged into POINTS_MAX points. The correlation of neighbours is
estimated and removed from the series. The whitened series is divided into pieces of constant mean
that minimise the sum of squares plus a penalty per cut. Pieces count as settled if their mean
differs from the last mean by less than one standard deviation. A series is settled if its last
settled part is at least SETTLED_SHARE of it. Runs agree if at least AGREEING_SHARE of them have the
same class.
What it misses: changes of less than about 5 % of the run, because such a part may consist of
spikes; slow trends below the penalty; dependence of longer range than between neighbours. A
changepoint search that ignores the correlation detects changes in nearly every series.
Reference: Chakar, Lebarbier, Lévy-Leduc & Robin 2017, Bernoulli 23:1408 (robust AR(1)); Jackson et
al. 2005, IEEE Signal Processing Letters 12:105 (optimal partitioning); Killick, Fearnhead & Eckley
2012, JASA 107:1590 (pruning); Barrett et al. 2017, Proc. ACM Program. Lang. 1:52 (the classes).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

FloatArray = NDArray[np.float64]

POINTS_MIN, POINTS_MAX = 60, 300
BLOCK_VALUES = 1 << 16
PIECE_MIN = 5
PENALTY = 6.0
"""Penalty per cut, in units of the logarithm of the length times the whitened variance."""
CORRELATION_MAX = 0.9
CORRELATION_ERRORS = 1.5
"""Standard errors (1/√n) added to the correlation, because underestimates turn noise into cuts."""
SETTLED_SHARE = 0.25
AGREEING_SHARE = 0.75
RUNS_MIN = 3

FLAT, WARM_UP, SLOWDOWN = "flat", "warm-up", "slowdown"
UNSETTLED, CANNOT_TELL = "no steady state", "cannot tell"


@dataclass(frozen=True)
class Course:
    """Class of a series, and the share of it (0 … 1) after which it is settled."""

    name: str
    settled_after: float | None


def classify(series: Sequence[float] | FloatArray) -> Course:
    """Return the class of `series` (n,) in time order. Values that are not finite are excluded."""
    data = np.asarray(series, dtype=np.float64)
    is_finite = np.isfinite(data)
    data = data if is_finite.all() else data[is_finite]
    if data.size < POINTS_MIN:
        return Course(CANNOT_TELL, None)
    points = _mean_scores(data)
    if np.ptp(points) == 0:
        return Course(FLAT, 0.0)
    correlation = neighbour_correlation(points) + CORRELATION_ERRORS / np.sqrt(points.size)
    if correlation > CORRELATION_MAX:
        # A series that is close to a random walk has no steady level.
        return Course(CANNOT_TELL, None)
    white = points[1:] - correlation * points[:-1]
    scale = _scale(white)
    if scale == 0:
        return Course(CANNOT_TELL, None)
    cuts = _cuts(white / scale)
    return _course(points, [cut + 1 for cut in cuts], scale / np.sqrt(1.0 - correlation**2))


def consensus(names: Sequence[str]) -> str:
    """Return the class of AGREEING_SHARE of a cell's runs (three or more), else CANNOT_TELL."""
    if len(names) < RUNS_MIN:
        return CANNOT_TELL
    name, count = Counter(names).most_common(1)[0]
    return name if count >= AGREEING_SHARE * len(names) else CANNOT_TELL


def neighbour_correlation(points: FloatArray) -> float:
    """Return the AR(1) coefficient, 0 … 1.

    It is estimated from mean absolute differences. A few jumps change them little, because normal
    scores have no large values, and they vary less than medians.
    """
    lag_one = float(np.mean(np.abs(np.diff(points))))
    lag_two = float(np.mean(np.abs(points[2:] - points[:-2])))
    if lag_one == 0:
        return 0.0
    return float(np.clip((lag_two / lag_one) ** 2 - 1.0, 0.0, 1.0))


def _mean_scores(data: FloatArray) -> FloatArray:
    """Return the means of the normal quantiles of ranks over windows, at most POINTS_MAX points.

    Ties have their mean rank. The quantiles are computed some windows at a time, because the ranks
    of 10⁷ values take several times the memory of the values.
    """
    values, counts = np.unique(data, return_counts=True)
    scores = special.ndtri((np.cumsum(counts) - counts / 2.0) / data.size)
    width = int(np.ceil(data.size / POINTS_MAX))
    windows = data[: data.size - data.size % width].reshape(-1, width)
    step = max(1, BLOCK_VALUES // width)
    blocks = [windows[begin : begin + step] for begin in range(0, len(windows), step)]
    return np.concatenate(
        [scores[np.searchsorted(values, block)].mean(axis=1) for block in blocks], dtype=np.float64
    )


def _scale(white: FloatArray) -> float:
    # Differences of whitened values do not depend on the level. 1.4826/√2 scales their median
    # absolute value to a standard deviation.
    return float(np.median(np.abs(np.diff(white)))) * 1.4826 / np.sqrt(2.0)


def _cuts(values: FloatArray) -> list[int]:
    """Return the indices where pieces begin, except the first, by pruned optimal partitioning."""
    count = values.size
    penalty = PENALTY * np.log(count)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    squares = np.concatenate([[0.0], np.cumsum(values**2)])
    least_cost = np.full(count + 1, np.inf)
    least_cost[0] = -penalty
    last_start = np.zeros(count + 1, dtype=np.int64)
    starts = np.array([0], dtype=np.int64)
    for end in range(PIECE_MIN, count + 1):
        usable = starts[end - starts >= PIECE_MIN]
        cost = squares[end] - squares[usable] - (sums[end] - sums[usable]) ** 2 / (end - usable)
        total_cost = least_cost[usable] + cost
        best_index = int(np.argmin(total_cost))
        least_cost[end], last_start[end] = total_cost[best_index] + penalty, usable[best_index]
        unpruned = usable[total_cost <= least_cost[end]]
        starts = np.concatenate([unpruned, starts[end - starts < PIECE_MIN], [end]])
    cuts: list[int] = []
    end = count
    while last_start[end] > 0:
        end = int(last_start[end])
        cuts.append(end)
    return cuts[::-1]


def _course(points: FloatArray, cuts: list[int], scale: float) -> Course:
    edges = [0, *cuts, points.size]
    means = [
        float(points[first:last].mean()) for first, last in zip(edges[:-1], edges[1:], strict=True)
    ]
    first_settled = len(means) - 1
    while first_settled > 0 and abs(means[first_settled - 1] - means[-1]) < scale:
        first_settled -= 1
    begin = edges[first_settled]
    if begin == 0:
        return Course(FLAT, 0.0)
    if points.size - begin < SETTLED_SHARE * points.size:
        return Course(UNSETTLED, None)
    before = float(points[:begin].mean())
    after = float(points[begin:].mean())
    return Course(WARM_UP if before > after else SLOWDOWN, begin / points.size)
