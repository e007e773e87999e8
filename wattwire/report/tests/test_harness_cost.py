"""Tests of the page's round-trip costs of kits, and of the cells without a result."""

from __future__ import annotations

from wattwire.report.parts import Table, Text
from wattwire.report.sections.harness import (
    remarks_of_cells,
    round_trip_costs,
    slow_for_strangers,
)
from wattwire.stats import Interval

COST = {
    "added_us": 5.0, "added_us_low": 3.0, "added_us_high": 7.0, "bare_us": 100.0, "pairs": 10,
    "payload_bytes": 64, "day": "2026-01-31",
}  # fmt: skip


def test_a_measured_cell_has_its_figure_with_the_interval_and_the_other_is_named() -> None:
    table, text = round_trip_costs({"harness_costs": {"a/python": COST, "b/python": None}})
    assert isinstance(table, Table) and isinstance(text, Text)
    (row,) = table.rows
    added = row["added"]
    assert isinstance(added, Interval)
    assert (row["cell"], added.estimate, added.low, added.high) == ("a/python", 5.0, 3.0, 7.0)
    assert "not measured here for b/python" in text.words


def test_where_nothing_was_measured_the_page_says_so() -> None:
    (text,) = round_trip_costs({"harness_costs": {"a/python": None}})
    assert isinstance(text, Text) and "not measured here." in text.words


def test_a_campaign_of_before_says_nothing_about_it() -> None:
    assert round_trip_costs({}) == []


def test_a_server_that_is_slow_for_strangers_is_named_with_its_own_time_and_the_remedy() -> None:
    calls = {
        "own_us": 131.0, "slower_us": {"rest/go": 43_200.0}, "tuned": "tcp_nodelay = on",
        "tuned_us": 124.0,
    }  # fmt: skip
    even = {**calls, "slower_us": {}}
    (text,) = slow_for_strangers({"stranger_calls": {"rest/cpp": calls, "rest/rust": even}})
    for word in ("rest/cpp", "rest/go 43\u202f200", "131 µs", "with tcp_nodelay = on it is 124 µs"):
        assert word in text.words
    assert text.tone == "warning"
    assert slow_for_strangers({}) == []


def test_a_page_prints_the_remark_of_a_cell() -> None:
    (text,) = remarks_of_cells({"remarks": {"rest/go": "The library adds 60 µs."}})
    assert text.words == "rest/go: The library adds 60 µs."
    assert remarks_of_cells({}) == []
