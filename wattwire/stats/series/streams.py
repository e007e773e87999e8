"""Summarise the messages of one publisher on one topic, in the order of their arrival.

What it computes: the rate and the scatter of the intervals, lost and reordered messages from the
numbers of the publications, and jumps of the wall clock.
How: the rate is that of the intervals if these cover half of the observed time, and otherwise the
number of messages over this time. A publication is lost if its number lies between two received
ones and never arrived. A message is reordered if a later publication arrived before it (RFC 4737,
3.3). A wall clock that is set moves against the monotonic clock by more than its greatest
correction, 500 ppm of the elapsed time (adjtimex(2)).
What it misses: publications before the first and after the last received one.
Reference: RFC 4737; Mills, RFC 5905, on the limit of the correction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
CountArray = NDArray[np.uint64]
CORRECTION_MAX = 500e-6
"""Greatest rate at which the kernel corrects the wall clock without setting it."""
JUMP_NS_MIN = 1_000_000
"""Movement (ns) of the wall clock below which no jump is reported."""


COVERED_SHARE_MIN = 0.5
"""Share of the observed time that intervals must cover to give the rate: two messages 1 ms apart in
30 s are no stream of 1 kHz."""
NO_NUMBERS = np.empty(0, np.uint64)


@dataclass(frozen=True)
class Arrivals:
    """Rate (Hz) and standard deviation of the intervals (s); None if messages are too few."""

    rate_hz: float | None
    interval_sd_s: float | None


@dataclass(frozen=True)
class SequenceFaults:
    """Numbers of publications that are missing, reordered, or that arrived again."""

    lost: int
    reordered: int
    repeated: int


def arrivals(monotonic_ns: IntArray, observed_s: float) -> Arrivals:
    """Return the rate and the scatter of ascending arrival times in an observed time (s).

    They need one and three messages.
    """
    if not monotonic_ns.size or observed_s <= 0:
        return Arrivals(None, None)
    intervals_s = np.diff(monotonic_ns) / 1e9
    spread_s = float(np.std(intervals_s, ddof=1)) if intervals_s.size > 1 else None
    span_s = float(np.sum(intervals_s))
    if span_s >= COVERED_SHARE_MIN * observed_s:
        return Arrivals(intervals_s.size / span_s, spread_s)
    return Arrivals(monotonic_ns.size / observed_s, spread_s)


def sequence_faults(
    sequences: CountArray, before: CountArray = NO_NUMBERS, after: CountArray = NO_NUMBERS
) -> SequenceFaults:
    """Return the faults in the numbers of publications, in the order of their arrival.

    What arrived `before` or `after` them is not lost, and what arrived before is repeated.
    """
    in_order = sequences[first_occurrences(np.concatenate([before, sequences]))[before.size :]]
    repeated = int(sequences.size - in_order.size)
    if not in_order.size:
        return SequenceFaults(0, 0, repeated)
    received = received_between(in_order, before, after)
    lost = int(received[-1] - received[0]) + 1 - received.size
    highest_before = np.maximum.accumulate(in_order)[:-1]
    reordered = int(np.count_nonzero(in_order[1:] < highest_before))
    return SequenceFaults(lost, reordered, repeated)


def received_between(
    sequences: CountArray, before: CountArray = NO_NUMBERS, after: CountArray = NO_NUMBERS
) -> CountArray:
    """Return the ascending numbers from the lowest to the highest of `sequences` that arrived."""
    distinct = np.unique(np.concatenate([before, sequences, after]))
    return distinct[(distinct >= sequences.min()) & (distinct <= sequences.max())]


def with_losses(values: NDArray[np.float64], received: CountArray) -> NDArray[np.float64]:
    """Return the values of the ascending numbers `received`, with +inf for each number between.

    The result has at most one more infinite value than finite ones: any percentile from the median
    on is infinite then.
    """
    gaps = np.diff(received) - np.uint64(1)
    if float(np.sum(gaps, dtype=np.float64)) > values.size:
        return np.concatenate([values, np.full(values.size + 1, np.inf)])
    return np.insert(values, np.repeat(np.arange(1, received.size), gaps.astype(np.int64)), np.inf)


def first_occurrences(values: CountArray) -> NDArray[np.bool_]:
    """Return whether each value is the first of its kind."""
    is_first = np.zeros(values.size, dtype=np.bool_)
    is_first[np.unique(values, return_index=True)[1]] = True
    return is_first


def clock_jumps(wall_ns: IntArray, monotonic_ns: IntArray) -> list[tuple[int, int]]:
    """Return (monotonic time, movement), in ns, of each jump between two readings of both clocks.

    The time is that of the first reading after the jump. A positive movement is forward.
    """
    if monotonic_ns.size < 2:
        return []
    moved_ns = np.diff(wall_ns - monotonic_ns)
    allowed_ns = JUMP_NS_MIN + CORRECTION_MAX * np.diff(monotonic_ns)
    jumps = np.flatnonzero(np.abs(moved_ns) > allowed_ns)
    return [(int(monotonic_ns[at + 1]), int(moved_ns[at])) for at in jumps]
