"""Control runs on the page: what was planted comes out, and no smaller effect is claimed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wattwire.report.tests.synthetic import CPU_RATIO, Shape
from wattwire.report.tests.test_page import built, table

SMALL = {"blocks": 5, "patterns": ("topic",), "intervals_s": (0.05,), "clients": (1,)}


def planned_controls(path: Path) -> set[str]:
    plan = json.loads((path / "plan.json").read_text())
    return {entry["run"] for entry in plan if entry.get("control")}


def test_a_planted_difference_of_two_identical_labels_is_printed_with_its_interval(tmp_path):
    words, page = built(tmp_path / "campaign", Shape(b_over_a=1.2, **SMALL))
    row = next(r for r in table(page, "controls") if r["response"] == "CPU time per message")
    assert float(row["same_low"]) < 1.2 < float(row["same_high"])
    assert row["same_pairs"] == "5"
    assert float(row["sampled_low"]) < 1.0 < float(row["sampled_high"])
    assert "15 control runs beside them" in words.text
    controls = planned_controls(tmp_path / "campaign")
    assert len(controls) == 15
    assert not controls & {row["run"] for row in table(page, "verdicts")}, "they are ordinary"


def test_no_effect_smaller_than_that_of_identical_labels_is_claimed(tmp_path):
    """The languages differ by far less than B from A, so the difference is nobody's."""
    words, page = built(tmp_path / "campaign", Shape(b_over_a=CPU_RATIO**-3, **SMALL))
    row = next(r for r in table(page, "answers") if r["response"] == "CPU time per message")
    assert row["outcome"] == "within noise"
    assert "Two identical labels differed by as much: no difference is claimed." in words.heading
    other, page = built(tmp_path / "quiet", Shape(b_over_a=1.0, **SMALL))
    row = next(r for r in table(page, "answers") if r["response"] == "CPU time per message")
    assert row["outcome"] == "different"
    assert "no difference is claimed" not in other.heading


def test_control_runs_are_in_no_answer(tmp_path):
    with_them = built(tmp_path / "with", Shape(b_over_a=50.0, **SMALL))[1]
    rows = table(with_them, "answers")
    assert {row["runs"] for row in rows if row["runs"]} == {"10"}
    few = built(tmp_path / "one", Shape(b_over_a=2.0, **{**SMALL, "blocks": 1}))[1]
    row = next(r for r in table(few, "controls") if r["response"] == "CPU time per message")
    assert float(row["same"]) == pytest.approx(2.0, rel=0.2)
