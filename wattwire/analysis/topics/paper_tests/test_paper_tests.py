"""Tests of the topic on papers' tests, on campaigns with known effects."""

from __future__ import annotations

import dataclasses

import pytest

from wattwire.analysis.dataset import gather
from wattwire.analysis.topics.paper_tests.numbers import (
    Analysis,
    Grouping,
    OverallTest,
    PaperTests,
    paper_tests,
)
from wattwire.analysis.topics.paper_tests.walks import Refused
from wattwire.model.metrics import METRICS
from wattwire.report.parts import Fold, Text, tables_of
from wattwire.report.tests.synthetic import FAST, SLOW, Shape, write_campaign
from wattwire.report.topic_page import topic_page
from wattwire.stats import TooFew
from wattwire.store import Campaign

CPU, LATENCY, MEMORY = "cpu_us_per_message", "latency_p50_us", "memory_kib_per_node"


def result_of(folder, **shape) -> PaperTests:
    return paper_tests(gather(Campaign(write_campaign(folder / "campaign", Shape(**shape)))))


def analysis_of(result: PaperTests, column: str, *factors: str) -> Analysis:
    """Return the only analysis of a response by these factors, without a selection of levels."""
    (item,) = (
        item
        for item in result.analyses
        if item.response.column == column and item.grouping == Grouping(factors)
    )
    return item


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory) -> PaperTests:
    walks = [
        {"response": "cpu", "by": ["language", "interval_s"], "where": {"pattern": "topic"}},
        {"response": "cpu", "by": ["clients"], "where": {"language": SLOW, "pattern": ["topic"]}},
        {"response": "cpu", "by": ["language"]},
        {"response": "memory", "by": ["clients", "middleware"]},  # a fixed factor
    ]
    return result_of(
        tmp_path_factory.mktemp("paper"), blocks=4, duration_s=4.0, patterns=("topic", "service"),
        study={"paper_path": walks},
    )  # fmt: skip


def test_each_response_is_analysed_by_each_factor_of_its_question_and_as_requested(ordinary):
    groupings = {(item.response.column, item.grouping): item for item in ordinary.analyses}
    assert {(CPU, Grouping(("language",))), (LATENCY, Grouping(("clients",)))} <= groupings.keys()
    of_both = groupings[CPU, Grouping(("language", "interval"), ("topic",))]
    assert (of_both.groups, of_both.runs) == (4, 4 * 4 * 2)
    of_python = groupings[CPU, Grouping(("clients",), ("Python", "topic"))]
    assert (of_python.groups, of_python.runs) == (2, 2 * 4 * 2)
    assert analysis_of(ordinary, MEMORY, "clients", "middleware").groups == 2
    # The third requested analysis equals one of the first, so it is computed once.
    assert len(ordinary.analyses) == len(groupings) == 8


def test_a_planted_difference_is_detected_with_its_steps(ordinary) -> None:
    item = analysis_of(ordinary, CPU, "language")
    assert item.tested.p < 1e-10
    assert {step.step for step in item.steps} >= {"Shapiro–Wilk", "IQR outliers", "Brown–Forsythe"}
    groups = {step.group for step in item.steps if step.step == "Shapiro–Wilk"}
    assert groups == {"Swift", "Python"}
    (decision,) = (step.tested for step in item.steps if step.tested and step.runs == "all")
    assert decision.rejects and not decision.is_powerless


def test_error_rates_and_the_share_of_the_blocks_are_known(ordinary) -> None:
    assert {rate.groups for rate in ordinary.rates} == {2, 5}
    assert len({rate.model for rate in ordinary.rates}) == 5 and ordinary.trials > 1000
    # The simulated campaign drifts by 10 % per block, so blocks explain most residual variance.
    assert ordinary.analyses[0].share_of_blocks > 0.3 > ordinary.analyses[0].share_by_chance
    assert ordinary.has_blocks


def test_pooled_factors_are_named(ordinary) -> None:
    assert analysis_of(ordinary, CPU, "language").pooled == ("pattern", "interval", "clients")
    assert ordinary.pooled == 8


def test_questions_over_several_factors_have_interactions_by_aligned_ranks(ordinary) -> None:
    of_latency = {it.titles: it.p for it in ordinary.aligned if it.response.column == LATENCY}
    assert len(of_latency) == 7 and ("language", "interval", "clients") in of_latency
    assert of_latency["language",] < 1e-10
    of_both = Grouping(("language", "interval"), ("topic",))
    titles = {item.titles for item in ordinary.aligned if item.grouping == of_both}
    assert titles == {("language",), ("interval",), ("language", "interval")}


def test_percentiles_of_too_few_messages_are_not_tested(tmp_path) -> None:
    result = result_of(
        tmp_path, blocks=3, duration_s=1.0, patterns=("topic",), intervals_s=(0.2,), clients=(1,)
    )
    assert LATENCY not in {item.response.column for item in result.analyses}
    (refused,) = (item for item in result.refused if item.title == METRICS[LATENCY].words)
    assert (refused.left_out, refused.runs) == (6, 6)
    assert isinstance(refused.why, TooFew)


def test_energy_that_no_meter_measured_is_refused(ordinary) -> None:
    assert Refused(METRICS["energy_uj_per_message"].words, needs_meter=True) in ordinary.refused
    assert not any(item.response.energy for item in ordinary.analyses)


def test_ranks_of_three_runs_per_group_cannot_reject(tmp_path) -> None:
    shape = Shape(blocks=3, duration_s=2.0, patterns=("topic",), intervals_s=(0.2,), clients=(1,))
    evidence = gather(Campaign(write_campaign(tmp_path / "campaign", shape)))
    evidence.usable = evidence.usable.with_columns(
        # No power transform makes two equal values and an outlier normal.
        cpu_us_per_message=(evidence.usable["block"] == 3).cast(float) * 50.0
        + (evidence.usable["factor.language"] == FAST).cast(float)
        + 1.0
    )
    tested = analysis_of(paper_tests(evidence), CPU, "language").tested
    assert tested.name == "Kruskal–Wallis" and tested.pairs.p_least > 0.05


def test_both_results_are_known_if_outliers_were_removed(tmp_path) -> None:
    shape = Shape(blocks=12, duration_s=8.0, patterns=("topic",), intervals_s=(0.2,), clients=(1,))
    evidence = gather(Campaign(write_campaign(tmp_path / "campaign", shape)))
    block, fast = evidence.usable["block"], evidence.usable["factor.language"] == FAST
    evidence.usable = evidence.usable.with_columns(
        cpu_us_per_message=100.0 + block + 500.0 * ((block == 12) & fast),
        # One run of 24 differs. Without it, all values are equal.
        latency_p50_us=100.0 + ((block == 12) & fast).cast(float),
    )
    result = paper_tests(evidence)
    item = analysis_of(result, CPU, "language")
    assert item.removed.values == 1 and 0 < item.tested.p < 1
    last = [step for step in item.steps if step.runs == "outliers removed"][-1]
    assert item.p_kept == last.p != item.tested.p
    for each in result.analyses:
        assert (each.p_kept is not None) == (each.removed is not None), each
    assert result.undecided == 1 and result.reversed == 0
    assert result.worst_rate == max(rate.without_outliers for rate in item.rates)


def test_a_campaign_without_a_valid_run_has_no_such_section(tmp_path) -> None:
    result = result_of(
        tmp_path, blocks=1, duration_s=2.0, patterns=("topic",), intervals_s=(0.2,), clients=(1,),
        unknown_runs=(0, 1),
    )  # fmt: skip
    assert result == PaperTests()
    assert topic_page("paper_tests", result).section() is None


def test_the_section_is_collapsed_and_has_a_table_of_steps_per_analysis(ordinary) -> None:
    section = topic_page("paper_tests", ordinary).section()
    introduction, fold = section.parts
    assert section.id == "paper-path"
    assert isinstance(introduction, Text) and isinstance(fold, Fold)
    tables = {table.id: table for table in tables_of(section.parts)}
    rows = tables["paper-path"].rows
    assert [row["p"] for row in rows] == [item.tested.p for item in ordinary.analyses]
    assert len(tables["paper-path-8-steps"].rows) == len(ordinary.analyses[7].steps)
    assert len(tables["paper-path-aligned"].rows) == len(ordinary.aligned)
    refused = [part.value for part in fold.parts if isinstance(part, Text) and part.key]
    assert refused == [item.title for item in ordinary.refused]


def test_a_missing_number_keeps_its_reason_on_the_page(ordinary) -> None:
    reason = TooFew(2, 3, "values in the smallest group")
    item = dataclasses.replace(
        ordinary.analyses[0], tested=OverallTest(reason), share=None, blocks=reason
    )
    section = topic_page("paper_tests", PaperTests((item,))).section()
    (row,) = next(table for table in tables_of(section.parts) if table.id == "paper-path").rows
    assert (row["p"], row["blocks"]) == (reason, reason)
    assert row["pairs"] is None and row["by_chance"] is None
