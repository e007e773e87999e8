"""Test the alignment of a meter's clock and the bound of its energy with planted truth."""

from __future__ import annotations

import numpy as np
import pytest

from wattwire.model.outside_meters import CHIPS
from wattwire.stats.results import Interval, NotComputable
from wattwire.stats.series.alignment import (
    Alignment,
    BoundedEnergy,
    ClockRelation,
    Load,
    Trace,
    aligned,
    bounded_energy,
    chips,
    clock_offset,
)

SEEDS = 60
IDLE_W, LOADED_W, NOISE_W = 10.0, 12.0, 0.3
WINDOW_S = 1.0
RESOLUTION_W = 0.1
CLASS = (0.005, 0.1)
BEFORE, AFTER = Load.starting_at(10.0), Load.starting_at(10.0 + 126.0 + 20.0 + 120.0 + 20.0)
SPAN_S = (156.0, 276.0)
END_S = AFTER.boundaries_s[-1] + 15.0


class Planted:
    """A meter on its own clock, in logical time, and the energy of the span."""

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.offset_s = random.uniform(-3, 3)
        self.rate = random.choice([-1, 1]) * 200e-6
        # In the span, the load steps at random times, also close to its edges.
        steps_s = np.sort(random.uniform(SPAN_S[0] - 5, SPAN_S[1] + 5, 40))
        span_edges = np.concatenate((steps_s, [steps_s[-1] + 3]))
        span_levels = random.integers(0, 2, 40).astype(float)
        edges, levels = [0.0], []
        for boundaries, values in (
            (BEFORE.boundaries_s, BEFORE.levels),
            (span_edges, span_levels),
            (AFTER.boundaries_s, AFTER.levels),
        ):
            levels += [0.0, *values]
            edges += list(boundaries)
        edges.append(END_S + 10)
        levels.append(0.0)
        self.edges_s, levels_w = np.array(edges), IDLE_W + LOADED_W * np.array(levels)
        self.joules = np.concatenate(([0.0], np.cumsum(np.diff(self.edges_s) * levels_w)))
        phase = random.uniform(0, 1)
        self.stamps_s = np.arange(5.0 + phase, END_S - 5, WINDOW_S)
        ends = self.ours(self.stamps_s)
        begins = self.ours(self.stamps_s - WINDOW_S)
        means = (self.energy(ends) - self.energy(begins)) / (ends - begins)
        noisy = means + random.normal(0, NOISE_W, means.size)
        self.powers_w = np.round(noisy / RESOLUTION_W) * RESOLUTION_W

    def ours(self, stamps_s: np.ndarray) -> np.ndarray:
        return (stamps_s - self.offset_s) / (1 + self.rate)

    def energy(self, times_s: np.ndarray) -> np.ndarray:
        return np.interp(times_s, self.edges_s, self.joules)

    def offset_at(self, time_s: float) -> float:
        return self.offset_s + self.rate * time_s


def test_the_chips_are_a_sequence_of_maximal_length() -> None:
    values = 2 * np.array(chips()) - 1
    assert values.size == CHIPS and values.sum() in (-1, 1)
    shifted = [int(values @ np.roll(values, lag)) for lag in range(1, CHIPS)]
    assert set(shifted) == {-1}


@pytest.fixture(scope="module")
def planted() -> list[tuple[Planted, Interval, Interval]]:
    found = []
    for seed in range(SEEDS):
        meter = Planted(seed)
        offsets = [
            clock_offset(meter.stamps_s, meter.powers_w, load, WINDOW_S) for load in (BEFORE, AFTER)
        ]
        found.append((meter, *offsets))
    return found


def test_the_interval_of_the_offset_holds_the_truth_and_is_narrow(planted) -> None:
    for index, load in ((1, BEFORE), (2, AFTER)):
        held = 0
        for result in planted:
            meter, offset = result[0], result[index]
            assert isinstance(offset, Interval)
            assert (offset.high - offset.low) / 2 <= 0.1
            held += not offset.excludes(meter.offset_at(load.middle_s))
        assert held >= 53


def test_the_bound_of_the_energy_holds_and_is_useful(planted) -> None:
    for meter, before, after in planted:
        relation = ClockRelation.of([(BEFORE.middle_s, before), (AFTER.middle_s, after)])
        energy = bounded_energy(
            relation.our_time(meter.stamps_s), meter.powers_w, SPAN_S, WINDOW_S,
            relation.half_width_s, RESOLUTION_W, CLASS,
        )  # fmt: skip
        assert isinstance(energy, BoundedEnergy)
        truth_j = float(np.diff(meter.energy(np.array(SPAN_S)))[0])
        assert abs(energy.joules - truth_j) <= energy.bound_j
        assert energy.bound_j <= 0.03 * truth_j


@pytest.mark.parametrize("zero_s", [-5000.0, 0.0, 1234.5])
def test_a_trace_whose_zero_is_anywhere_is_found_by_both_loads(planted, zero_s: float) -> None:
    for meter, before, after in planted[:10]:
        alignment = aligned(Trace(meter.stamps_s + zero_s, meter.powers_w), BEFORE, AFTER)
        assert isinstance(alignment, Alignment)
        assert alignment.first.estimate == pytest.approx(before.estimate + zero_s, abs=0.01)
        assert alignment.last.estimate == pytest.approx(after.estimate + zero_s, abs=0.01)


def test_the_rate_of_the_clock_comes_out(planted) -> None:
    for meter, before, after in planted:
        relation = ClockRelation.of([(BEFORE.middle_s, before), (AFTER.middle_s, after)])
        assert relation.rate == pytest.approx(meter.rate, abs=2e-4)


def test_readings_without_the_load_have_no_offset() -> None:
    random = np.random.default_rng(1)
    stamps = np.arange(0.0, END_S)
    offset = clock_offset(stamps, 10 + random.normal(0, 0.3, stamps.size), BEFORE, WINDOW_S)
    assert isinstance(offset, NotComputable) and "do not contain the load" in str(offset)


def test_readings_that_end_before_the_load_have_no_offset() -> None:
    offset = clock_offset(np.arange(0.0, 40.0), np.ones(40), BEFORE, WINDOW_S)
    assert isinstance(offset, NotComputable) and "readings are inside the load" in str(offset)


@pytest.mark.parametrize(
    ("keep", "text"),
    [
        (lambda t: t < SPAN_S[1] - 10, "and the span is"),
        (lambda t: t > SPAN_S[0] + 10, "and the span is"),
        (lambda t: (t < 200) | (t > 220), "a gap of"),
    ],
)
def test_readings_with_a_gap_or_of_a_part_have_no_energy(keep, text: str) -> None:
    ends = np.arange(0.0, 300.0)
    ends = ends[keep(ends)]
    energy = bounded_energy(ends, np.full(ends.size, 20.0), SPAN_S, WINDOW_S, 0.01, 0.1, CLASS)
    assert isinstance(energy, NotComputable) and text in str(energy)


@pytest.mark.parametrize("edge", [0, 1])
def test_a_span_without_its_first_or_last_reading_has_a_wider_bound(edge: int) -> None:
    ends = np.arange(SPAN_S[0] - 10.0, SPAN_S[1] + 10.5)
    powers = np.where(ends % 20 < 10, 20.0, 10.0)
    lacking_s = 1.5
    limit = SPAN_S[edge] + (lacking_s + 1.0 if edge == 0 else -lacking_s)
    keep = ends >= limit if edge == 0 else ends <= limit
    settings = (SPAN_S, WINDOW_S, 0.01, 0.1, CLASS)
    whole, part = (
        bounded_energy(ends[kept], powers[kept], *settings) for kept in (keep | True, keep)
    )
    assert isinstance(whole, BoundedEnergy) and isinstance(part, BoundedEnergy)
    assert part.edges_j > whole.edges_j + 10.0
    assert abs(part.joules - whole.joules) <= part.bound_j
    constant = bounded_energy(ends[keep], np.full(int(keep.sum()), 20.0), *settings)
    assert isinstance(constant, BoundedEnergy)
    assert constant.joules == pytest.approx(20.0 * (SPAN_S[1] - SPAN_S[0]))
