"""Test ranks, shares of variance, interactions and warnings of the sensitivity analyses."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from wattwire import stats
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import Evidence, gather
from wattwire.analysis.responses import CPU
from wattwire.analysis.topics.sensitivity.effects import detected
from wattwire.analysis.topics.sensitivity.numbers import Sensitivity, companions, sensitivity
from wattwire.analysis.topics.sensitivity.violations import (
    Correlated,
    Outlier,
    UnequalVariance,
    Violations,
)
from wattwire.report.parts import Fold, Text, tables_of
from wattwire.report.tests.synthetic import CPU_RATIO, Shape, write_campaign
from wattwire.report.topic_page import Sentences, topic_page
from wattwire.store import Campaign

SENTENCES = Sentences("sensitivity")


def evidence_of(folder, blocks: int) -> Evidence:
    shape = Shape(blocks=blocks, duration_s=2.0, patterns=("topic",), clients=(1,))
    return gather(Campaign(write_campaign(folder / "campaign", shape)))


@pytest.fixture(scope="module")
def six(tmp_path_factory) -> Evidence:
    return evidence_of(tmp_path_factory.mktemp("six"), 6)


def rows_of(evidence: Evidence, name: str) -> list[dict]:
    tables = tables_of(parts_of(result_of(evidence)))
    return next(list(table.rows) for table in tables if table.id == name)


def result_of(evidence: Evidence) -> Sensitivity:
    return sensitivity(evidence, answer_all(evidence))


def parts_of(result: Sensitivity) -> list:
    return [part for _, part in topic_page("sensitivity", result).parts]


def test_ranks_find_the_planted_ratio_and_tell_the_levels_apart(six) -> None:
    row = next(row for row in rows_of(six, "by-ranks") if row["response"] == CPU.title)
    assert row["ranked"].estimate == pytest.approx(CPU_RATIO, rel=0.1)
    assert row["level"] == "96.88 %"
    assert row["delta"].estimate == -1.0
    assert row["friedman"] == pytest.approx(2 / 2**6)
    assert row["quade"] == pytest.approx(2 / 2**6)


def test_everything_else_is_closed_away(six) -> None:
    made = parts_of(result_of(six))
    assert [type(part) for part in made if not isinstance(part, Text)] == [Fold]


def test_each_factor_has_its_share_of_the_variance(six) -> None:
    rows = rows_of(six, "effects")
    planted = next(r for r in rows if r["response"] == CPU.title and r["source"] == "language")
    assert planted["p"] < 1e-6
    assert planted["omega"].low > 0.8
    crossed = next(r for r in rows if r["source"] == "language × interval")
    assert 0 < crossed["permuted"] <= 1


def test_too_few_blocks_give_words_and_not_a_number(tmp_path) -> None:
    for row in rows_of(evidence_of(tmp_path, 3), "by-ranks"):
        for key in ("ranked", "delta", "friedman", "quade"):
            assert isinstance(row[key], stats.TooFew)


def test_a_loss_without_bound_has_a_rank_but_no_ratio() -> None:
    pairs = np.array([[0.1, np.inf], [0.2, 0.4], [0.3, 0.5], [0.1, 0.6], [0.2, 0.7], [0.3, 0.9]])
    ranked, delta = companions(pairs, 0.95)
    assert isinstance(ranked, stats.NotComputable)
    assert delta.estimate == -1.0


def effect(p: float, permuted_p: float | None = None) -> stats.Effect:
    share = stats.Interval(0.1, 0.0, 0.2, 0.95, 20, "")
    return stats.Effect(("a", "b"), 1.0, 1, 10, p, share, permuted_p)


def test_an_interaction_that_only_one_scale_sees_is_told_on_both() -> None:
    pair = ("language", "clients")
    effects = {"log": effect(0.4, 0.41), "plain": effect(0.001)}
    (told,) = detected(CPU, pair, effects, "log")
    assert (told.is_found, told.is_found_on_other, told.is_undecided) == (False, True, False)
    assert (told.scale, told.p, told.other_scale, told.other_p) == ("log", 0.4, "plain", 0.001)
    assert SENTENCES.interaction(told) == (
        "language and clients, CPU time per message: on the log scale, there is no sign that the "
        "ratios of one factor depend on the level of the other (p = 0.40; p by permutation: 0.41); "
        "on the plain scale, the differences of one factor depend on the level of the other "
        "(p = 0.0010)."
    )
    (agreed,) = detected(CPU, pair, {"log": effect(0.01, 0.02), "plain": effect(0.01)}, "log")
    assert agreed.is_found and agreed.is_found_on_other and not agreed.is_undecided
    assert "on the plain scale" not in SENTENCES.interaction(agreed)
    (torn,) = detected(CPU, pair, {"log": effect(0.01, 0.2), "plain": effect(0.01)}, "log")
    assert torn.is_undecided
    assert SENTENCES.interaction(torn).endswith("disagree, so the result is undecided.")
    assert detected(CPU, pair, {"log": effect(0.5, 0.5), "plain": effect(0.6)}, "log") == []


def test_each_violated_assumption_has_a_warning() -> None:
    violated = Violations(
        (UnequalVariance(CPU, "language", "b", 2.5, "B"),),
        (Outlier(CPU, "r1", 4.0), Outlier(CPU, "r2", 5.0, averaged=True)),
        (Correlated(CPU, 0.5), Correlated(CPU, 0.25)),
        is_unchecked=True,
    )
    parts = parts_of(Sensitivity(violated))
    assert [(part.key, part.tone) for part in parts] == [
        (f"sensitivity.{key}", "warning")
        for key in ("runs_max", "unequal", "outliers", "correlations")
    ]
    _, unequal, outliers, correlated = (part.words for part in parts)
    assert ": B in CPU time per message, 2.5 times as much. Each interval allows" in unequal
    assert ": r1 in CPU time per message, 4.0 standard deviations; the mean of r2 and" in outliers
    assert correlated.startswith(
        "Consecutive runs have correlated errors (CPU time per message, correlation 0.50; CPU time "
        "per message, correlation 0.25). With one block, "
    )


def test_a_run_far_out_is_named_in_a_warning(tmp_path) -> None:
    evidence = evidence_of(tmp_path, 6)
    assert result_of(evidence).violations == Violations(has_blocks=True)
    frame = evidence.usable
    values = frame[CPU.column].to_list()
    values[5] *= 3.0
    evidence.usable = frame.with_columns(pl.Series(CPU.column, values))
    evidence.fits.clear()
    result = result_of(evidence)
    assert [outlier.run for outlier in result.violations.outliers] == [frame["run"][5]]
    warnings = [part for part in parts_of(result) if isinstance(part, Text)]
    (warning,) = (text for text in warnings if text.key == "sensitivity.outliers")
    assert (warning.tone, warning.value) == ("warning", "1")
    assert warning.words.startswith(f"Outliers: {frame['run'][5]} in CPU time per message, ")


def test_identical_labels_are_counted_and_a_rate_waits_for_three_hundred(tmp_path) -> None:
    shape = Shape(
        blocks=4, duration_s=1.0, patterns=("topic",), clients=(1,), intervals_s=(0.05,),
        b_over_a=3.0,
    )  # fmt: skip
    evidence = gather(Campaign(write_campaign(tmp_path / "campaign", shape)))
    alarms = result_of(evidence).alarms
    # B uses three times as much CPU time in all four blocks. No other response differs by design.
    assert alarms is not None and alarms.alarms >= 4 and not alarms.is_known
    assert "at least 300 A/A comparisons" in SENTENCES.alarms(alarms, 0.95)
