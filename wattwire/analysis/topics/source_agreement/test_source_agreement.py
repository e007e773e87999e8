"""Tests of the agreement of two sources of energy."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from wattwire.analysis.topics.source_agreement.numbers import (
    Answering,
    Pair,
    SourceAgreement,
    pair,
    source_agreement,
)
from wattwire.model.outside_meters import AccuracyClass
from wattwire.report.parts import Table
from wattwire.report.topic_page import topic_page
from wattwire.stats import NotComputable, TooFew

CLASSES = {"one": AccuracyClass(0.01, 0.1), "two": AccuracyClass(0.0, 0.5)}


def warning_of(compared: Pair) -> str:
    section = topic_page("source_agreement", SourceAgreement(True, (compared,))).section()
    assert section is not None
    return section.parts[1].words


def test_the_section_has_the_ratio_the_difference_and_what_the_classes_allow() -> None:
    values = np.array([20.0, 21.0, 20.5]), np.array([22.0, 23.1, 22.5])
    compared = pair("one/power", "two/energy", *values, CLASSES)
    assert compared.allowed_w == pytest.approx(0.305 + 0.5)
    assert compared.disagrees
    section = topic_page("source_agreement", SourceAgreement(True, (compared,))).section()
    assert section is not None
    table, warning = section.parts
    assert isinstance(table, Table)
    (row,) = table.rows
    assert row["first"] == "one/power" and row["ratio"].estimate == pytest.approx(1.0992, abs=1e-3)
    text = "In 3 runs, two/energy measured 2.03 [1.89, 2.18] W more than one/power (1.099 [1.096"
    assert warning.words.startswith(text) and "allow 0.805 W" in warning.words


def test_a_second_source_that_measures_less_has_a_positive_difference_in_words() -> None:
    values = np.array([22.0, 23.1, 22.5]), np.array([20.0, 21.0, 20.5])
    compared = pair("one/power", "two/energy", *values, CLASSES)
    assert compared.disagrees and compared.difference_w.estimate < 0
    (_, warning) = (
        topic_page("source_agreement", SourceAgreement(True, (compared,))).section().parts
    )
    assert "two/energy measured 2.03 [1.89, 2.18] W less than one/power" in warning.words


def test_a_meter_outside_the_supply_has_a_difference_and_a_reason_for_no_ratio() -> None:
    compared = pair("one/power", "two/energy", np.zeros(3), np.array([20.0, 21.0, 20.5]), CLASSES)
    assert isinstance(compared.ratio, NotComputable)
    assert "one/power measured no power in 3 of 3 runs" in compared.ratio.reason
    (_, warning) = (
        topic_page("source_agreement", SourceAgreement(True, (compared,))).section().parts
    )
    assert "W more than one/power. At this power" in warning.words


def test_without_a_run_that_both_cover_there_are_no_powers() -> None:
    nothing = np.array([np.nan, np.nan])
    compared = pair("one/power", "two/energy", nothing, np.array([20.0, 21.0]), CLASSES)
    assert (compared.runs, compared.first_w, compared.allowed_w) == (0, None, None)
    assert isinstance(compared.ratio, TooFew) and not compared.disagrees


def test_a_source_that_covers_a_part_of_the_runs_is_compared_in_these() -> None:
    names = {"energy_source": "one/power", "energy_source_second": "two/power"}
    watts = {"power_window_w": 20.0, "power_window_second_w": 21.0}
    alone = {"energy_source_second": None, "power_window_second_w": None}
    rows = [names | watts, names | watts, names | watts | alone, names | watts]
    meters = [{"name": name, "share": 0.0, "watts": 0.1, "window_s": 1.0} for name in CLASSES]
    evidence = SimpleNamespace(
        imported=False, usable=pl.DataFrame(rows), runs={},
        reader=SimpleNamespace(machine={"outside_meters": meters}, alignment_loads=lambda: None),
    )  # fmt: skip
    (compared,) = source_agreement(evidence).pairs
    assert compared.runs == 3 and compared.disagrees


def test_two_runs_are_too_few_for_an_interval_and_no_disagreement() -> None:
    compared = pair("one/power", "two/energy", np.array([1.0, 2.0]), np.array([3.0, 4.0]), CLASSES)
    assert isinstance(compared.ratio, TooFew) and not compared.disagrees


def test_a_run_without_one_of_the_powers_is_not_compared() -> None:
    first, second = np.array([1.0, np.nan, 1.0, 1.0]), np.array([1.0, 1.0, np.nan, 1.0])
    assert pair("one/power", "in/energy", first, second, CLASSES).runs == 2


def test_the_bound_of_a_meter_outside_is_the_sum_of_its_class_and_the_ends_of_the_window() -> None:
    frame = pl.DataFrame(
        {
            "energy_source": ["one/power"] * 3,
            "power_window_w": [20.0, 21.0, 20.5],
            "power_silent_w": [10.5] * 3,
            "cost_window_s": [50.0] * 3,
        }
    )
    meters = [{"name": "one", "share": 0.01, "watts": 0.1, "window_s": 1.0}]
    reader = SimpleNamespace(machine={"outside_meters": meters}, alignment_loads=lambda: None)
    info = {"answers": 50, "faults": 2, "thread_cpu_ns": 5e6, "fault_texts": {"noise": 2}}
    series = [{"meter": "one", "info": info}, {"meter": "one", "info": info}]
    sampling = {"series": series, "ticks": 500, "period_ns": 1e8}
    on_rig = {"sampling": sampling, "hosts": {"local": {"sampling": sampling}}}
    runs = {"r1": {"sampling": sampling}, "r2": {}, "r3": on_rig}
    result = source_agreement(
        SimpleNamespace(imported=False, usable=frame, reader=reader, runs=runs)
    )
    assert result.answering == (Answering("one", 100, 4, pytest.approx(1e-4), "noise"),)
    (bound,) = result.bounds
    assert bound.class_w == pytest.approx(0.305) and bound.edges_w == pytest.approx(2 * 10 / 50)
    assert bound.share == pytest.approx(0.705 / 20.5)
    answers, table = topic_page("source_agreement", result).section().parts
    assert answers.rows[0]["fault"] == "noise"
    assert table.rows[0]["bound_w"] == pytest.approx(0.705)


def test_without_a_tick_the_share_of_a_core_has_a_reason_and_no_number() -> None:
    series = [{"meter": "one", "info": {"answers": 0, "faults": 3, "thread_cpu_ns": 5e6}}]
    sampling = {"series": series, "ticks": 0, "period_ns": 1e8}
    meter = {"name": "one", "share": 0.0, "watts": 0.0, "window_s": 1.0}
    reader = SimpleNamespace(machine={"outside_meters": [meter]}, alignment_loads=lambda: None)
    evidence = SimpleNamespace(
        imported=False, usable=pl.DataFrame(), reader=reader, runs={"r1": {"sampling": sampling}}
    )
    result = source_agreement(evidence)
    assert isinstance(result.answering[0].cpu_share, NotComputable)
    (table,) = topic_page("source_agreement", result).section().parts
    assert "tick" in str(table.rows[0]["cpu_share"])


def test_sources_of_several_machines_have_no_pair_and_their_classes_add_up() -> None:
    names = {"energy_source": "one/power", "energy_source_second": "two/power"}
    of_rig = {**names, "energy_source_second": "three/power and two/power"}
    watts = {"power_window_w": 20.0, "power_window_second_w": 21.0, "power_silent_w": 20.0}
    rows = [one | watts | {"cost_window_s": 50.0} for one in (names, of_rig)]
    known = {"name": "one", "share": 0.01, "watts": 0.1, "window_s": 1.0}
    meters = [known | {"host": "robot"}, known | {"host": "edge", "share": 0.02}]
    evidence = SimpleNamespace(
        imported=False, usable=pl.DataFrame(rows), runs={},
        reader=SimpleNamespace(machine={"outside_meters": meters}, alignment_loads=lambda: None),
    )  # fmt: skip
    result = source_agreement(evidence)
    assert [(one.first, one.second, one.runs) for one in result.pairs] == [
        ("one/power", "two/power", 1)
    ]
    (bound,) = result.bounds
    assert bound.class_w == pytest.approx(0.02 * 20 + 2 * 0.1)
    (*_, bounds, _) = topic_page("source_agreement", result).section().parts
    assert "up to twice this error in W" in bounds.note


def test_without_a_second_source_there_is_no_section() -> None:
    assert topic_page("source_agreement", SourceAgreement(True)).section() is None
