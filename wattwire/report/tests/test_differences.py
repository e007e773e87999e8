"""A run that is zero or negative costs a response its ratio, never its answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from wattwire import stats
from wattwire.report import answered
from wattwire.report.answers import Answers, answer_all
from wattwire.report.evidence import Evidence, column, gather
from wattwire.report.parts import Text, tables_of
from wattwire.report.sentences import headline
from wattwire.report.tests.synthetic import FAST, SLOW, FileCampaign, Shape, write_campaign

CPU = "cpu_us_per_message"
BLOCKS = 8
NEGATIVE_US = -4.0


def campaign(folder: Path, b_over_a: float | None = None) -> FileCampaign:
    """Eight blocks of two languages at two intervals; one run's CPU time is below zero."""
    shape = Shape(
        blocks=BLOCKS, duration_s=1.0, clients=(1,), patterns=("topic",), b_over_a=b_over_a
    )
    path = write_campaign(folder, shape)
    at = path / "runs" / "b01-p001-1" / "summary.parquet"
    pl.read_parquet(at).with_columns(pl.lit(NEGATIVE_US).alias(CPU)).write_parquet(at)
    return FileCampaign(path)


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> tuple[Evidence, Answers]:
    evidence = gather(campaign(tmp_path_factory.mktemp("net") / "c"))
    return evidence, answer_all(evidence)


def of_cpu(answers: Answers):
    return next(item for item in answers.items if item.response.column == CPU)


def test_the_answer_is_the_difference_of_means_inside_blocks(found) -> None:
    evidence, answers = found
    answer = of_cpu(answers)
    assert isinstance(answer.result, stats.Difference)
    values, frame = column(evidence.usable, CPU), evidence.usable
    sides = [np.mean(values[(frame["factor.language"] == one).to_numpy()]) for one in (FAST, SLOW)]
    assert answer.interval.estimate == pytest.approx(sides[0] - sides[1])
    assert answer.result.run_count == 4 * BLOCKS
    assert answers.outcome(answer) == "different"
    # The other responses keep their ratios, in one family with the difference.
    assert {item.response.title for item in answers.computed()} == {"median latency"}
    assert answers.family == len(answers.computed()) + 1


def test_ranks_give_the_typical_difference_of_a_block(found) -> None:
    evidence, answers = found
    frame = evidence.usable.with_columns(value=column(evidence.usable, CPU))
    means = frame.group_by("block", "factor.language").agg(pl.col("value").mean())
    both = means.pivot(on="factor.language", index="block", values="value")
    shifts = (both[FAST] - both[SLOW]).to_numpy()
    walsh = [(shifts[i] + shifts[j]) / 2 for i in range(BLOCKS) for j in range(i, BLOCKS)]
    ranked = of_cpu(answers).by_ranks
    assert isinstance(ranked, stats.Interval)
    assert ranked.estimate == pytest.approx(np.median(walsh))


def test_the_page_says_how_many_and_why_and_answers(found) -> None:
    part = answered.section(*found)
    text = " ".join(one.words for one in part.parts if isinstance(one, Text))
    assert (
        "1 of 32 runs is zero or negative (the least −4.00 µs, b01-p001). A ratio of geometric "
        "means takes each run's logarithm"
    ) in text
    assert "The CPU time per message of Swift lies" in text
    assert "µs below that of Python (simultaneous 95 % interval −" in text
    tables = {one.id: one for one in tables_of(part.parts)}
    refused = next(row for row in tables["answers"].rows if row["response"].startswith("CPU"))
    assert "see the differences below" in str(refused["ratio"])
    (row,) = tables["differences"].rows
    assert row["unit"] == "µs" and row["difference"].high < 0 and row["blocks"] == BLOCKS


def test_a_page_with_differences_alone_begins_with_one(found) -> None:
    evidence, answers = found
    alone = Answers((of_cpu(answers),), 1, 0.95, None, BLOCKS)
    assert headline(evidence, alone).startswith("The CPU time per message of Swift lies ")


def test_no_difference_is_claimed_that_two_identical_labels_show(tmp_path) -> None:
    evidence = gather(campaign(tmp_path / "c", b_over_a=40.0))
    answers = answer_all(evidence)
    answer = of_cpu(answers)
    assert answer.interval.excludes(0.0)
    assert answers.plain_noise[CPU] > abs(answer.interval.estimate)
    assert answers.outcome(answer) == "within noise"
