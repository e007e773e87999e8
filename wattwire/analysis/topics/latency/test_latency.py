"""Test the curves of latency, and what its section prints."""

from __future__ import annotations

import math

import pytest

from wattwire.analysis.charts import Chart
from wattwire.analysis.dataset import gather
from wattwire.analysis.latency import all_series
from wattwire.analysis.topics.latency.clock_terms import ClockDifference, Clocks, HostClock
from wattwire.analysis.topics.latency.due_time import LateSenders, Outage
from wattwire.analysis.topics.latency.numbers import (
    CLOSED,
    Curves,
    Latency,
    Refused,
    latency,
)
from wattwire.analysis.topics.latency.percentiles import Percentiles
from wattwire.report.parts import Column, Figure, Table, Text
from wattwire.report.tests.synthetic import Shape, write_campaign
from wattwire.report.topic_page import topic_page
from wattwire.stats import Interval, TooFew
from wattwire.store import Campaign

JOINING = [((10,), Text("guest"))]
ONE = Interval(100.0, 90.0, 110.0, 0.95, 3, "t")
FEW = TooFew(90, 1000, "messages")
ROW = Percentiles(("8",), 3, 300, 290, 6, 4, 5.0, (ONE, FEW, math.inf, FEW), (ONE, FEW), 1.5)
CURVES = Curves(Chart((), ("a",), "letter"), ("payload",), 100)


@pytest.fixture(scope="module")
def evidence(tmp_path_factory):
    shape = Shape(blocks=3, patterns=("topic",), clients=(1,), intervals_s=(0.05, 0.2))
    return gather(Campaign(write_campaign(tmp_path_factory.mktemp("latency") / "c", shape)))


def test_each_group_has_a_curve_that_ends_at_its_share_of_arrivals(evidence):
    result = latency(evidence, all_series(evidence))
    assert result.runs == result.runs_shown == evidence.usable.height
    assert result.curves is not None and result.curves.pooled == ()
    ends = {}
    for point in result.curves.chart.points:
        ends[point["panel"], point["colour"]] = point["share"]
    assert len(ends) == 4 and set(ends.values()) == {1.0}
    assert len(result.percentiles) == 4
    assert {row.runs for row in result.percentiles} == {3}


def test_without_latencies_no_topic_joins_the_section():
    page = topic_page("latency", Latency(True))
    section = page.section(JOINING)
    assert section is not None and section.has_no_data
    assert [part.key for part in section.parts] == ["latency.runs"]
    assert topic_page("latency", Latency()).section(JOINING) is None


def test_runs_without_a_common_clock_are_named_and_nothing_follows():
    result = Latency(True, 4, 0, refused=Refused(4, ("a", "b")))
    section = topic_page("latency", result).section(JOINING)
    assert section is not None and not section.has_no_data
    assert [part.key for part in section.parts] == ["latency.loops", "latency.refused"]


def test_the_section_has_clocks_curves_percentiles_and_warnings():
    late = LateSenders("Swift", "p99", 300.0, 100.0, 0, False)
    outage = Outage("b01", "", "p99", math.inf, 100.0, 2)
    clocks = Clocks((("a", "b"),), (HostClock("c", 70.0, 90.0, 7.0, 1, 20.0, 2),))
    result = Latency(
        True, 3, 3, CLOSED, clocks, Refused(), (), CURVES, (ROW,), "messages", late, (outage,), 4,
        1, (ClockDifference(("9",), -30.0, 4.0, 2.5),),
    )  # fmt: skip
    page = topic_page("latency", result, [Column("clients", "clients")])
    assert [place for place, _ in page.terminal_lines] == [(12,), (12,)]
    section = page.section(JOINING)
    assert section is not None
    loops, shared, corrected, changes, slews, figure, table, differences, *notes, guest = (
        section.parts
    )
    assert [loops.value, shared.value, corrected.value] == ["closed", "a b", "70.0"]
    assert "less than 7.00 ppm could not be seen" in corrected.words
    assert [(changes.key, changes.value), (slews.key, slews.value)] == [
        ("latency.clock_changes", "1"), ("latency.clock_slews", "2"),
    ]  # fmt: skip
    assert isinstance(differences, Table)
    assert differences.rows == [
        {"clients": "9", "difference_us": -30.0, "drift_us": 4.0, "load_us": 2.5}
    ]
    assert isinstance(figure, Figure) and "group over payload. Curves" in figure.caption
    assert isinstance(table, Table)
    titles = {column.key: column.title for column in table.columns}
    assert (titles["per_s"], titles["p99.9_us"]) == ("messages/s", "p99.9")
    assert table.rows == [
        {"clients": "8", "runs": 3, "messages": 300, "latencies": 290, "lost": 6, "unsent": 4,
         "per_s": 5.0, "p50_us": ONE, "p90_us": FEW, "p99_us": math.inf, "p99.9_us": FEW,
         "band_us": 1.5}
    ]  # fmt: skip
    assert [(note.tone, note.key, note.value) for note in notes] == [
        ("warning", "latency.late", "p99"), ("warning", "latency.unsent", "4"),
        ("note", "latency.undated", "1"),
    ]  # fmt: skip
    assert guest is JOINING[0][1]


def test_several_flows_have_no_common_curve_and_no_common_percentile():
    section = topic_page("latency", Latency(True, 3, 3, flows=("command", "image"))).section()
    assert section is not None
    assert [part.key for part in section.parts] == ["latency.loops", "latency.flows"]
