"""Tests of the points of print-ready figures, and of the means that they pool."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from wattwire.analysis.dataset import Evidence, gather
from wattwire.analysis.responses import CPU, LATENCY_P50, MEMORY
from wattwire.analysis.topics.explore.overview import (
    BOX,
    VIOLIN,
    Means,
    Overview,
    _file_name,
    _means,
    layout_of,
    overview,
)
from wattwire.report.tests.synthetic import Shape, write_campaign
from wattwire.report.topic_page import Sentences
from wattwire.store import Campaign

WORDS = Sentences("explore")


def evidence_of(folder: Any, **shape: Any) -> Evidence:
    sizes = {"blocks": 2, "patterns": ("topic",), "clients": (1, 2), "duration_s": 4.0}
    return gather(Campaign(write_campaign(folder, Shape(**{**sizes, **shape}))))


def latency(evidence: Evidence) -> Overview:
    result = overview(evidence, LATENCY_P50, None, CPU)
    assert result is not None
    return result


def test_a_combination_that_one_cell_lacks_is_in_no_mean(tmp_path: Any) -> None:
    """A missing combination, such as MQTT without C++, is also omitted from the other cells."""
    evidence = evidence_of(
        tmp_path / "c", intervals_s=(0.05, 0.2, 0.5), skip={"interval_s": 0.5, "clients": 2}
    )
    layout = layout_of(evidence)
    assert layout.panel is not None
    points = [{**point, "panel": ""} for point in latency(evidence).points]
    means = _means(evidence, replace(layout, panel=None), points)
    assert means is not None and means.pooled is not None
    other = "clients" if layout.across == "interval_s" else "interval_s"
    levels = {run["run"]: run["treatment"][other] for run in evidence.designed if run["run"]}
    pooled = set(means.pooled)
    gone = {levels[point["run"]] for at, point in enumerate(points) if at not in pooled}
    assert gone == {2 if other == "clients" else 0.5}
    assert means.omitted == len(points) - len(pooled) > 0
    assert f"; {means.omitted} other runs omitted." in WORDS.pooled(means)


def test_a_whole_factorial_loses_no_run(tmp_path: Any) -> None:
    evidence = evidence_of(tmp_path / "c")
    result = latency(evidence)
    means = result.means
    assert means is not None and means.omitted == 0
    assert list(result.averaged.points) == list(result.points)
    assert "omitted" not in WORDS.pooled(means)


def test_the_note_on_means_states_what_they_pool() -> None:
    assert WORDS.pooled(Means("x", ("1",))) == ""
    assert WORDS.pooled(Means("x", ("1",), (0,), ("a", "b"))) == (
        "Means are over the levels of a and b that every cell has."
    )
    assert "compare with care" in WORDS.pooled(Means("x", ("1",), is_unequal=True))


def test_each_treatment_has_a_row_of_its_own(tmp_path: Any) -> None:
    """The colour shows one of four factors, the panels another, and the row names the others."""
    result = latency(evidence_of(tmp_path / "c", patterns=("topic", "service")))
    of_row: dict[tuple[str, str], set[str]] = {}
    for point in result.points:
        of_row.setdefault((point["panel"], point["row"]), set()).add(point["treatment"])
    assert all(len(treatments) == 1 for treatments in of_row.values())
    assert len(of_row) == len({point["treatment"] for point in result.points}) > 4
    assert {row for _, row in of_row} == set(result.rows) == set(result.distribution.rows)
    first, second = (row.split(", ") for row in result.rows[:2])
    assert first[1:] == second[1:], "colours are next to each other"


def test_axes_are_logarithmic_for_positive_values_and_name_their_unit(tmp_path: Any) -> None:
    result = overview(evidence_of(tmp_path / "c"), CPU, MEMORY, CPU)
    assert result is not None and result.other is not None
    assert (result.value.scale, result.against.x_scale, result.has_order) == ("log", "log", False)
    assert WORDS.axis(result.value) == "CPU time per message (µs, log scale)"
    share = replace(CPU, title="share", unit="", share=True)
    linear = overview(evidence_of(tmp_path / "d"), share, None, None)
    assert linear is not None and linear.other is None and linear.has_order
    assert (linear.distribution.x_scale, WORDS.axis(linear.value)) == ("linear", "share")


def test_violins_need_many_runs_in_every_row(tmp_path: Any) -> None:
    sizes = {"clients": (1,), "intervals_s": (0.05,), "duration_s": 1.0}
    assert latency(evidence_of(tmp_path / "few", blocks=19, **sizes)).kind == BOX
    assert latency(evidence_of(tmp_path / "many", blocks=20, **sizes)).kind == VIOLIN


def test_long_names_of_columns_give_different_names_of_files() -> None:
    assert _file_name("CPU time (µs)") == "cpu-time-s"
    one, other = _file_name("a" * 300), _file_name("a" * 301)
    assert one != other and len(one) < 100
