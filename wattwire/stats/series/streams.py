"""Summarise the messages of one publisher on one topic, in the order of their arrival.

What it computes: the rate and the scatter of the intervals, lost and reordered messages from the
numbers of the publications, and jumps of the wall clock.
How: a publication is lost if its number lies between two received ones and did not arrive. A
message is reordered if a later publication arrived before it (RFC 4737, 3.3). A wall clock that is
set moves against the monotonic clock by more than its greatest correction, 500 ppm of the elapsed
time (adjtimex(2)).
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


@dataclass(frozen=True)
class Arrivals:
    """Rate (Hz) and standard deviation of the intervals (s); None if messages are too few."""

    rate_hz: float | None
    interval_sd_s: float | None


@dataclass(frozen=True)
class SequenceFaults:
    """Numbers of publications that are missing, late, or that arrived again."""

    lost: int
    reordered: int
    repeated: int


def arrivals(monotonic_ns: IntArray) -> Arrivals:
    """Return the rate and the scatter of ascending arrival times; they need 2 and 3 messages."""
    if monotonic_ns.size < 2 or monotonic_ns[-1] == monotonic_ns[0]:
        return Arrivals(None, None)
    intervals_s = np.diff(monotonic_ns) / 1e9
    spread_s = float(np.std(intervals_s, ddof=1)) if intervals_s.size > 1 else None
    return Arrivals(float(1.0 / np.mean(intervals_s)), spread_s)


def sequence_faults(sequences: CountArray) -> SequenceFaults:
    """Return the faults in the numbers of publications, in the order of their arrival."""
    if sequences.size == 0:
        return SequenceFaults(0, 0, 0)
    distinct = np.unique(sequences)
    lost = int(distinct[-1] - distinct[0]) + 1 - distinct.size
    is_first = first_occurrences(sequences)
    in_order = sequences[is_first]
    highest_before = np.maximum.accumulate(in_order)[:-1]
    reordered = int(np.count_nonzero(in_order[1:] < highest_before))
    return SequenceFaults(lost, reordered, int(sequences.size - distinct.size))


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
