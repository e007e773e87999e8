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
