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
    with_losses,
)


def numbers(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


def test_the_rate_is_that_of_the_intervals_if_they_cover_the_observed_time() -> None:
    times_ns = np.array([0, 20, 40, 60], dtype=np.int64) * 1_000_000
    assert arrivals(times_ns, 0.08).rate_hz == pytest.approx(50)
    assert arrivals(times_ns, 0.08).interval_sd_s == pytest.approx(0)
    uneven_ns = np.array([0, 10, 40], dtype=np.int64) * 1_000_000
    assert arrivals(uneven_ns, 0.05).interval_sd_s == pytest.approx(np.std([0.01, 0.03], ddof=1))


def test_the_rate_of_a_few_messages_is_their_number_over_the_observed_time() -> None:
    near_ns = np.array([0, 1_000_000], dtype=np.int64)
    assert arrivals(near_ns, 30.0).rate_hz == pytest.approx(2 / 30)
    assert arrivals(near_ns[:1], 30.0).rate_hz == pytest.approx(1 / 30)
    assert arrivals(near_ns, 30.0).interval_sd_s is None
    assert arrivals(near_ns[:0], 30.0).rate_hz is None


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


def test_what_arrived_outside_the_window_is_not_lost() -> None:
    window, before, after = numbers(8, 12, 9, 14), numbers(10, 9), numbers(11)
    assert sequence_faults(window, before, after) == SequenceFaults(1, 0, 1)  # 13 is lost
    assert sequence_faults(window) == SequenceFaults(3, 1, 0)
    assert sequence_faults(numbers(9), before) == SequenceFaults(0, 0, 1)


def test_a_lost_message_is_infinite_where_it_would_have_been() -> None:
    delays = np.array([1.0, 2.0, 3.0])
    assert with_losses(delays, numbers(5, 6, 8)).tolist() == [1.0, 2.0, np.inf, 3.0]
    endless = with_losses(delays, numbers(5, 6, 2**63))
    assert np.isinf(endless).sum() == 4  # the median is infinite, and the array is short


def test_a_repeated_number_counts_once() -> None:
    assert first_occurrences(numbers(3, 3, 4, 3)).tolist() == [True, False, True, False]


def test_a_clock_that_is_set_jumps_and_one_that_is_corrected_does_not() -> None:
    monotonic_ns = np.arange(10, dtype=np.int64) * 1_000_000_000
    slewed_ns = monotonic_ns + monotonic_ns // 2500  # 400 ppm
    assert clock_jumps(slewed_ns, monotonic_ns) == []
    set_ns = monotonic_ns + np.where(np.arange(10) >= 4, -2_000_000_000, 0)
    assert clock_jumps(set_ns, monotonic_ns) == [(4_000_000_000, -2_000_000_000)]
    assert clock_jumps(set_ns[:1], monotonic_ns[:1]) == []
