"""Test that exactly one energy source is used: the preferred source that covers the run."""

import polars as pl
import pytest

from wattwire.run.results import power
from wattwire.run.results.resources import Readings

S = 10**9


def source(meter, quantity, rank, subjects, counter=True):
    return [
        {"meter": meter, "quantity": quantity, "subject": subject, "counter": counter, "rank": rank}
        for subject in subjects
    ]


def readings(*series):
    """Return the readings of these series: (meter, quantity, subject, [(t_ns, value)])."""
    rows = [
        {"meter": m, "quantity": q, "subject": s, "scope": "machine", "kind": "measured",
         "t_ns": t, "value": float(v)}
        for m, q, s, points in series
        for t, v in points
    ]  # fmt: skip
    return Readings(pl.DataFrame(rows))


def steady(watts, seconds=10, hz=10, begin=0):
    """Return the readings of a counter in µJ at a constant power in W."""
    return [(begin + k * S // hz, watts * 1e6 * k / hz) for k in range(seconds * hz + 1)]


SERIES = [
    *source("board", "power", 30, ["in"], counter=False),
    *source("chip", "energy", 20, ["package-0", "package-1"]),
    {"meter": "chip", "quantity": "part", "subject": "core", "counter": True},
]


def test_sources_come_by_rank_and_parts_are_none():
    assert [s.name for s in power.sources(SERIES)] == ["chip/energy", "board/power"]
    assert power.sources(SERIES)[0].subjects == ("package-0", "package-1")


def test_packages_add_up_and_neither_parts_nor_other_sources_are_added():
    found = readings(
        ("chip", "energy", "package-0", steady(3)),
        ("chip", "energy", "package-1", steady(1)),
        ("chip", "part", "core", steady(2)),
        ("board", "power", "in", [(k * S, 9e6) for k in range(11)]),
    )
    chosen = power.choose(found, SERIES, [(0, 4 * S), (5 * S, 9 * S)])
    assert chosen is not None and chosen.name == "chip/energy"
    assert power.mean_w(found, chosen, (0, 4 * S)) == pytest.approx(4.0)


@pytest.mark.parametrize(
    "second",
    [steady(1, seconds=3), [(0, 0.0)], []],
    ids=["ends before the window does", "read once", "never read"],
)
def test_a_source_with_a_part_unread_is_passed_over_as_a_whole(second):
    found = readings(
        ("chip", "energy", "package-0", steady(3)),
        ("chip", "energy", "package-1", second),
        ("board", "power", "in", [(k * S, 9e6) for k in range(11)]),
    )
    spans = [(0, 2 * S), (3 * S, 9 * S)]
    chosen = power.choose(found, SERIES, spans)
    assert chosen is not None and chosen.name == "board/power"
    assert power.mean_w(found, chosen, spans[1]) == pytest.approx(9.0)


def test_the_same_source_serves_all_spans_or_none_does():
    found = readings(
        ("chip", "energy", "package-0", steady(3, seconds=3)),
        ("chip", "energy", "package-1", steady(3, seconds=3)),
        ("board", "power", "in", [(k * S, 9e6) for k in range(6, 11)]),
    )
    assert power.choose(found, SERIES, [(0, 2 * S), (7 * S, 9 * S)]) is None
    assert power.mean_w(found, None, (0, 2 * S)) is None


def test_a_gauge_is_integrated_and_a_hole_in_it_is_not_bridged():
    (gauge,) = power.sources(SERIES[:1])
    rising = readings(("board", "power", "in", [(k * S, k * 1e6) for k in range(11)]))
    assert power.mean_w(rising, gauge, (2 * S, 8 * S)) == pytest.approx(5.0)
    # The power is 4 W for half a second and 8 W for the other half, at uneven intervals.
    uneven = readings(
        ("board", "power", "in", [(0, 4e6), (S // 2, 4e6), (S // 2 + 1, 8e6), (S, 8e6)])
    )
    assert power.mean_w(uneven, gauge, (0, S)) == pytest.approx(6.0, rel=1e-6)
    hole = readings(("board", "power", "in", [(0, 1e6), (S, 1e6), (7 * S, 9e6), (8 * S, 9e6)]))
    assert power.mean_w(hole, gauge, (0, 8 * S)) is None


def test_a_counter_needs_readings_at_the_ends_only():
    (chip,) = power.sources(SERIES[1:3])
    marks = [(0, 0.0), (8 * S, 16e6)]
    found = readings(("chip", "energy", "package-0", marks), ("chip", "energy", "package-1", marks))
    assert power.mean_w(found, chip, (0, 8 * S)) == pytest.approx(4.0)
    assert power.mean_w(found, chip, (2 * S, 6 * S)) is None


def test_a_gauge_of_what_happened_belongs_to_the_reading_that_ends_it():
    found = readings(
        ("c", "stall", "m", [(0, 1.0), (100, 7.0), (200, 2.0), (301, 3.0), (400, 9.0)])
    )
    assert list(found.since("stall", "machine", "m", 99, 300)) == [2.0, 3.0]
    assert list(found.since("absent", "machine", "m", 99, 300)) == []


@pytest.mark.parametrize("phase", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_a_record_per_second_covers_a_span_at_each_phase(phase):
    (gauge,) = power.sources(SERIES[:1])
    points = [(round((k + phase) * S), 9e6) for k in range(30)]
    found = readings(("board", "power", "in", points))
    assert power.mean_w(found, gauge, (3 * S, 4 * S)) == pytest.approx(9.0)
    # The first reading is up to 0.9 s after the begin, which is less than 1/20 of the span.
    assert power.mean_w(found, gauge, (0, 25 * S)) == pytest.approx(9.0)
    assert power.mean_w(found, gauge, (-2 * S, 10 * S)) is None
    assert power.mean_w(found, gauge, (20 * S, 40 * S)) is None


def test_a_counter_is_not_continued_beyond_its_readings():
    (chip,) = power.sources(SERIES[1:2])
    found = readings(("chip", "energy", "package-0", steady(3, seconds=20)))
    # The span ends 0.2 s after the last reading: the power is that of the time before.
    assert power.mean_w(found, chip, (10 * S, 20 * S + S // 5)) == pytest.approx(3.0)
    assert power.mean_w(found, chip, (19 * S, 20 * S + S // 5)) is None


def test_a_mark_alone_has_its_reading_just_after_it():
    (chip,) = power.sources(SERIES[1:2])
    late = S // 1000
    marks = [(0, 0.0), (50 * S + late, 50e6), (58 * S + late, 74e6), (90 * S, 74e6)]
    found = readings(("chip", "energy", "package-0", marks))
    assert power.mean_w(found, chip, (50 * S, 58 * S)) == pytest.approx(3.0, rel=1e-3)


def test_a_span_shorter_than_20_averaging_times_is_too_short_for_a_meter_outside():
    slow = [{**table, "window_s": 1.0} for table in source("socket", "power", 5, ["in"], False)]
    found = readings(
        ("socket", "power", "in", [(k * S, 40e6) for k in range(60)]),
        ("board", "power", "in", [(k * S, 9e6) for k in range(60)]),
    )
    series = [*slow, *SERIES[:1]]
    long, short = [(S, 22 * S), (30 * S, 50 * S)], [(S, 22 * S), (30 * S, 49 * S)]
    first, columns = power.window_powers(found, series, long, long[1])
    assert first.name == "socket/power" and "energy_too_short" not in columns
    assert columns["energy_source_second"] == "board/power"
    first, columns = power.window_powers(found, series, short, short[1])
    assert first.name == "board/power"
    assert columns["energy_too_short"] == (
        "socket/power: too short for this meter: a baseline or the window has less than 20 s"
    )
