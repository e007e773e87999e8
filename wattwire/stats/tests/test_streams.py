"""Rates, faults in sequences, and jumps of the wall clock, against values that are known."""

from __future__ import annotations

import numpy as np
import pytest

from wattwire.stats.series.streams import (
    SequenceFaults,
    arrivals,
    clock_jumps,
    first_occurrences,
    sequence_faults,
)


def numbers(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


def test_the_rate_is_that_of_the_intervals_and_needs_two_messages() -> None:
    times_ns = np.array([0, 20, 40, 60], dtype=np.int64) * 1_000_000
    assert arrivals(times_ns).rate_hz == pytest.approx(50)
    assert arrivals(times_ns).interval_sd_s == pytest.approx(0)
    assert arrivals(times_ns[:1]).rate_hz is None
    assert arrivals(times_ns[:2]).interval_sd_s is None
    uneven_ns = np.array([0, 10, 40], dtype=np.int64) * 1_000_000
    assert arrivals(uneven_ns).interval_sd_s == pytest.approx(np.std([0.01, 0.03], ddof=1))


@pytest.mark.parametrize(
    ("sequences", "faults"),
    [
        ((5, 6, 7), SequenceFaults(0, 0, 0)),
        ((5, 7, 10), SequenceFaults(3, 0, 0)),
        ((5, 7, 6, 8), SequenceFaults(0, 1, 0)),
        ((5, 5, 6), SequenceFaults(0, 0, 1)),
        ((5, 8, 8, 6, 9), SequenceFaults(1, 1, 1)),
        ((), SequenceFaults(0, 0, 0)),
        ((2**64 - 2,), SequenceFaults(0, 0, 0)),
    ],
)
def test_faults_of_sequences(sequences: tuple[int, ...], faults: SequenceFaults) -> None:
    assert sequence_faults(numbers(*sequences)) == faults


def test_a_repeated_number_counts_once() -> None:
    assert first_occurrences(numbers(3, 3, 4, 3)).tolist() == [True, False, True, False]


def test_a_clock_that_is_set_jumps_and_one_that_is_corrected_does_not() -> None:
    monotonic_ns = np.arange(10, dtype=np.int64) * 1_000_000_000
    slewed_ns = monotonic_ns + monotonic_ns // 2500  # 400 ppm
    assert clock_jumps(slewed_ns, monotonic_ns) == []
    set_ns = monotonic_ns + np.where(np.arange(10) >= 4, -2_000_000_000, 0)
    assert clock_jumps(set_ns, monotonic_ns) == [(4_000_000_000, -2_000_000_000)]
    assert clock_jumps(set_ns[:1], monotonic_ns[:1]) == []
