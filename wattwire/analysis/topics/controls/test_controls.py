"""Tests of control runs. Planted noise is detected and limits the claimed effects."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import gather
from wattwire.analysis.responses import resolve
from wattwire.analysis.topics.comparison.notes import noise_of
from wattwire.analysis.topics.controls.numbers import (
    Compared,
    Controls,
    _ratio,
    noise,
    noise_floor,
    pairs,
    stored,
)
from wattwire.report.page import build_report
from wattwire.report.tests.synthetic import CPU_RATIO, Shape, put_row, row_of, write_campaign
from wattwire.report.tests.test_page import built, table
from wattwire.report.topic_page import topic_page
from wattwire.stats import Interval, NotComputable
from wattwire.store import Campaign

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
    assert "15 control runs: " in words.text
    controls = planned_controls(tmp_path / "campaign")
    assert len(controls) == 15
    assert not controls & {row["run"] for row in table(page, "verdicts")}, "they are ordinary"


def test_no_effect_smaller_than_that_of_identical_labels_is_claimed(tmp_path):
    """A and B differ by much more than the languages, so no difference is claimed."""
    words, page = built(tmp_path / "campaign", Shape(b_over_a=CPU_RATIO**-3, **SMALL))
    row = next(r for r in table(page, "answers") if r["response"] == "CPU time per message")
    assert row["outcome"] == "not larger than the A/A noise"
    assert "not larger than the A/A noise: CPU time per message" in words.heading
    assert "times the median latency" in words.heading  # the response with a decided answer
    assert "times the CPU time" not in words.heading
    other, page = built(tmp_path / "quiet", Shape(b_over_a=1.0, **SMALL))
    row = next(r for r in table(page, "answers") if r["response"] == "CPU time per message")
    assert row["outcome"] == "different"
    assert "no difference is claimed" not in other.heading


def scatter_b(path: Path, factor: float) -> None:
    """Alternately multiply and divide the cost of B by `factor` from block to block."""
    for summary in path.glob("runs/*/summary.json"):
        frame = row_of(summary)
        if frame["control"][0] == "b":
            by = factor if frame["block"][0] % 2 else 1 / factor
            frame.with_columns(pl.col("cpu_us_per_message") * by).pipe(put_row, summary)


def test_labels_that_differ_in_no_direction_are_noise_by_the_far_end_of_their_interval(tmp_path):
    """The mean of the A/A differences is near zero by chance.

    The true value may be larger than the difference of the languages.
    """
    write_campaign(tmp_path / "c", Shape(b_over_a=1.0, **{**SMALL, "blocks": 6}))
    scatter_b(tmp_path / "c", 5.0)
    evidence = gather(Campaign(tmp_path / "c"))
    logs = np.log(pairs(evidence, resolve("cpu_us_per_message"), "b", "a"))
    assert abs(logs.mean()) < 0.1
    floor = noise(evidence)["cpu_us_per_message"]
    assert floor == pytest.approx(max(abs(end) for end in t_interval(logs)))
    assert floor > -math.log(CPU_RATIO)
    found = answer_all(evidence)
    answer = next(i for i in found.computed() if i.response.column == "cpu_us_per_message")
    assert found.outcome(answer) == "within noise"
    assert noise_of(evidence, answer.response) == floor, "comparisons use the same one"


def test_a_large_noise_floor_is_printed_without_an_exponent(tmp_path):
    write_campaign(tmp_path / "c", Shape(b_over_a=1.0, **{**SMALL, "blocks": 6}))
    scatter_b(tmp_path / "c", 5.0)
    text = build_report(Campaign(tmp_path / "c")).read_text("utf-8")
    percent = re.search(r"under two labels may differ by up to (\S+) %", text)
    assert percent is not None
    assert float(percent[1].replace("\u202f", "")) > 100
    assert "e+" not in percent[1]


def t_interval(logs) -> tuple[float, float]:
    half = 2.570582 * logs.std(ddof=1) / math.sqrt(len(logs))  # 97.5 % t quantile, 5 degrees
    return logs.mean() - half, logs.mean() + half


def test_of_one_or_two_pairs_the_larger_difference_is_the_floor():
    assert noise_floor(np.array([]), 0.95) is None
    assert noise_floor(np.array([0.1, -0.3]), 0.95) == pytest.approx(0.3)


def test_control_runs_are_in_no_answer(tmp_path):
    with_them = built(tmp_path / "with", Shape(b_over_a=50.0, **SMALL))[1]
    rows = table(with_them, "answers")
    assert {row["runs"] for row in rows if row["runs"]} == {"10"}
    few = built(tmp_path / "one", Shape(b_over_a=2.0, **{**SMALL, "blocks": 1}))[1]
    row = next(r for r in table(few, "controls") if r["response"] == "CPU time per message")
    assert float(row["same"]) == pytest.approx(2.0, rel=0.2)


SAME = Interval(1.1, 0.9, 1.3, 0.95, 5, "t, log scale")


def of_response(**fields) -> Controls:
    """Return the result of five pairs in one response."""
    compared = Compared("cpu_us_per_message", "CPU time per message", True, SAME, 5, SAME, 5)
    return Controls(True, "A", (dataclasses.replace(compared, **fields),))


def test_a_campaign_without_control_runs_has_no_section_and_one_without_valid_ones_states_it():
    assert topic_page("controls", Controls()).section() is None
    section = topic_page("controls", Controls(is_planned=True)).section()
    assert section is not None
    assert [(text.tone, text.key, text.value) for text in section.parts] == [
        ("", "controls.treatment", ""), ("warning", "controls.responses", "0"),
    ]  # fmt: skip


def test_the_table_has_ratios_numbers_and_reasons():
    section = topic_page("controls", of_response(sampled=None, sampled_pairs=0)).section()
    assert section is not None
    text, ratios = section.parts
    assert text.value == "A" and "one treatment (A) was" in text.words
    assert ratios.rows == [
        {"response": "CPU time per message", "same": SAME, "same_pairs": 5, "sampled": None,
         "sampled_pairs": 0},
    ]  # fmt: skip


def test_pairs_give_an_interval_a_mean_a_reason_or_nothing():
    ones = np.ones(3)
    assert isinstance(_ratio(2 * ones, ones, "µs", 0.95), Interval)
    assert _ratio(2 * ones[:2], ones[:2], "µs", 0.95) == pytest.approx(2.0)
    assert _ratio(ones[:0], ones[:0], "µs", 0.95) is None
    reason = _ratio(np.array([3.0, 0.0]), ones[:2], "µs", 0.95)
    assert isinstance(reason, NotComputable)
    assert "in 1 pair; mean difference 0.500 µs" in reason.reason


def test_only_intervals_of_responses_that_a_question_names_are_stored():
    (entry,) = stored(of_response(sampled=2.0))["controls"]
    assert entry["response"] == "cpu_us_per_message"
    assert entry["identical_labels"]["low"] == 0.9
    assert entry["sampling"] is None
    assert stored(of_response(is_asked=False)) == {"controls": []}
