"""Bound the offset of a clock by all lines that exchanges of timestamps permit.

What it estimates: the offset of a host's clock from a controller's, as a line over time, with a
bound of its error; where no line is possible, several connected lines.
How: a request arrives after it was sent, so the host's time of its arrival minus the controller's
time of its sending is at least the offset. A reply is sent before it arrives, so the same
difference of the reply is at most the offset. This holds for any delays, so it also covers what an
asymmetric path hides. Every line between both kinds of bounds is possible; only the lower convex
hull of the upper bounds, and the upper hull of the lower bounds, restrict it. The vertices of the
polygon of all possible lines (value, rate) are the extreme lines, and the band at an instant
reaches from the lowest to the highest of them.
A rate that changes needs the fewest pieces of exchanges that permit a line each. The longest pieces
from the start reach beyond the change, and the longest from the end begin before it, so it lies
between both. The knot is in the middle, and the band there has room for the change at any place.
What it misses: a change of rate that leaves room for a line (`unseen_rate` is the largest), and the
place of the offset inside the band, which depends on the asymmetry of the path.
References: A. Duda, G. Harrus, Y. Haddad, G. Bernard, "Estimating global time in distributed
systems", ICDCS 1987 (hulls of both directions); L. Zhang, Z. Liu, C. H. Xia, "Clock synchronization
algorithms for network measurements", INFOCOM 2002 (hulls, and clocks that are reset).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Line = tuple[float, float]
"""Value (ns) at the pivot, and rate (ns per s)."""
Piece = tuple[int, int]
"""Indices of two exchanges."""

ROUNDING_NS = 2.0
"""Error of the difference of two times that are rounded to ns."""
UNLIMITED_RATE = 0.01
"""Limit of a rate (dimensionless) where a search needs one but clocks shall not restrict it."""
DEPARTURE_EXCHANGES_MIN, DEPARTURE_PARTS = 8, 10
"""Exchanges of a part, and number of parts of equal length, of which the departure is taken."""


@dataclass(frozen=True)
class ClockLines:
    """Connected lines of an offset, with a band that holds it if it is linear between the knots.

    `times_ns`, `offsets_ns` and `bands_ns` have one value per knot. Between knots, the offset and
    the band are interpolated: the error of a line inside the band is linear, so its largest amount
    is at a knot. One knot means that the exchanges are too short for a rate.

    `unseen_rate` is the largest change of the rate in the middle that leaves room for one line
    (dimensionless; None if exchanges in the middle are missing). `departure_ns` is the largest
    distance from the lines of the middle between both directions' shortest delays: what drift and
    asymmetric load changed in the time of the exchanges.
    """

    times_ns: tuple[int, ...]
    offsets_ns: tuple[int, ...]
    bands_ns: tuple[int, ...]
    unseen_rate: float | None = None
    departure_ns: int | None = None

    def at(self, times_ns: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return offset and band (ns) at times of the controller, each of shape (times,).

        The first and the last line continue beyond the knots. Their error is linear, so it is at
        most the band of the next knot plus the sum of both bands per length of the line.
        """
        knots = (np.array(self.times_ns) - self.times_ns[0]).astype(np.float64)
        times = (times_ns - self.times_ns[0]).astype(np.float64)
        offsets = (np.array(self.offsets_ns) - self.offsets_ns[0]).astype(np.float64)
        bands = np.array(self.bands_ns, dtype=np.float64)
        if len(knots) < 2:
            return np.full(times.shape, float(self.offsets_ns[0])), np.full(times.shape, bands[0])
        line = np.clip(np.searchsorted(knots, times) - 1, 0, len(knots) - 2)
        share = (times - knots[line]) / np.diff(knots)[line]
        beyond = np.maximum(0.0, np.maximum(-share, share - 1.0))
        band = np.interp(times, knots, bands) + beyond * (bands[:-1] + bands[1:])[line]
        return offsets[line] + share * np.diff(offsets)[line] + self.offsets_ns[0], band


@dataclass(frozen=True)
class ClockStep:
    """A step of the offset (ns) between two exchanges that no permitted rate explains."""

    step_ns: int


def clock_lines(
    exchanges: IntArray,
    rate_max: float,
    rate_change_max: float = 0.0,
    margins: tuple[int, int] = (0, 0),
) -> ClockLines | ClockStep:
    """Return the lines of the offset, or the first step.

    `exchanges` has the shape (n, 4), in their order: the times (ns) at which the controller sent,
    the host received, the host replied and the controller received. The rate of each line is at
    most `rate_max` (dimensionless). The band has room for a rate that changes by up to
    `rate_change_max` in the middle of a line, or by the smaller change that the exchanges permit.
    The first and the last knot are `margins` exchanges inside, so that exchanges on both sides
    bound the offset there. Raise ValueError for fewer than two exchanges between the margins.
    """
    bounds = _Bounds.of(exchanges)
    if bounds.count < sum(margins) + 2:
        raise ValueError(f"exchanges: found {bounds.count}; allowed: {sum(margins) + 2} or more")
    pieces = bounds.pieces(rate_max)
    for _, last in pieces[:-1]:
        if not bounds.polygon(last, last + 1, rate_max):
            return bounds.step_after(last)
    return bounds.lines(pieces, rate_max, rate_change_max, margins)


def clock_offset(exchanges: IntArray, rate_max: float) -> ClockLines:
    """Return the offset in the middle of exchanges that are too short for a rate, as one knot."""
    bounds = _Bounds.of(exchanges)
    middle_s = (float(bounds.upper_s[0]) + float(bounds.lower_s[-1])) / 2
    polygon = bounds.polygon(0, bounds.count - 1, rate_max)
    # Without a line, a clock was set during these exchanges; the last one is as good as any.
    values = _values_at(polygon, middle_s) or [bounds.upper_ns[-1], bounds.lower_ns[-1]]
    offset, band = _middle_and_half(values)
    return ClockLines(
        (bounds.origin_ns + round(middle_s * 1e9),),
        (bounds.offset_ns + round(offset),),
        (round(band) + 1,),
    )


@dataclass(frozen=True)
class _Bounds:
    """Bounds of an offset relative to `origin_ns` (controller) and `offset_ns`.

    `upper_s` and `lower_s` are times (s) and `upper_ns` and `lower_ns` are bounds (ns), each of
    shape (n,).
    """

    origin_ns: int
    offset_ns: int
    upper_s: FloatArray
    upper_ns: FloatArray
    lower_s: FloatArray
    lower_ns: FloatArray

    @staticmethod
    def of(exchanges: IntArray) -> _Bounds:
        if exchanges.ndim != 2 or exchanges.shape[1] != 4 or not len(exchanges):
            raise ValueError(f"exchanges: found the shape {exchanges.shape}; allowed: (n > 0, 4)")
        sent, arrived, replied, received = exchanges.T
        origin_ns, offset_ns = int(sent[0]), int(arrived[0] - sent[0])
        return _Bounds(
            origin_ns,
            offset_ns,
            (sent - origin_ns) / 1e9,
            (arrived - sent - offset_ns).astype(np.float64),
            (received - origin_ns) / 1e9,
            (replied - received - offset_ns).astype(np.float64),
        )

    @property
    def count(self) -> int:
        return len(self.upper_s)

    def mirrored(self) -> _Bounds:
        """Return the bounds in reverse order, with reversed time."""
        return _Bounds(
            self.origin_ns, self.offset_ns, -self.upper_s[::-1], self.upper_ns[::-1],
            -self.lower_s[::-1], self.lower_ns[::-1],
        )  # fmt: skip

    def polygon(
        self, first: int, last: int, rate_max: float, pivot_s: float | None = None
    ) -> list[Line]:
        """Return the extreme lines from one exchange to another, both included; [] for none.

        Their values are those at `pivot_s`, by default the time of the first exchange.
        """
        part = slice(first, last + 1)
        pivot_s = float(self.upper_s[first]) if pivot_s is None else pivot_s
        uppers = _lower_hull(self.upper_s[part] - pivot_s, self.upper_ns[part])
        lowers = _lower_hull(self.lower_s[part] - pivot_s, -self.lower_ns[part])
        rate = rate_max * 1e9
        high = float(self.upper_ns[part].max()) + rate * float(np.ptp(self.upper_s[part])) + 1.0
        low = float(self.lower_ns[part].min()) - rate * float(np.ptp(self.lower_s[part])) - 1.0
        reach = rate * float(np.abs(self.upper_s[part] - pivot_s).max() + 1.0)
        low, high = low - reach, high + reach
        lines: list[Line] = [(low, -rate), (high, -rate), (high, rate), (low, rate)]
        for since_s, bound_ns in uppers:
            lines = _clipped(lines, 1.0, since_s, bound_ns + ROUNDING_NS)
        for since_s, bound_ns in lowers:
            lines = _clipped(lines, -1.0, since_s, bound_ns + ROUNDING_NS)
        return lines

    def longest(self, first: int, rate_max: float) -> int:
        """Return the last exchange up to which one line is possible from `first`."""
        possible, impossible = first, self.count
        candidate = self.count - 1
        while impossible - possible > 1:
            if self.polygon(first, candidate, rate_max):
                possible = candidate
            else:
                impossible = candidate
            candidate = (possible + impossible) // 2
        return possible

    def pieces(self, rate_max: float) -> list[Piece]:
        """Return the fewest pieces of exchanges that permit a line each, as long from the start."""
        pieces: list[Piece] = []
        first = 0
        while first < self.count:
            last = self.longest(first, rate_max)
            pieces.append((first, last))
            first = last + 1
        return pieces

    def step_after(self, index: int) -> ClockStep:
        """Return the step between an exchange and the next one."""
        middles = (self.upper_ns + self.lower_ns) / 2
        return ClockStep(round(float(middles[index + 1] - middles[index])))

    def changes(self, pieces: Sequence[Piece], rate_max: float) -> list[Piece]:
        """Return, for each change of the rate, the exchanges between which it lies."""
        from_end = self.mirrored().pieces(rate_max)
        begins = [self.count - 1 - last for _, last in from_end[-2::-1]]
        ends = [last for _, last in pieces[:-1]]
        return [(begin - 1, end + 1) for begin, end in zip(begins, ends, strict=True)]

    def widened(self, room_ns: float) -> _Bounds:
        """Return bounds that permit lines this far outside."""
        upper_ns, lower_ns = self.upper_ns + room_ns, self.lower_ns - room_ns
        return replace(self, upper_ns=upper_ns, lower_ns=lower_ns)

    def lines(
        self,
        pieces: Sequence[Piece],
        rate_max: float,
        rate_change_max: float,
        margins: tuple[int, int],
    ) -> ClockLines:
        """Return the connected lines of pieces.

        At a knot, the band holds what the lines on both sides permit, and the change of the rate at
        any place where it can be. A rate that changes by d in the middle of a time T departs by up
        to d·T/8 from its best line, which this room on both sides of all bounds makes possible.
        """
        changes = self.changes(pieces, rate_max)
        spans_s = [(float(self.upper_s[p]), float(self.lower_s[q])) for p, q in changes]
        inner_s = [(begin + end) / 2 for begin, end in spans_s]
        begin_s, end_s = float(self.upper_s[0]), float(self.lower_s[-1])
        unseen_rate = self.unseen_rate()
        longest_s = max(b - a for a, b in itertools.pairwise([begin_s, *inner_s, end_s]))
        room_ns = min(rate_change_max, unseen_rate or rate_change_max) * longest_s * 1e9 / 8

        before, after = margins
        first_s, last_s = float(self.upper_s[before]), float(self.lower_s[self.count - 1 - after])
        if inner_s and not first_s < inner_s[0] <= inner_s[-1] < last_s:
            first_s, last_s = begin_s, end_s  # a rate changed so near to an end
        instants = [first_s, *inner_s, last_s]

        wide = self.widened(room_ns)
        ranges: list[list[float]] = [[] for _ in instants]
        rates: list[tuple[float, float]] = []
        certain = [*(before_change for before_change, _ in changes), self.count - 1]
        for number, (first, last) in enumerate(pieces):
            # Only exchanges before the change, unless none is certainly of this line.
            last_certain = certain[number] if certain[number] >= first else last
            polygon = wide.polygon(first, last_certain, rate_max)
            rates.append((min(rate for _, rate in polygon), max(rate for _, rate in polygon)))
            for knot in (number, number + 1):
                ranges[knot] += _values_at(polygon, instants[knot] - float(self.upper_s[first]))
        places_ns = [0.0] * len(instants)
        for number, (begin, end) in enumerate(spans_s):
            (low, high), (low_after, high_after) = rates[number : number + 2]
            places_ns[number + 1] = max(high_after - low, high - low_after) * (end - begin) / 2
        knots = [_middle_and_half(values) for values in ranges]
        lines = ClockLines(
            tuple(self.origin_ns + round(instant * 1e9) for instant in instants),
            tuple(self.offset_ns + round(offset) for offset, _ in knots),
            tuple(
                round(half + room_ns + place_ns) + 1
                for (_, half), place_ns in zip(knots, places_ns, strict=True)
            ),
        )
        return replace(lines, unseen_rate=unseen_rate, departure_ns=self.departure_ns(lines))

    def departure_ns(self, lines: ClockLines) -> int | None:
        """Return the largest distance from the lines of the middle between both bounds (ns)."""
        uppers, lowers = (
            bounds - self._relative(lines, times)
            for bounds, times in ((self.upper_ns, self.upper_s), (self.lower_ns, self.lower_s))
        )
        edges = np.linspace(float(self.upper_s[0]), float(self.lower_s[-1]), DEPARTURE_PARTS + 1)
        part_of = np.searchsorted(edges[1:-1], self.upper_s)
        sizes = np.bincount(part_of, minlength=DEPARTURE_PARTS)
        parts = np.flatnonzero(sizes >= DEPARTURE_EXCHANGES_MIN)
        middles = [
            (float(uppers[part_of == part].min()) + float(lowers[part_of == part].max())) / 2
            for part in parts
        ]
        return round(max(abs(middle) for middle in middles)) if middles else None

    def _relative(self, lines: ClockLines, times_s: FloatArray) -> FloatArray:
        """Return the offset of the lines (ns) at times of these bounds, relative to them."""
        times_ns = self.origin_ns + np.rint(times_s * 1e9).astype(np.int64)
        offsets_ns, _ = lines.at(times_ns)
        return offsets_ns - self.offset_ns

    def unseen_rate(self) -> float | None:
        """Return the largest change of the rate in the middle that the bounds permit."""
        middle_s = (float(self.upper_s[0]) + float(self.lower_s[-1])) / 2
        middle = int(np.searchsorted(self.upper_s, middle_s))
        if not 0 < middle < self.count - 1:
            return None
        before, after = (
            self.polygon(first, last, UNLIMITED_RATE, middle_s)
            for first, last in ((0, middle - 1), (middle, self.count - 1))
        )
        changes = []
        for value in {value for value, _ in (*before, *after)}:
            rates, rates_after = (_rates_at(lines, value) for lines in (before, after))
            if rates and rates_after:
                changes += [rates_after[1] - rates[0], rates[1] - rates_after[0]]
        largest = max(changes, default=2.0 * UNLIMITED_RATE * 1e9) / 1e9
        return largest if largest < UNLIMITED_RATE else None


def _values_at(lines: list[Line], since_s: float) -> list[float]:
    """Return the values of lines (ns) at a time after their pivot."""
    return [value + rate * since_s for value, rate in lines]


def _middle_and_half(values: Sequence[float]) -> tuple[float, float]:
    """Return the middle and half of the length of the range of `values`."""
    low, high = float(min(values)), float(max(values))
    return (low + high) / 2, (high - low) / 2


def _lower_hull(times_s: FloatArray, values: FloatArray) -> list[tuple[float, float]]:
    """Return the points of the lower convex hull of points in order of time (monotone chain)."""
    hull: list[tuple[float, float]] = []
    for point in zip(times_s.tolist(), values.tolist(), strict=True):
        while len(hull) > 1 and _turns_right(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return hull


def _turns_right(
    first: tuple[float, float], second: tuple[float, float], third: tuple[float, float]
) -> bool:
    rise, run = second[1] - first[1], second[0] - first[0]
    return rise * (third[0] - first[0]) >= (third[1] - first[1]) * run


def _clipped(lines: list[Line], sign: float, since_s: float, bound_ns: float) -> list[Line]:
    """Return the polygon of the lines with sign·(value + rate·since_s) ≤ bound_ns."""
    excesses = [sign * (value + rate * since_s) - bound_ns for value, rate in lines]
    kept: list[Line] = []
    for index, (line, excess) in enumerate(zip(lines, excesses, strict=True)):
        before, excess_before = lines[index - 1], excesses[index - 1]
        if (excess > 0) != (excess_before > 0):
            share = excess_before / (excess_before - excess)
            kept.append(
                (
                    before[0] + share * (line[0] - before[0]),
                    before[1] + share * (line[1] - before[1]),
                )
            )
        if excess <= 0:
            kept.append(line)
    return kept


def _rates_at(lines: list[Line], value: float) -> tuple[float, float] | None:
    """Return the range of the rates of a polygon's lines with this value at the pivot, if any."""
    rates = []
    for index, line in enumerate(lines):
        before = lines[index - 1]
        low, high = sorted((before, line))
        if low[0] <= value <= high[0]:
            share = (value - low[0]) / (high[0] - low[0]) if high[0] > low[0] else 0.0
            rates.append(low[1] + share * (high[1] - low[1]))
            rates.append(high[1] if high[0] == low[0] else rates[-1])
    return (min(rates), max(rates)) if rates else None
