"""Tests of formatted numbers, series of latencies with losses, and published numbers."""

from __future__ import annotations

import csv
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattwire import stats
from wattwire.analysis.latency import series_of
from wattwire.analysis.responses import resolve
from wattwire.model import words
from wattwire.model.tests.deployments import run_of_nodes
from wattwire.report.parts import Column, Table, shown, with_values, write_csv
from wattwire.stats import Band
from wattwire.store import Messages


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.31234, "0.312"),
        (1234567.0, "1\u202f230\u202f000"),
        (9.996, "10.0"),
        (0.0, "0"),
        (-2.5, "−2.50"),
        (math.inf, "∞ (no arrival)"),
        (math.nan, "–"),
        (None, "–"),
        (1.5e12, "1.50 × 10¹²"),
        (2e-7, "2.00 × 10⁻⁷"),
    ],
)
def test_numbers_have_sensible_digits(value, text) -> None:
    assert words.number(value) == text


@given(st.floats(1e-4, 1e8))
def test_a_printed_number_is_within_half_a_unit_of_its_third_digit(value) -> None:
    printed = float(words.number(value).replace(words.NARROW_SPACE, ""))
    assert printed == pytest.approx(value, rel=0.0051)


def test_no_p_is_zero() -> None:
    assert words.p_equals(0.0123) == "p = 0.012"
    assert words.p_equals(0.0) == "p < 10⁻³⁰⁰"
    columns = (Column("p", "p"), Column("again", "p, permuted in blocks"), Column("x", "power"))
    table = Table("t", "T", columns, [{"p": 0.0, "again": 0.02, "x": 0.0}])
    assert [table.text(column, table.rows[0]) for column in columns] == ["< 10⁻³⁰⁰", "0.0200", "0"]


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ((1.26, 1.15, 1.39), ("1.26", "1.15", "1.39")),
        ((1.0004, 1.00012, 1.0007), ("1.0004", "1.0001", "1.0007")),
        ((1.0004, 0.9, 1.0007), ("1.000", "0.9000", "1.001")),
        ((1.0, 1.0, 1.0), ("1.00", "1.00", "1.00")),
        ((52.3, 52.31, 52.34), ("52.30", "52.31", "52.34")),
        ((math.inf, 2.0, math.inf), (words.INFINITE, "2.00", words.INFINITE)),
        ((1.0, 1.0 - 1e-12, 1.0 + 1e-12), ("1.00", "1.00", "1.00")),
    ],
)
def test_limits_are_printed_with_digits_that_part_them(values, texts) -> None:
    assert words.limits(*values) == texts


def test_durations_counts_and_levels_read_as_a_person_says_them() -> None:
    assert words.duration(5.0) == "5.00 s"
    assert words.duration(125) == "2 min 5 s"
    assert words.duration(7260) == "2 h 1 min"
    assert words.plural(1, "run") == "1 run"
    assert words.plural(1800, "run") == "1\u202f800 runs"
    assert words.level_title("clients", 1, {}) == "1 client"
    assert words.level_title("interval_s", 0.05, {}) == "0.05 s"
    for name in ("loss", "settings.qos", "ros", "kbps", "news", "bus", "depth"):
        noun = name.removeprefix("settings.")
        assert [words.level_title(name, n, {}) for n in (1, 2)] == [f"{noun} 1", f"{noun} 2"]
    assert words.level_title("language", "x", {"language": {"x": "X"}}) == "X"
    assert words.confidence(1 - 0.05 / 12) == "99.58 %"


@pytest.mark.parametrize(
    ("asked", "column"),
    [
        ("cpu_ns_per_message", "cpu_us_per_message"),
        ("cpu_us_per_message", "cpu_us_per_message"),
        ("memory_bytes", "memory_kib_per_node"),
        ("latency_p50_ns", "latency_p50_us"),
        ("latency_p99_us", "latency_p99_us"),
        ("energy_uj_per_message", "energy_uj_per_message"),
        ("power_uw", "power_above_machine_w"),
        ("loss_share", "loss_share"),
        ("some_meter_count", "some_meter_count"),
    ],
)
def test_a_studys_names_of_responses_lead_to_the_summarys_columns(asked, column) -> None:
    assert resolve(asked).column == column


def records(rows: list[tuple]) -> Messages:
    """Return records with node, sender, counter, kind, begin, end and flags."""
    names = ("node", "sender", "counter", "kind", "begin_ns", "end_ns", "flags")
    return Messages.of(pl.DataFrame(rows, schema=list(names), orient="row"))


TOPIC = run_of_nodes({0: "publisher", 1: "subscriber"})
CALLS = run_of_nodes({0: "server", 1: "client"})
ACTION = run_of_nodes({0: "action_server", 1: "action_client"})


def test_a_message_without_an_arrival_stands_as_infinite_in_its_place() -> None:
    sent = [(0, 0, k, "message", 1000 * k, 1000 * k + 10, 0) for k in range(4)]
    arrived = [(1, 0, k, "message", 1000 * k, 1000 * k + 500, 0) for k in (0, 1, 3)]
    found = series_of(records(sent + arrived), TOPIC, lost=1)
    assert found.values_us.tolist() == [0.5, 0.5, math.inf, 0.5]
    assert found.loose == 0


def test_warm_up_duplicates_and_failed_sends_are_not_expected() -> None:
    sent = [
        (0, 0, 0, "message", 0, 10, 1),  # warm-up
        (0, 0, 1, "message", 1000, 1010, 0),
        (0, 0, 2, "message", 2000, None, 2),  # the send failed
    ]
    arrived = [
        (1, 0, 0, "message", 0, 700, 1),
        (1, 0, 1, "message", 1000, 1500, 0),
        (1, 0, 1, "message", 1000, 9000, 0),  # a duplicate
    ]
    found = series_of(records(sent + arrived), TOPIC, lost=0)
    assert found.values_us.tolist() == [0.5]


def test_a_loss_of_the_warm_up_is_known_by_its_senders_record_and_in_no_curve() -> None:
    sent = [(0, 0, k, "message", 1000 * k, 1000 * k + 10, int(k < 2)) for k in range(4)]
    arrived = [(1, 0, k, "message", 1000 * k, 1000 * k + 500, 0) for k in (2, 3)]
    found = series_of(records(sent + arrived), TOPIC, lost=2)
    assert found.values_us.tolist() == [0.5, 0.5]
    assert found.loose == 0


def test_losses_without_any_record_are_added_by_the_summarys_count() -> None:
    arrived = [(1, 0, k, "message", 1000 * k, 1000 * k + 500, 0) for k in (0, 1)]
    found = series_of(records(arrived), TOPIC, lost=2)
    assert np.isinf(found.values_us).sum() == 2
    assert found.loose == 2


def test_a_call_that_timed_out_is_infinite_and_not_counted_twice() -> None:
    calls = [(1, 1, 0, "call", 0, 4000, 0), (1, 1, 1, "call", 1000, None, 4)]
    served = [(0, 1, 0, "call", 10, 20, 0)]
    found = series_of(records(calls + served), CALLS, lost=1)
    assert found.values_us.tolist() == [4.0, math.inf]


def test_a_goal_without_a_result_is_lost_and_feedback_is_no_result() -> None:
    rows = [
        (1, 1, 0, "goal", 0, 100, 0),
        (1, 1, 1, "goal", 1000, 1100, 0),
        (1, 1, 0, "feedback", 50, 60, 0),
        (1, 1, 0, "result", 0, 3000, 0),
    ]
    found = series_of(records(rows), ACTION, lost=1)
    assert found.values_us.tolist() == [3.0, math.inf]


def test_cells_say_interval_band_and_reason(tmp_path) -> None:
    interval = stats.Interval(2.0, 1.5, 2.5, 0.95, 3, "t")
    assert shown(interval) == "2.00 [1.50,\u00a02.50]"
    assert shown(Band(1.0, 4.0)) == "1.00 – 4.00"
    counts = Table("t", "t", [Column("n", "n", "measured", is_count=True)], [])
    for value, text in (
        (6.0, "6"), (19 / 3, "6.33"), (12345.6, "12\u202f346"), (7, "7"), (None, "–"),
        (stats.Interval(6.0, 6.0, 6.0, 0.95, 3, "t"), "6 [6,\u00a06]"),
    ):  # fmt: skip
        assert counts.text(counts.columns[0], {"n": value}) == text
    columns = [Column("a", "a", "measured"), Column("b", "b", "estimate")]
    rows = [{"a": interval, "b": Band(1.0, 4.0)}, {"a": stats.TooFew(2, 10, "runs")}]
    made = Table("t", "t", columns, rows)
    assert made.text(columns[0], rows[1]) == "too few (2 of 10)"
    assert made.hint(columns[0], rows[1]) == "there are only 2 runs, and at least 10 are needed"
    write_csv(made, tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="") as file:
        first, second = list(csv.DictReader(file))
    assert (first["a"], first["a_low"], first["a_level"]) == ("2.0", "1.5", "0.95")
    assert (first["b_estimate_low"], first["b_estimate_high"]) == ("1.0", "4.0")
    assert (second["a"], second["a_note"]) == (
        "",
        "there are only 2 runs, and at least 10 are needed",
    )


def test_a_written_table_holds_no_formula(tmp_path):
    table = Table("t", "T", [Column("=f", "F"), Column("n", "N", "measured")],
                  [{"=f": "=1+1", "n": -1.5}, {"=f": "-2", "n": "-2"}])  # fmt: skip
    write_csv(table, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().split() == ["'=f,n", "'=1+1,-1.5", "-2,-2"]


def test_a_whole_column_is_not_truncated():
    cut, whole = Column("a", "a"), Column("a", "a", is_whole=True)
    row = {"a": "depth = 10, " * 50}
    table = Table("t", "T", [cut], [row])
    assert table.text(cut, row).endswith("…") and table.hint(cut, row) == row["a"]
    assert table.text(whole, row) == row["a"] and table.hint(whole, row) == ""


def test_a_column_without_a_value_is_left_out():
    columns = [Column("a", "a"), Column("b", "b")]
    assert with_values(columns, [{"a": "", "b": None}, {"b": 0.0}]) == columns[1:]
    assert with_values(columns, []) == columns
