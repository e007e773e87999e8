"""Test differences, which replace ratios for responses with zero or negative values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from wattwire import stats
from wattwire.analysis.answering.answer_types import Answer, Answers
from wattwire.analysis.answering.single_contrast import contrast
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import Evidence, gather
from wattwire.analysis.responses import resolve
from wattwire.model.derived import column
from wattwire.report.parts import Text, tables_of
from wattwire.report.tests.answered import answered_study, headline, section
from wattwire.report.tests.synthetic import FAST, SLOW, Shape, put_row, row_of, write_campaign
from wattwire.report.topic_page import Sentences
from wattwire.store import Campaign

CPU = "cpu_us_per_message"
BLOCKS = 8
NEGATIVE_US = -4.0
SENTENCES = Sentences("answers")


def campaign(folder: Path, b_over_a: float | None = None, blocks: int = BLOCKS) -> Campaign:
    """Return a campaign in which one run has a negative CPU time.

    It has blocks of two languages at two intervals.
    """
    shape = Shape(
        blocks=blocks, duration_s=1.5, clients=(1,), patterns=("topic",), b_over_a=b_over_a
    )
    path = write_campaign(folder, shape)
    at = path / "runs" / "b01-p001-1" / "summary.json"
    row_of(at).with_columns(pl.lit(NEGATIVE_US).alias(CPU)).pipe(put_row, at)
    return Campaign(path)


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> tuple[Evidence, Answers]:
    evidence = gather(campaign(tmp_path_factory.mktemp("net") / "c"))
    return evidence, answer_all(evidence)


def of_cpu(answers: Answers):
    return next(item for item in answers.items if item.response.column == CPU)


def test_the_answer_is_the_typical_difference_of_matched_runs(found) -> None:
    evidence, answers = found
    answer = of_cpu(answers)
    frame = evidence.usable.with_columns(value=column(evidence.usable, CPU))
    both = frame.pivot(
        on="factor.language", index="block", values="value", aggregate_function="mean"
    )
    shifts = (both[FAST] - both[SLOW]).to_numpy()
    at, other = np.triu_indices(shifts.size)
    assert isinstance(answer.result, stats.Difference)
    assert (answer.result.kind, answer.result.strata) == ("blocks", BLOCKS)
    assert answer.interval.estimate == pytest.approx(np.median((shifts[at] + shifts[other]) / 2))
    assert answer.interval.level >= answers.level
    assert answers.outcome(answer) == "different"
    # The other responses still have ratios, which share a family with the difference.
    assert {item.response.title for item in answers.computed()} == {"median latency"}
    assert answers.family == len(answers.computed()) + 1


def test_one_run_gone_wrong_moves_means_and_no_ranks(found, tmp_path) -> None:
    reader = campaign(tmp_path / "c")
    at = reader.path / "runs" / "b01-p001-1" / "summary.json"
    row_of(at).with_columns(pl.lit(-19_632.0).alias(CPU)).pipe(put_row, at)
    evidence = gather(Campaign(reader.path))
    wrong, right = of_cpu(answer_all(evidence)), of_cpu(found[1])
    assert wrong.interval.estimate == pytest.approx(right.interval.estimate, rel=0.2)
    (row,) = answered_study(evidence, answer_all(evidence)).differences
    assert isinstance(row.of_means, stats.Interval)
    assert abs(row.of_means.estimate) > 3 * abs(wrong.interval.estimate)


def test_too_few_blocks_for_the_level_leave_means(tmp_path) -> None:
    reader = campaign(tmp_path / "c", blocks=5)
    evidence = gather(reader)
    answers = answer_all(evidence)
    answer = of_cpu(answers)
    assert isinstance(answer.result, stats.Difference) and answer.result.kind == "treatments"
    (row,) = answered_study(evidence, answers).differences
    assert row.interval == row.of_means


def test_a_difference_of_shares_is_that_of_means_for_any_number_of_blocks(tmp_path) -> None:
    path = write_campaign(tmp_path / "c", Shape(blocks=BLOCKS, clients=(1,), patterns=("topic",)))
    evidence = gather(Campaign(path))
    # A loss in one block of eight: the typical difference is 0, and the mean is not.
    lost = (pl.col("block") == 2) & (pl.col("factor.language") == FAST)
    evidence.usable = evidence.usable.with_columns(
        loss_share=pl.when(lost).then(0.4).otherwise(pl.col("block") * 1e-6)
    )
    item = Answer(
        "Q", resolve("loss_share"), "language", FAST, SLOW, stats.NotComputable(""),
        stats.NotComputable(""),
    )  # fmt: skip
    result = contrast(evidence, evidence.usable, item, 0.95)
    assert isinstance(result, stats.Difference) and result.kind == "treatments"
    assert result.interval.estimate == pytest.approx(0.4 / BLOCKS, rel=0.01)


def test_the_page_says_how_many_and_why_and_answers(found) -> None:
    evidence, answers = found
    part = section(evidence, answers)
    text = " ".join(one.words for one in part.parts if isinstance(one, Text))
    assert (
        "1 of 32 runs is zero or negative (minimum −4.00 µs, b01-p001). Ratios of geometric "
        "means require positive values"
    ) in text
    stated = [item for question in answered_study(*found).questions for item in question.stated]
    (difference,) = (item for item in stated if item.statement and item.statement.is_difference)
    answer = difference.statement
    assert answer is not None and answer.interval is not None
    assert (answer.level_title, answer.baseline_title) == ("Swift", "Python")
    assert answer.is_typical and not answer.is_higher and not answer.is_in_points
    assert answer.interval.low < answer.interval.high < 0
    assert (answer.kind, answer.blocks, answer.runs) == ("blocks", BLOCKS, 32)
    assert difference.outcome == "different"
    words = SENTENCES.stated(difference)
    assert words.startswith("The CPU time per message is typically ")
    assert f" µs, by ranks of {BLOCKS} blocks, 32 runs): different." in words
    assert " µs lower for Swift than for Python (simultaneous 95 % interval −" in words
    tables = {one.id: one for one in tables_of(part.parts)}
    refused = next(row for row in tables["answers"].rows if row["response"].startswith("CPU"))
    assert "see the differences below" in str(refused["ratio"])
    (row,) = tables["differences"].rows
    assert row["unit"] == "µs" and row["difference"].high < 0 and row["blocks"] == BLOCKS


def test_a_page_with_differences_alone_begins_with_one(found) -> None:
    evidence, answers = found
    alone = Answers((of_cpu(answers),), 1, 0.95, None, BLOCKS)
    first = answered_study(evidence, alone).headline.first
    assert first is not None and first.statement.is_difference
    assert (first.statement.response.title, first.level_title) == ("CPU time per message", "Swift")
    assert SENTENCES.claim(first.statement) in headline(evidence, alone)


def test_no_difference_is_claimed_that_two_identical_labels_show(tmp_path) -> None:
    evidence = gather(campaign(tmp_path / "c", b_over_a=40.0))
    answers = answer_all(evidence)
    answer = of_cpu(answers)
    assert answer.interval.excludes(0.0)
    assert answers.plain_noise[CPU] > abs(answer.interval.estimate)
    assert answers.outcome(answer) == "within noise"
