"""Test the ratios at each level of the other factors, and the detection of a planted change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from wattwire import stats
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import Evidence, gather
from wattwire.analysis.document import document
from wattwire.analysis.topics.interactions.numbers import (
    AtLevel,
    Interactions,
    by_level,
    changes,
    interactions,
)
from wattwire.cli.answer_table import lines
from wattwire.report.parts import Table, Text
from wattwire.report.tests.answered import answered_study, headline
from wattwire.report.tests.synthetic import FAST, Shape, put_row, row_of, write_campaign
from wattwire.report.topic_page import Sentences, topic_page
from wattwire.store import Campaign

QUESTION = {"id": "Q", "factors": ["language", "clients"], "responses": ["cpu_us_per_message"]}
PLANTED = 3.0
SENTENCES = Sentences("interactions")


def campaign(folder: Path, factor: float) -> Evidence:
    """Return a campaign with the CPU time of FAST with two clients multiplied by `factor`."""
    shape = Shape(blocks=6, patterns=("topic",), intervals_s=(0.05,), duration_s=2.0,
                  study={"question": [QUESTION]})  # fmt: skip
    return multiplied(folder, shape, factor)


def multiplied(folder: Path, shape: Shape, factor: float) -> Evidence:
    """Return a campaign of this shape with the CPU time of FAST with two clients multiplied."""
    write_campaign(folder, shape)
    cost = pl.col("cpu_us_per_message")
    changed = (pl.col("factor.language") == FAST) & (pl.col("factor.clients") == 2)
    for path in folder.glob("runs/*/summary.json"):
        frame = row_of(path)
        frame.with_columns(pl.when(changed).then(cost * factor).otherwise(cost)).pipe(put_row, path)
    return gather(Campaign(folder))


def test_every_factor_of_a_question_stands_at_each_level_of_the_others(tmp_path: Path) -> None:
    evidence = campaign(tmp_path / "c", 1.0)
    result = interactions(evidence, answer_all(evidence))
    assert [(row.answer.factor, row.other, row.level) for row in result.at_levels] == [
        ("language", "clients", 1), ("language", "clients", 2),
        ("clients", "language", FAST), ("clients", "language", "python"),
    ]  # fmt: skip
    assert result.ratios == result.at_levels
    assert (result.changes, result.differences, result.reason) == ((), (), "")
    ((_, table),) = topic_page("interactions", result).parts
    assert isinstance(table, Table) and table.id == "ratios-by-level"
    assert [(row["contrast"], row["at"]) for row in table.rows] == [
        ("Swift / Python", "1 client"), ("Swift / Python", "2 clients"),
        ("2 clients / 1 client", "Swift"), ("2 clients / 1 client", "Python"),
    ]  # fmt: skip
    first = result.at_levels[0]
    assert isinstance(first.result, stats.Ratio)
    assert (table.rows[0]["ratio"], table.rows[0]["strata"]) == (first.ratio, first.result.strata)


def test_a_planted_change_is_named_on_the_page_in_the_terminal_and_the_document(
    tmp_path: Path,
) -> None:
    evidence = campaign(tmp_path / "c", PLANTED)
    answers = answer_all(evidence)
    numbers = document(evidence, answers)
    found = numbers.result(Interactions)
    assert {(one.answer.factor, one.other) for one in found.changes} == {
        ("language", "clients"), ("clients", "language"),
    }  # fmt: skip
    of_language = next(one for one in found.changes if one.answer.factor == "language")
    assert [at.title for at in of_language.levels] == ["1 client", "2 clients"]
    alone, two = (at.interval.estimate for at in of_language.levels)
    assert two / alone == pytest.approx(PLANTED, rel=0.15)
    assert (of_language.highest, of_language.between) == (of_language.levels[1], 0)
    assert [one["other"] for one in numbers.values["changes"]] == [
        one.other for one in found.changes
    ]
    texts = [part for _, part in topic_page("interactions", found).parts if isinstance(part, Text)]
    assert [(text.key, text.value) for text in texts] == [
        ("interactions.other", one.other) for one in found.changes
    ]
    sentence = SENTENCES.change(of_language)
    assert sentence.startswith("Swift / Python in CPU time per message depends on clients: ")
    assert sentence.endswith(" at 2 clients. Exploratory.")
    assert any(sentence[:40] in line for line in lines(numbers, 80))
    first = answered_study(evidence, answers).headline.first
    assert first is not None
    assert [dependence.other_title for dependence in first.dependences] == ["clients"]
    assert "The result depends on clients: " in headline(evidence, answers)


def test_a_small_change_that_is_sure_is_not_named(tmp_path: Path) -> None:
    evidence = campaign(tmp_path / "c", 1.0)
    rows = by_level(evidence, answer_all(evidence))
    for ratio, named in ((1.2, 0), (1.3, 1)):
        assert len(changes([narrow(rows[0], 1.0), narrow(rows[1], ratio)])) == named


def narrow(row: AtLevel, centre: float) -> AtLevel:
    """Return the row with an interval of ±0.1 % around `centre`."""
    assert isinstance(row.result, stats.Ratio)
    interval = replace(
        row.result.interval, estimate=centre, low=0.999 * centre, high=1.001 * centre
    )
    return replace(row, result=replace(row.result, interval=interval))


@pytest.mark.parametrize(("factor", "outcome"), [(1.0, "different"), (12.0, "depends")])
def test_no_conclusion_holds_over_levels_of_a_factor_of_another_question_that_disagree(
    tmp_path: Path, factor: float, outcome: str
) -> None:
    # FAST has 0.3 times the CPU time with one client; 12 times that is 3.6 times with two clients.
    questions = [{**QUESTION, "factors": ["language"]}]
    shape = Shape(blocks=6, patterns=("topic",), intervals_s=(0.05,), study={"question": questions})
    evidence = multiplied(tmp_path / "c", shape, factor)
    answers = answer_all(evidence)
    (answer,) = answers.items
    assert answers.outcome(answer) == outcome
    entry = document(evidence, answers).values["contrasts"][0]
    assert entry["outcome"] == outcome
    first = answered_study(evidence, answers).headline.first
    assert first is not None and first.outcome == outcome
    titles = [dependence.other_title for dependence in first.dependences]
    assert titles == (["clients"] if outcome == "depends" else [])
    assert first.other_title == ("clients" if outcome == "depends" else "")
    assert (" depends on clients." in headline(evidence, answers)) == (outcome == "depends")
