"""Align the readings of a power meter with a known load, and bound the energy that they give.

What it computes: the offset of a meter's clock from ours, with its interval; its rate from two such
offsets; the energy in a span of our clock, with a bound of its error.
How: the load is a pseudo-random sequence of 63 chips, all cores or none, whose autocorrelation is
flat outside of its peak. The offset is the lag of the largest correlation between the readings and
the load, averaged over the meter's own time. Its interval contains the offsets whose sum of squares
is not larger than F allows, with fewer degrees of freedom if the residuals are correlated.
The terms of the energy's bound are added linearly, because none of them is known to be random.
What it misses: a filter of the meter that is longer than its stated time shifts the offset. The
interval describes the clock only if the power follows the load at once.
Reference: Golomb, Shift Register Sequences, ch. 3; Seber and Wild, Nonlinear Regression, 5.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from wattwire.model.outside_meters import CHIP_S, CHIPS
from wattwire.stats.results import Interval, NotComputable

FloatArray = NDArray[np.float64]

REGISTER_BITS = 6
READINGS_MIN = 20
PEAK_MIN = 5.0
"""Smallest correlation of a peak, in multiples of its standard error without a load (1/√n)."""
COVERED_MIN = 0.8
"""Share of the load's readings that an offset needs."""
STEPS_PER_WINDOW = 8
FINE_STEPS = 400
BINS_PER_CHIP = 4
"""Readings per chip of a trace whose own readings are more frequent."""
GAP_PERIODS = 2
"""Number of periods between two readings from which they have a gap."""
JITTER_SHARE = 0.05
"""Share of a gap by which the times of readings may vary."""
OFFSETS_S = (-10.0, 10.0)
"""Range of the offsets (s) of readings that have our times."""
RATE_MAX = 1e-3
"""Largest rate of a trace's clock, as a share: 20 times that of a common oscillator."""


def chips(count: int = CHIPS) -> tuple[int, ...]:
    """Return the load per chip: 1 for all cores, 0 for none (the sequence of x⁶ + x⁵ + 1)."""
    register, sequence = 1, []
    for _ in range(count):
        sequence.append(register & 1)
        bit = (register ^ (register >> 1)) & 1
        register = (register >> 1) | (bit << (REGISTER_BITS - 1))
    return tuple(sequence)


@dataclass(frozen=True)
class Load:
    """A load that was made: boundaries of its chips (s, shape [chips + 1]) and load per chip."""

    boundaries_s: FloatArray
    levels: FloatArray

    @classmethod
    def starting_at(cls, begin_s: float, chip_s: float = CHIP_S) -> Load:
        """Return the load of `chips` that begins at a time (s)."""
        levels = np.asarray(chips(), np.float64)
        boundaries_s = begin_s + chip_s * np.arange(levels.size + 1, dtype=np.float64)
        return cls(boundaries_s.astype(np.float64), levels)

    @property
    def middle_s(self) -> float:
        """Return the time (s) in the middle of the load, to which its offset belongs."""
        return float(self.boundaries_s[0] + self.boundaries_s[-1]) / 2

    def mean(self, ends_s: FloatArray, window_s: float) -> FloatArray:
        """Return the mean load in the `window_s` before each time (any shape, dimensionless)."""
        totals = np.concatenate(([0.0], np.cumsum(np.diff(self.boundaries_s) * self.levels)))
        at_end = np.interp(ends_s, self.boundaries_s, totals)
        at_begin = np.interp(ends_s - window_s, self.boundaries_s, totals)
        return (at_end - at_begin) / window_s

    def covers(self, ends_s: FloatArray, window_s: float) -> NDArray[np.bool_]:
        """Return whether the `window_s` before each time is inside the load."""
        is_after = ends_s - window_s >= self.boundaries_s[0]
        return is_after & (ends_s <= self.boundaries_s[-1])


def _squares(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return residual sums of squares and correlations of y [n] on each row of x [rows, n]."""
    x_centred = x - x.mean(axis=-1, keepdims=True)
    y_centred = y - y.mean()
    xx, yy = (x_centred**2).sum(axis=-1), float((y_centred**2).sum())
    xy = x_centred @ y_centred
    with np.errstate(divide="ignore", invalid="ignore"):
        explained = np.where(xx > 0, xy**2 / xx, 0.0)
        correlation = np.where(xx > 0, xy / np.sqrt(xx * yy), 0.0) if yy > 0 else 0.0 * xx
    return yy - explained, correlation


def _independent_share(residuals: FloatArray) -> float:
    """Return the share of independent values among residuals of an AR(1) series, at most 1."""
    total = float((residuals**2).sum())
    correlation = float((residuals[1:] * residuals[:-1]).sum()) / total if total > 0 else 0.0
    correlation = min(max(correlation, 0.0), 0.95)
    return (1 - correlation) / (1 + correlation)


def clock_offset(
    stamps_s: Sequence[float] | FloatArray,
    powers_w: Sequence[float] | FloatArray,
    load: Load,
    window_s: float,
    range_s: tuple[float, float] = OFFSETS_S,
    confidence: float = 0.95,
) -> Interval | NotComputable:
    """Return the offset (s) of a meter's clock at the middle of a load: its stamp minus our time.

    A stamp is the end of the `window_s` over which the meter averages. The result is NotComputable
    if the readings do not contain the load.
    """
    stamps, powers = np.asarray(stamps_s, np.float64), np.asarray(powers_w, np.float64)
    step_s = window_s / STEPS_PER_WINDOW
    coarse = _coarse_offset(stamps, powers, load, window_s, step_s, range_s)
    if isinstance(coarse, NotComputable):
        return coarse
    inside = load.covers(stamps - coarse - step_s, window_s)
    inside &= load.covers(stamps - coarse + step_s, window_s)
    stamps, powers = stamps[inside], powers[inside]
    if stamps.size < READINGS_MIN:
        return _too_few(stamps.size)
    offsets = coarse + np.linspace(-step_s, step_s, FINE_STEPS + 1)
    squares, _ = _squares(load.mean(stamps - offsets[:, None], window_s), powers)
    best = int(np.argmin(squares))
    estimate = float(offsets[best])
    mean_load = load.mean(stamps - estimate, window_s)
    slope, level = np.polyfit(mean_load, powers, 1)
    residuals = powers - level - slope * mean_load
    degrees = max(1.0, stamps.size * _independent_share(residuals) - 3.0)
    limit = float(squares[best]) * (1 + special.fdtri(1, degrees, confidence) / degrees)
    # Within the fine range the sum of squares is a parabola for a power that follows the load.
    allowed = offsets[squares <= limit]
    low, high = float(allowed.min()), float(allowed.max())
    fine_s = 2 * step_s / FINE_STEPS
    if low <= offsets[0] + fine_s or high >= offsets[-1] - fine_s:
        low, high = low - step_s, high + step_s
    method = "profile of the sum of squares"
    return Interval(estimate, low - fine_s, high + fine_s, confidence, stamps.size, method, degrees)


def _coarse_offset(
    stamps: FloatArray,
    powers: FloatArray,
    load: Load,
    window_s: float,
    step_s: float,
    range_s: tuple[float, float],
) -> float | NotComputable:
    """Return the lag (s) of the largest correlation in a range, on a grid of `step_s`."""
    period_s = float(np.median(np.diff(stamps))) if stamps.size > 1 else np.inf
    loaded_s = float(load.boundaries_s[-1] - load.boundaries_s[0]) - window_s
    needed = max(READINGS_MIN, COVERED_MIN * loaded_s / period_s)
    best, best_correlation, best_count = 0.0, 0.0, 0
    most = 0
    for lag in np.arange(range_s[0], range_s[1] + step_s / 2, step_s):
        inside = load.covers(stamps - lag, window_s)
        count = int(np.count_nonzero(inside))
        most = max(most, count)
        if count < needed:
            continue
        mean_load = load.mean(stamps[inside] - lag, window_s)
        _, correlations = _squares(mean_load[None, :], powers[inside])
        if correlations[0] > best_correlation:
            best, best_correlation, best_count = float(lag), float(correlations[0]), count
    if most < needed:
        return _too_few(most)
    least = PEAK_MIN / np.sqrt(max(best_count, 1))
    if best_correlation < least:
        return NotComputable(
            f"the readings do not contain the load: the largest correlation is "
            f"{best_correlation:.2f}, and {least:.2f} is needed"
        )
    return best


def _totals_j(ends_s: FloatArray, powers_w: FloatArray) -> FloatArray:
    """Return the energy (J) from the first end to each end, from the mean powers (W) before it."""
    return np.concatenate(([0.0], np.cumsum(powers_w[1:] * np.diff(ends_s))))


def _too_few(count: int) -> NotComputable:
    return NotComputable(f"only {count} readings are inside the load, which needs {READINGS_MIN}")


@dataclass(frozen=True)
class ClockRelation:
    """The offset (s) of a meter's clock from ours, linear in our time, and its half-width (s)."""

    offset_s: float
    at_s: float
    rate: float
    half_width_s: float

    @classmethod
    def of(cls, offsets: Sequence[tuple[float, Interval]]) -> ClockRelation:
        """Return the relation from the offsets at one or two of our times (s)."""
        (first_s, first), (last_s, last) = offsets[0], offsets[-1]
        rate = 0.0
        if last_s > first_s:
            rate = (last.estimate - first.estimate) / (last_s - first_s)
        half_width_s = max((o.high - o.low) / 2 for _, o in offsets)
        return cls(first.estimate, first_s, rate, half_width_s)

    def our_time(self, stamps_s: FloatArray) -> FloatArray:
        """Return our times (s) of the meter's stamps (s)."""
        shifted = stamps_s - self.offset_s - self.at_s
        return self.at_s + shifted / (1 + self.rate)


@dataclass(frozen=True)
class BoundedEnergy:
    """An energy (J) and the terms of the bound of its error (J), which are added linearly."""

    joules: float
    edges_j: float
    resolution_j: float
    class_j: float

    @property
    def bound_j(self) -> float:
        """Return the bound of the error (J)."""
        return self.edges_j + self.resolution_j + self.class_j


def bounded_energy(
    ends_s: FloatArray,
    powers_w: FloatArray,
    span_s: tuple[float, float],
    window_s: float,
    half_width_s: float,
    resolution_w: float,
    class_terms: tuple[float, float],
) -> BoundedEnergy | NotComputable:
    """Return the energy in a span of our time (s) from means over the `window_s` before `ends_s`.

    `class_terms` are a share of the power and a power (W). At each edge, the time is known to the
    half-width of the offset and to the meter's own time, so the term of an edge is their sum times
    the range of the powers around it. A part of the span without readings, of at most GAP_PERIODS
    `window_s`, has the power of the nearest reading; its time is added to that of its edge, whose
    range is that of all powers.
    """
    begin_s, end_s = span_s
    seconds = end_s - begin_s
    slack_s = half_width_s + window_s
    first, last = (ends_s[0] - window_s, ends_s[-1]) if ends_s.size else (0.0, 0.0)
    missing_s = (max(0.0, first - begin_s), max(0.0, end_s - last))
    if ends_s.size < 2 or max(missing_s) > GAP_PERIODS * window_s:
        return NotComputable(
            f"the readings cover {first:.1f} s to {last:.1f} s, and the span is {begin_s:.1f} s to "
            f"{end_s:.1f} s"
        )
    inside = (ends_s >= begin_s - slack_s) & (ends_s <= end_s + slack_s)
    widest_s = float(np.diff(ends_s[inside]).max(initial=0.0))
    if widest_s > GAP_PERIODS * window_s * (1 + JITTER_SHARE):
        return NotComputable(f"the readings have a gap of {widest_s:.1f} s in the span")
    knots_s = np.concatenate(([min(begin_s, first)], ends_s, [max(end_s, last)]))
    knots_w = np.concatenate(([0.0], powers_w, powers_w[-1:]))
    begin_j, end_j = np.interp((begin_s, end_s), knots_s, _totals_j(knots_s, knots_w))
    joules = float(end_j - begin_j)
    edges_j = 0.0
    for edge_s, lacking_s in zip(span_s, missing_s, strict=True):
        near = np.abs(ends_s - window_s / 2 - edge_s) <= slack_s + window_s
        # No reading tells the power beyond the first and the last one.
        around = powers_w if lacking_s else powers_w[near]
        if around.size:
            edges_j += float(np.ptp(around)) * (half_width_s + window_s / 2 + lacking_s)
    share, watts = class_terms
    class_j = share * abs(joules) + watts * seconds
    return BoundedEnergy(joules, edges_j, resolution_w / 2 * seconds, class_j)


@dataclass(frozen=True)
class Alignment:
    """The clock of a trace: its offsets (s) from ours at two loads, and what follows from both."""

    first: Interval
    last: Interval
    relation: ClockRelation


@dataclass(frozen=True)
class Trace:
    """Powers (W) as means over the `period_s` before each of `times_s`, on their own clock."""

    times_s: FloatArray
    powers_w: FloatArray

    @classmethod
    def of_counter(cls, times_s: FloatArray, joules: FloatArray) -> Trace:
        """Return the mean powers between the readings of a counter of energy (J)."""
        return cls(times_s[1:], np.diff(joules) / np.diff(times_s))

    @property
    def period_s(self) -> float:
        """Return the median time (s) between two readings."""
        return float(np.median(np.diff(self.times_s)))

    @property
    def resolution_w(self) -> float:
        """Return the smallest step (W) between two powers that differ; 0 if all are equal."""
        steps_w = np.diff(np.unique(self.powers_w))
        return float(steps_w.min()) if steps_w.size else 0.0

    def means(self, window_s: float) -> Trace:
        """Return the means over windows of `window_s`, without those in gaps of the readings."""
        count = int((self.times_s[-1] - self.times_s[0]) / window_s)
        ends_s = self.times_s[0] + window_s * np.arange(count + 1)
        steps_s = np.diff(self.times_s)
        totals_j = _totals_j(self.times_s, self.powers_w)
        powers_w = np.diff(np.interp(ends_s, self.times_s, totals_j)) / window_s
        after = np.clip(np.searchsorted(self.times_s, ends_s[1:]), 1, steps_s.size)
        whole = steps_s[after - 1] <= max(GAP_PERIODS * self.period_s, window_s)
        return Trace(ends_s[1:][whole], powers_w[whole])


def aligned(trace: Trace, first: Load, last: Load) -> Alignment | NotComputable:
    """Return the clock of a trace from the two loads that it contains; its zero may be anywhere."""
    chip_s = float(np.median(np.diff(first.boundaries_s)))
    window_s = max(trace.period_s, chip_s / BINS_PER_CHIP)
    readings = trace if window_s <= trace.period_s else trace.means(window_s)
    needed_s = float(last.boundaries_s[-1] - first.boundaries_s[0])
    present_s = float(trace.times_s[-1] - trace.times_s[0])
    if present_s < needed_s:
        return NotComputable(
            f"the trace lasts {present_s:.1f} s, and the campaign with both loads lasts "
            f"{needed_s:.1f} s"
        )
    lags_s = _lags(readings, first, last, window_s)
    if isinstance(lags_s, NotComputable):
        return lags_s
    ranges_s = [(lag_s - 2 * window_s, lag_s + 2 * window_s) for lag_s in lags_s]
    return aligned_near((first, last), (readings, readings), window_s, ranges_s)


def aligned_near(
    loads: tuple[Load, Load],
    readings: tuple[Trace, Trace],
    window_s: float,
    ranges_s: Sequence[tuple[float, float]] = (OFFSETS_S, OFFSETS_S),
) -> Alignment | NotComputable:
    """Return the clock of a meter from its readings at each load, whose stamps are near our times.

    `ranges_s` are the ranges of the offsets (s), by default those of readings as they come.
    """
    offsets = []
    for load, trace, range_s in zip(loads, readings, ranges_s, strict=True):
        offset = clock_offset(trace.times_s, trace.powers_w, load, window_s, range_s)
        if isinstance(offset, NotComputable):
            return offset
        offsets.append((load.middle_s, offset))
    (_, before), (_, after) = offsets
    return Alignment(before, after, ClockRelation.of(offsets))


def _lags(
    readings: Trace, first: Load, last: Load, window_s: float
) -> tuple[float, float] | NotComputable:
    """Return the offsets (s) of both loads in a trace, to about `window_s`.

    Both loads have the same chips, so their distance decides which of them is the first one. The
    clock may deviate by RATE_MAX.
    """
    ends_s = np.arange(readings.times_s[0], readings.times_s[-1], window_s)
    powers_w = np.interp(ends_s, readings.times_s, readings.powers_w)
    correlations, starts_s = [], []
    for load in (first, last):
        load_ends_s = np.arange(load.boundaries_s[0] + window_s, load.boundaries_s[-1], window_s)
        levels = load.mean(load_ends_s, window_s)
        levels = levels - levels.mean()
        size = levels.size
        if powers_w.size < size:
            return _too_few(powers_w.size)
        sums = np.concatenate(([0.0], np.cumsum(powers_w - powers_w.mean())))
        squares = np.concatenate(([0.0], np.cumsum((powers_w - powers_w.mean()) ** 2)))
        spread = squares[size:] - squares[:-size] - (sums[size:] - sums[:-size]) ** 2 / size
        scale = np.sqrt(np.maximum(spread, 1e-12) * float((levels**2).sum()))
        correlations.append(np.correlate(powers_w, levels, "valid") / scale)
        starts_s.append(load_ends_s[0])
    distance_s = starts_s[1] - starts_s[0]
    slack = 1 + int(np.ceil(RATE_MAX * distance_s / window_s))
    shift = round(distance_s / window_s)
    best, best_sum = (0, 0), -np.inf
    for extra in range(-slack, slack + 1):
        count = correlations[1].size - shift - extra
        if shift + extra < 0 or count <= 0:
            continue
        head = correlations[0][:count]
        both = head + correlations[1][shift + extra : shift + extra + head.size]
        position = int(np.argmax(both))
        if both[position] > best_sum:
            best, best_sum = (position, position + shift + extra), float(both[position])
    first_s, last_s = (float(ends_s[at]) - start for at, start in zip(best, starts_s, strict=True))
    return first_s, last_s
