"""Test that treatments without a comparable value are named and excluded entirely.

All other treatments are answered.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from wattwire import stats
from wattwire.analysis.answering.answer_types import Answers
from wattwire.analysis.answering.block_models import block_table, usable_fit
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import Evidence, gather
from wattwire.analysis.responses import resolve
from wattwire.analysis.topics.answers.numbers import Substitute
from wattwire.analysis.topics.order_effects.numbers import order_effects
from wattwire.analysis.topics.ranking.numbers import ranking
from wattwire.analysis.topics.unanswered.cautions import OutcomeRuns
from wattwire.analysis.topics.unanswered.numbers import unanswered
from wattwire.report.tests.answered import answered_study, headline, page_headline
from wattwire.report.tests.synthetic import FAST, SLOW, Shape, put_row, row_of, write_campaign
from wattwire.report.topic_page import Sentences
from wattwire.store import Campaign

QUESTION = {
    "id": "Q",
    "factors": ["language", "clients"],
    "responses": ["latency_p50_us", "cpu_us_per_message"],
}
DEAD = {"language": SLOW, "clients": 4}


def changed(folder: Path, where: dict[str, Any], count: int, **columns: Any) -> tuple[Any, int]:
    """Return the campaign with `columns` set in the first `count` runs that match `where`.

    The second result is the number of matching runs.
    """
    done = 0
    for path in sorted(folder.glob("runs/*/summary.json")):
        frame = row_of(path)
        if any(frame[f"factor.{name}"][0] != level for name, level in where.items()):
            continue
        done += 1
        if done <= count:
            frame.with_columns(
                pl.lit(value, pl.String if isinstance(value, str) else pl.Float64).alias(name)
                for name, value in columns.items()
            ).pipe(put_row, path)
    return folder, done


def campaign(folder: Path, **study: Any) -> Path:
    shape = Shape(
        blocks=4, patterns=("service",), intervals_s=(0.2,), clients=(1, 2, 4),
        study={"question": [QUESTION], **study},
    )  # fmt: skip
    return write_campaign(folder, shape)


def answers_of(folder: Path) -> tuple[Evidence, Answers]:
    evidence = gather(Campaign(folder))
    return evidence, answer_all(evidence)


LOST = {"lost": 332.0, "latency_p50_us": None, "outcome": "died"}


def result_of(answers: Answers, column: str, level: Any) -> Any:
    (found,) = [a for a in answers.items if a.response.column == column and a.level == level]
    return found


@pytest.mark.parametrize("runs", [1, 4])
def test_a_treatment_without_a_bound_is_refused_whole_and_the_others_are_answered(
    tmp_path: Path, runs: int
) -> None:
    folder, _ = changed(campaign(tmp_path / "c"), DEAD, runs, **LOST)
    evidence, answers = answers_of(folder)
    healthy = result_of(answers, "latency_p50_us", 2)
    assert isinstance(healthy.result, stats.Ratio), healthy.result
    # Both languages with 1 and 2 clients; the treatment with 4 clients decides nothing.
    assert healthy.result.run_count == 16, "no run of the treatment is in the contrast"
    for level in (FAST, 4):
        refused = result_of(answers, "latency_p50_us", level).result
        assert f"no finite median latency in {runs} of " in str(refused), refused
    told = headline(evidence, answers)
    assert told.startswith(f"Python 4 clients died in {runs} of 4 runs. "), told
    assert f"Python 4 clients: no finite median latency in {runs} of 4 runs" in told
    assert told.index("no finite") < told.index("No difference of ")


def test_the_fit_without_a_treatment_is_that_of_a_campaign_that_never_had_it(
    tmp_path: Path,
) -> None:
    folder, _ = changed(campaign(tmp_path / "c"), DEAD, 4, **LOST)
    _, answers = answers_of(folder)
    found = result_of(answers, "latency_p50_us", 2).result
    evidence = gather(Campaign(folder))
    whole = evidence.usable.filter(
        (pl.col("factor.language") != SLOW) | (pl.col("factor.clients") != 4)
    )
    fit = stats.fit_log(
        whole["latency_p50_us"].to_numpy(), whole["block"].to_list(),
        {name: whole[f"factor.{name}"].to_list() for name in ("language", "clients")},
    )  # fmt: skip
    assert isinstance(fit, stats.Fit)
    expected = stats.ratio(fit, "clients", 2, 1, answers.level)
    assert isinstance(expected, stats.Ratio)
    assert np.isclose(found.interval.low, expected.interval.low)
    assert np.isclose(found.interval.high, expected.interval.high)


def test_a_baseline_without_a_bound_gives_way_in_that_response_alone(tmp_path: Path) -> None:
    where = {"clients": 1}
    folder, _ = changed(campaign(tmp_path / "c"), where, 8, **{**LOST, "lost": 83.0})
    evidence, answers = answers_of(folder)
    four = result_of(answers, "latency_p50_us", 4)
    assert four.baseline == 2 and isinstance(four.result, stats.Ratio)
    assert "no finite" in str(result_of(answers, "latency_p50_us", 1).result)
    assert result_of(answers, "cpu_us_per_message", 4).baseline == 2, "83 % of calls were lost"
    substitutes = answered_study(evidence, answers).substitutes
    assert Substitute("1 client", "2 clients", "median latency") in substitutes


def test_alternatives_without_a_bound_stand_last_and_the_others_are_ranked(tmp_path: Path) -> None:
    made = campaign(tmp_path / "c", answers={"best_of": ["language", "clients"], "margin": 0.05})
    folder, _ = changed(made, DEAD, 4, **LOST)
    evidence, answers = answers_of(folder)
    result = ranking(evidence, answers)
    assert result.headline is not None and result.headline.alternatives == 5
    ranked = [clause.choice for clause in result.headline.clauses if clause.choice]
    assert "median latency" in {choice.response.title for choice in ranked}
    assert ", of 5 alternatives, " in page_headline(evidence, answers)
    last = result.rows[-2:]
    assert {row.alternative for row in last} == {"Python 4 clients"}
    assert any("no finite median latency in 4 of 4 runs" in row.reason for row in last)
    rest = result.rows[:-2]
    assert len(rest) == 10 and all(row.alternative != "Python 4 clients" for row in rest)


@pytest.mark.parametrize("column", ["failed", "lost"])
def test_a_server_that_fails_its_calls_is_not_the_cheapest(tmp_path: Path, column: str) -> None:
    made = campaign(tmp_path / "c", answers={"best_of": ["language", "clients"], "margin": 0.05})
    cheap = {"language": FAST, "clients": 1}
    folder, _ = changed(made, cheap, 4, cpu_us_per_message=2.64, **{column: 83.0})
    evidence, answers = answers_of(folder)
    told = headline(evidence, answers)
    assert "Swift 1 client had the lowest CPU" not in told
    assert (
        "Swift 1 client: no CPU time per message to compare in 4 of 4 runs, because 83 % of the "
        "calls failed or were lost"
    ) in told
    (question,) = ranking(evidence, answers).questions
    ranked = next(
        one for one in question.responses if one.choice.response.column == "cpu_us_per_message"
    )
    choice = ranked.choice
    assert len(choice.placed) == 5 and list(choice.without) == ["Swift 1 client"]
    assert choice.leader in ("Swift 2 clients", "Swift 4 clients")
    # The alternative is compared at two of three numbers of clients.
    winners = [winner for wins in ranked.wins for winner in wins.winners]
    assert ("Swift", 2) in [(winner.title, winner.levels) for winner in winners]


def test_a_few_failed_calls_leave_costs_and_latency_compared(tmp_path: Path) -> None:
    folder, _ = changed(campaign(tmp_path / "c"), DEAD, 4, failed=3.0)
    _, answers = answers_of(folder)
    assert all(isinstance(answer.result, stats.Ratio) for answer in answers.items)


def test_lost_messages_of_a_topic_leave_its_costs_compared(tmp_path: Path) -> None:
    shape = Shape(
        blocks=4, patterns=("topic",), intervals_s=(0.2,), clients=(1, 2, 4),
        study={"question": [QUESTION]},
    )  # fmt: skip
    folder, _ = changed(write_campaign(tmp_path / "c", shape), DEAD, 4, lost=30.0)
    _, answers = answers_of(folder)
    assert isinstance(result_of(answers, "cpu_us_per_message", 4).result, stats.Ratio)


@pytest.mark.parametrize("counted", [{}, {"expected": 0.0, "expected_after_warmup": 0.0}])
def test_a_run_that_died_without_a_latency_takes_its_treatment_out(
    tmp_path: Path, counted: dict[str, float]
) -> None:
    """Without this rule, only the better runs of the treatment would be compared."""
    gone = {"latency_p50_us": None, "outcome": "died", "lost": 0.0} | counted
    folder, _ = changed(campaign(tmp_path / "c"), DEAD, 1, **gone)
    _, answers = answers_of(folder)
    refused = str(result_of(answers, "latency_p50_us", 4).result)
    assert "no median latency in 1 of 8 runs, because nodes ended early" in refused, refused
    assert isinstance(result_of(answers, "latency_p50_us", 2).result, stats.Ratio)


def test_many_treatments_with_the_same_outcome_share_a_sentence(tmp_path: Path) -> None:
    folder = campaign(tmp_path / "campaign")
    for language, clients in ((SLOW, 1), (SLOW, 2), (SLOW, 4), (FAST, 4)):
        where = {"language": language, "clients": clients}
        changed(folder, where, 2, outcome="saturated")
    evidence, answers = answers_of(folder)
    (shared,) = (item for item in unanswered(evidence, answers).uncompared if item.outcomes)
    assert (shared.treatments, shared.runs) == (4, 16)
    assert shared.outcomes == (OutcomeRuns("saturated", 8),)
    text = "4 treatments saturated in 8 of 16 runs; see “Counts, losses, starts”."
    assert Sentences("unanswered").uncompared(shared) == text
    assert text in headline(evidence, answers)


def test_a_minority_of_saturated_runs_is_left_out_and_every_contrast_stays(
    tmp_path: Path,
) -> None:
    folder = campaign(tmp_path / "campaign")
    high = {"outcome": "saturated", "latency_p50_us": 1e6, "cpu_us_per_message": 1e6}
    for language in (SLOW, FAST):
        changed(folder, {"language": language, "clients": 4}, 1, **high)
    evidence, answers = answers_of(folder)
    assert len(answers.computed()) == len(answers.items) == 6
    result = result_of(answers, "latency_p50_us", FAST).result
    assert isinstance(result, stats.Ratio) and result.run_count == 22
    fit = usable_fit(evidence, resolve("latency_p50_us"))
    assert isinstance(fit, stats.Fit) and fit.residuals.size == 22
    means = block_table(evidence, resolve("latency_p50_us"), "clients", [1, 4])
    assert np.exp(means).max() < 1e5, "the void latency is in no companion of the ratio"
    result = unanswered(evidence, answers)
    counted = result.left_out
    assert counted is not None
    assert (counted.saturated, counted.runs, len(counted.treatments)) == (2, 24, 2)
    assert Sentences("unanswered").left_out(counted) in headline(evidence, answers)
    assert not [item for item in result.uncompared if item.outcomes]


def test_a_minority_of_saturated_runs_is_in_no_mean_of_a_ranking_and_in_no_test_of_predecessors(
    tmp_path: Path,
) -> None:
    folder = campaign(tmp_path / "campaign", answers={"best_of": ["language"]})
    clean = order_effects(answers_of(folder)[0])
    assert isinstance(clean.previous, stats.Effect)
    high = {"outcome": "saturated", "latency_p50_us": 1e9, "cpu_us_per_message": 1e9}
    changed(folder, {"language": FAST, "clients": 4}, 1, **high)
    evidence, answers = answers_of(folder)
    for choice in ranking(evidence, answers).choices:
        assert max(placed.typical for placed in choice.placed) < 1e5
        assert choice.saturated == ()
    previous = order_effects(evidence).previous
    assert isinstance(previous, stats.Effect)
    assert previous.error_degrees == clean.previous.error_degrees - 1


def test_a_treatment_of_which_half_is_saturated_is_in_no_ratio_and_the_other_levels_stay(
    tmp_path: Path,
) -> None:
    folder, _ = changed(campaign(tmp_path / "campaign"), DEAD, 2, outcome="saturated")
    evidence, answers = answers_of(folder)
    for level in (FAST, 4):
        refused = result_of(answers, "latency_p50_us", level).result
        assert "saturated) in 2 of " in str(refused), refused
    assert isinstance(result_of(answers, "latency_p50_us", 2).result, stats.Ratio)
    assert unanswered(evidence, answers).left_out is None
    remaining = answered_study(evidence, answers).headline.remaining
    assert remaining, "the refused answer has its ratio at the levels without saturated runs"
    assert all(isinstance(one.statement.answer.result, stats.Ratio) for one in remaining)
    assert f"At {remaining[0].level_title}, " in headline(evidence, answers)
