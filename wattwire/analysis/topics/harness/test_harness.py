"""Tests of the overhead: metrics of the harness, round trips of kits, and servers of cells."""

from __future__ import annotations

from wattwire.analysis.topics.harness.numbers import (
    Cost,
    Harness,
    Phase,
    Remark,
    RoundTrips,
    SlowServer,
    Stranger,
    remarks,
    round_trips,
    slow_servers,
)
from wattwire.report.parts import Table
from wattwire.report.topic_page import Sentences, topic_page
from wattwire.stats import Interval

COST = {
    "added_us": 5.0, "added_us_low": 3.0, "added_us_high": 7.0, "bare_us": 100.0, "pairs": 10,
    "payload_bytes": 64, "day": "2026-01-31",
}  # fmt: skip
SENTENCES = Sentences("harness")


def parts_of(result: Harness) -> list:
    section = topic_page("harness", result).section()
    assert section is not None
    return section.parts


def test_a_measured_cell_has_its_figure_with_the_interval_and_the_other_is_named() -> None:
    result = round_trips({"harness_costs": {"a/python": COST, "b/python": None}})
    _, table, text = parts_of(Harness(True, round_trips=result))
    assert isinstance(table, Table)
    (row,) = table.rows
    added = row["added"]
    assert isinstance(added, Interval)
    assert (row["cell"], added.estimate, added.low, added.high) == ("a/python", 5.0, 3.0, 7.0)
    assert "runs (64 B, on" in table.note
    assert (text.tone, text.value) == ("note", "1")
    assert "not measured here for b/python. Use" in text.words


def test_if_no_cell_was_measured_none_is_named() -> None:
    result = round_trips({"harness_costs": {"a/python": None}})
    _, text = parts_of(Harness(True, round_trips=result))
    assert "not measured here. Use" in text.words


def test_a_campaign_without_cells_has_no_round_trips() -> None:
    assert round_trips({}) == round_trips({"harness_costs": {}}) == RoundTrips()
    assert list(slow_servers({})) == [] and list(remarks({})) == []


def test_a_server_that_is_slow_for_strangers_is_found_with_its_own_time_and_the_remedy() -> None:
    calls = {
        "own_us": 131.0, "slower_us": {"rest/go": 43_200.0}, "tuned": "tcp_nodelay = on",
        "tuned_us": 124.0,
    }  # fmt: skip
    even = {**calls, "slower_us": {}}
    (server,) = slow_servers({"stranger_calls": {"rest/cpp": calls, "rest/rust": even}})
    assert server == SlowServer(
        "rest/cpp", (Stranger("rest/go", 43_200.0),), 131.0, "tcp_nodelay = on", 124.0
    )
    text = SENTENCES.slow_server(server)
    assert "cells: rest/go 43\u202f200 µs (median" in text
    assert text.endswith("latency; with tcp_nodelay = on it is 124 µs.")
    no_remedy = SlowServer("a/b", (Stranger("c/d", 1.0), Stranger("e/f", 2.0)), 0.5, "", None)
    assert "c/d 1.00, e/f 2.00 µs" in SENTENCES.slow_server(no_remedy)


def test_the_section_has_metrics_phases_and_remarks() -> None:
    costs = (Cost("CPU time", None, 0.25, 0.5, 3), Cost("reads", "µs", 1.0, 2.0, 3))
    (remark,) = remarks({"remarks": {"rest/go": "The library adds 60 µs."}})
    assert remark == Remark("rest/go", "The library adds 60 µs.")
    result = Harness(True, costs, (Phase("idle wait", 1.0, 2.0, 3.0),), remarks=(remark,))
    of_costs, phases, text = parts_of(result)
    assert [(row["what"], row["unit"]) for row in of_costs.rows] == [
        ("CPU time", "share of all cores"), ("reads", "µs"),
    ]  # fmt: skip
    assert phases.rows == [{"phase": "idle wait", "median": 1.0, "highest": 2.0, "total": 3.0}]
    assert (text.value, text.words) == ("rest/go", "rest/go: The library adds 60 µs.")


def test_without_a_record_the_section_says_so_and_imported_data_have_none() -> None:
    (text,) = parts_of(Harness(is_measured=True))
    assert (text.tone, text.key) == ("warning", "harness.costs")
    assert topic_page("harness", Harness()).section() is None
