"""Test the order of alternatives, its omissions and reversals, and the table of all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from wattwire import stats
from wattwire.analysis.answering.answer_types import Answers
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import Evidence, gather
from wattwire.analysis.document import document
from wattwire.analysis.responses import CPU, LATENCY_P50
from wattwire.analysis.topics.ranking.headline_clause import Headline
from wattwire.analysis.topics.ranking.numbers import RankedAlternatives, ranking
from wattwire.analysis.topics.ranking.order import choices
from wattwire.report.parts import Table, Text
from wattwire.report.tests.answered import headline
from wattwire.report.tests.planted import planted
from wattwire.report.tests.synthetic import (
    FAST,
    SLOW,
    Shape,
    put_row,
    row_of,
    write_campaign,
)
from wattwire.report.topic_page import Sentences, topic_page
from wattwire.store import Campaign

SENTENCES = Sentences("ranking")


def gathered(folder: Path, **answers: Any) -> tuple[Evidence, Answers]:
    study = {"answers": {"best_of": ["language", "pattern"], **answers}}
    campaign = write_campaign(folder, Shape(blocks=4, study=study))
    evidence = gather(Campaign(campaign))
    return evidence, answer_all(evidence)


def headline_of(evidence: Evidence, answers: Answers) -> Headline:
    """Return what the headline states, and check that the headline of the page has its words."""
    result = ranking(evidence, answers).headline
    assert result is not None
    assert SENTENCES.headline(result) in headline(evidence, answers)
    return result


def table_of(result: RankedAlternatives) -> Table | None:
    tables = [part for _, part in topic_page("ranking", result).parts if isinstance(part, Table)]
    return tables[0] if tables else None


def test_the_first_sentence_names_the_lowest_its_equals_and_the_rest(tmp_path: Path) -> None:
    evidence, answers = gathered(tmp_path / "c", margin=0.9)
    found = headline_of(evidence, answers)
    assert (found.alternatives, found.margin) == (6, 0.9)
    assert [condition.title for condition in found.conditions] == ["64 B"]
    first, *_ = found.clauses
    choice = first.choice
    assert choice is not None and not first.is_same_leader
    assert choice.leader.startswith("Swift ")
    assert (choice.response.title, choice.response.unit) == ("CPU time per message", "µs")
    assert choice.equal and all(title.startswith("Swift ") for title in choice.equal)
    ratios = {placed.title: placed.over_lowest for placed in choice.higher}
    assert all(ratios[f"Python {pattern}"] > 1 for pattern in ("topic", "service", "action"))
    words = SENTENCES.headline(found)
    assert words.startswith("With 64 B, of 6 alternatives, ")
    assert f"{choice.leader} had the lowest CPU time per message (" in words
    assert "; equivalent within 90 %: Swift " in words


def test_a_rate_is_no_condition_of_runs_of_which_some_are_a_closed_loop(tmp_path: Path) -> None:
    document = {
        "factors": {"language": ["cpp", "python"], "loop": ["closed", "open"]},
        "fixed": {"middleware": "loopback", "pattern": "service", "rate_hz": 50.0,
                  "payload_bytes": 64},
        "answers": {"best_of": ["language"]},
        "question": [
            {"id": "Q", "text": "?", "factors": ["language"], "responses": ["latency_p50_us"]}
        ],
    }  # fmt: skip
    treatments = [
        {"language": language, "loop": loop}
        for language in ("cpp", "python")
        for loop in ("closed", "open")
    ]
    evidence = planted(
        tmp_path / "c", document, treatments, lambda t: 10.0 if t["language"] == "cpp" else 30.0
    )
    found = headline_of(evidence, answer_all(evidence))
    assert [condition.title for condition in found.conditions] == ["64 B"]


def test_all_of_the_slow_language_is_higher_and_none_of_the_fast_one(tmp_path: Path) -> None:
    evidence, answers = gathered(tmp_path / "c", margin=0.05)
    with_scatter = [choice for choice in choices(evidence, answers) if choice.placed]
    assert [choice.response for choice in with_scatter] == [CPU, LATENCY_P50]
    for choice in with_scatter:
        groups = {one.levels: one.group for one in choice.placed}
        assert len(groups) == 6
        for (language, _), group in groups.items():
            assert (group == "higher") == (language == SLOW), (choice.response, groups)
        assert {one.levels[0] for one in choice.placed[:3]} == {FAST}


def test_an_alternative_above_the_capacity_has_no_rank(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    gathered(folder, margin=0.05)
    saturated = 0
    for path in sorted(folder.glob("runs/*/summary.json")):
        row = row_of(path)
        if (row["factor.language"][0], row["factor.pattern"][0]) == (FAST, "topic"):
            put_row(row.with_columns(outcome=pl.lit("saturated")), path)
            saturated += 1
    evidence = gather(Campaign(folder))
    choice = choices(evidence, answer_all(evidence))[0]
    assert len(choice.placed) == 5 and saturated > 0
    assert (FAST, "topic") not in {one.levels for one in choice.placed}
    ((title, reason),) = choice.without.items()
    assert "topic" in title.lower() and "above the capacity" in reason


def test_saturation_leaves_throughput_and_memory_ranked_by_what_was_achieved(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "c"
    responses = ["latency_p50_us", "throughput_bytes_per_s", "memory_kib"]
    question = {"id": "Q", "text": "?", "factors": ["language", "pattern"], "responses": responses}
    study = {"answers": {"best_of": ["language", "pattern"]}, "question": [question]}
    write_campaign(folder, Shape(blocks=4, study=study))
    delivered = {FAST: 3000.0, SLOW: 2000.0}
    for number, path in enumerate(sorted(folder.glob("runs/*/summary.json"))):
        row = row_of(path)
        language, pattern = row["factor.language"][0], row["factor.pattern"][0]
        is_saturated = (language, pattern) == (FAST, "topic")
        rate = delivered[language] * (2.0 if is_saturated else 1.0) * (1.0 + 0.001 * (number % 7))
        row = row.with_columns(
            pl.lit(rate).alias("throughput_bytes_per_s"),
            pl.col(r"^memory_kib\..*$") * (1.0 + 0.001 * (number % 5)),
        )
        put_row(row.with_columns(outcome=pl.lit("saturated")) if is_saturated else row, path)
    evidence = gather(Campaign(folder))
    result = ranking(evidence, answer_all(evidence))
    latency, throughput, memory = result.choices
    assert (FAST, "topic") not in {placed.levels for placed in latency.placed}
    assert throughput.placed[0].levels == (FAST, "topic")
    assert throughput.placed[0].typical == pytest.approx(6000.0, rel=0.01)
    assert (FAST, "topic") in {placed.levels for placed in memory.placed}
    (saturated,) = throughput.saturated
    assert saturated.title == throughput.leader and not throughput.without
    of_rate, of_memory = map(SENTENCES.saturation, (throughput, memory))
    assert f"the capacity of {saturated.title} (" in of_rate
    assert of_rate.endswith("so the value is what these runs achieved.")
    assert of_memory.endswith("so the value is that of an overload.")
    table = table_of(replace(result, choices=(throughput,)))
    assert table is not None and "best; saturated in" in str(list(table.rows)[0]["group"])


def test_an_effect_as_small_as_the_noise_is_not_called_higher(tmp_path: Path) -> None:
    evidence, answers = gathered(tmp_path / "c", margin=0.05)
    answers.noise["cpu_us_per_message"] = math.log(1000.0)
    choice = choices(evidence, answers)[0]
    assert choice.response.column == "cpu_us_per_message"
    assert not choice.higher


def test_a_study_that_names_no_alternatives_keeps_its_first_sentence(tmp_path: Path) -> None:
    evidence, answers = gathered(tmp_path / "c", best_of=[])
    assert " alternatives, " not in headline(evidence, answers)
    assert ranking(evidence, answers) == RankedAlternatives()
    assert topic_page("ranking", RankedAlternatives()).parts == ()


def test_the_table_holds_every_alternative_in_every_response(tmp_path: Path) -> None:
    evidence, answers = gathered(tmp_path / "c", margin=0.05)
    found = ranking(evidence, answers)
    made = table_of(found)
    assert made is not None
    assert len(made.rows) == sum(len(one.placed) for one in found.choices)
    for row in made.rows:
        assert row["at_most"] >= 1.0 and row["over"] >= 1.0 - 1e-9
        assert row["typical"] > 0


def test_alternatives_without_a_usable_run_are_named(tmp_path: Path) -> None:
    study = {"answers": {"best_of": ["language", "pattern"]}}
    campaign = write_campaign(tmp_path / "c", Shape(blocks=2, study=study))
    evidence = gather(Campaign(campaign))
    kept = (evidence.usable["factor.pattern"] != "action") | (
        evidence.usable["factor.language"] != SLOW
    )
    evidence.usable = evidence.usable.filter(kept)
    found = ranking(evidence, answer_all(evidence))
    assert found.unmeasured == ("Python action",)
    parts = [part for _, part in topic_page("ranking", found).parts if isinstance(part, Text)]
    (text,) = (part for part in parts if part.key == "alternatives.unmeasured")
    assert text.words == "Without a valid run: Python action."


def test_a_campaign_that_stops_by_width_ranks_at_the_level_of_its_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evidence, answers = gathered(tmp_path / "c")
    levels: list[float] = []

    def recorded(fit: stats.Fit, factors: tuple[str, ...], level: float) -> stats.Ranking:
        levels.append(level)
        return ranked(fit, factors, level)

    ranked = stats.lowest_of
    monkeypatch.setattr(stats, "lowest_of", recorded)
    for width, level in ((0.0, 0.95), (0.05, stats.sequential.INNER_CONFIDENCE)):
        plan = replace(evidence.study.plan, stop_width=width)
        study = replace(evidence.study, plan=plan)
        choices(replace(evidence, study=study), answers)
        assert levels == [pytest.approx(stats.bonferroni(level, len(levels)))] * len(levels)
        levels.clear()


def by_payload(
    folder: Path, factor: float, asked: Sequence[str] = ("language",)
) -> tuple[Evidence, Answers]:
    """Return alternatives whose fastest, cpp, is `factor` times as slow at the large payload.

    `asked` are the factors of the question.
    """
    names, sizes = ("cpp", "go", "rust"), (64, 4096)
    study = {
        "factors": {"language": list(names), "payload_bytes": list(sizes)},
        "answers": {"best_of": ["language"]},
        "question": [
            {"id": "Q", "text": "?", "factors": list(asked), "responses": ["latency_p50_us"]}
        ],
    }
    planted_us = {"cpp": 10.0, "go": 50.0, "rust": 60.0}
    evidence = planted(
        folder / "c",
        study,
        [{"language": name, "payload_bytes": size} for name in names for size in sizes],
        lambda at: (
            planted_us[at["language"]]
            * (factor if (at["language"], at["payload_bytes"]) == ("cpp", 4096) else 1.0)
        ),
    )
    return evidence, answer_all(evidence)


def test_the_best_alternative_names_each_level_at_which_another_is_better(tmp_path: Path) -> None:
    # cpp has 10 µs and 80 µs, a geometric mean of 28 µs.
    evidence, answers = by_payload(tmp_path, 8.0)
    (choice,) = choices(evidence, answers)
    assert choice.placed[0].title == "cpp"
    (reversal,) = choice.reversals
    assert (reversal.factor, reversal.level, reversal.title) == ("payload_bytes", 4096, "go")
    assert reversal.ratio == pytest.approx(80 / 50, rel=0.05)
    assert reversal.level_title == "4096 B"
    result = headline_of(evidence, answers)
    assert result.has_winner and result.is_reversed
    words = SENTENCES.headline(result)
    assert "none is the best at all levels of the other factors: cpp had the lowest " in words
    assert "; but go is better at 4096 B, by a factor of " in words
    (entry,) = document(evidence, answers).values["best_alternatives"]
    assert entry["reversals"] == [
        {"factor": "payload_bytes", "level": 4096, "title": "go", "ratio": reversal.ratio}
    ]
    assert " But go is better at 4096 B, by a factor of " in SENTENCES.best(choice)


def test_an_alternative_that_is_the_best_at_every_level_is_the_winner(tmp_path: Path) -> None:
    evidence, answers = by_payload(tmp_path, 3.0)
    (choice,) = choices(evidence, answers)
    assert choice.placed[0].title == "cpp" and choice.reversals == ()
    result = headline_of(evidence, answers)
    assert (result.has_winner, result.is_reversed) == (True, False)


def test_pairs_that_change_places_between_the_levels_of_an_asked_factor_are_named(
    tmp_path: Path,
) -> None:
    # cpp is better than go and rust by 5 and 6 at 64 B, and worse by 1.6 and 1.33 at 4096 B.
    evidence, answers = by_payload(tmp_path, 8.0, ("language", "payload_bytes"))
    result = ranking(evidence, answers)
    (choice,) = result.choices
    found = {exchange.second: exchange for exchange in choice.exchanges["payload_bytes"]}
    assert set(found) == {"go", "rust"}
    for second, ratio, other_ratio in (("go", 50 / 10, 80 / 50), ("rust", 60 / 10, 80 / 60)):
        exchange = found[second]
        assert (exchange.first, exchange.level, exchange.other_level) == ("cpp", 64, 4096)
        assert exchange.ratio == pytest.approx(ratio, rel=0.05)
        assert exchange.other_ratio == pytest.approx(other_ratio, rel=0.05)
    (entry,) = document(evidence, answers).values["best_alternatives"]
    assert [exchange["second"] for exchange in entry["exchanges"]] == [*found]
    ((ranked,),) = (question.responses for question in result.questions)
    (order,) = ranked.orders
    assert [(pair.first, pair.second) for pair in order.exchanges] == [
        ("cpp", second) for second in found
    ]
    words = SENTENCES.order(choice, order)
    assert words.startswith("The order in median latency depends on payload: cpp is better than ")
    assert " at 64 B (by a factor of " in words and " and worse at 4096 B (" in words
    places = [place for place, _ in topic_page("ranking", result).parts]
    assert places[:2] == [(30, 1, 10)] * 2


def test_an_order_that_no_level_turns_is_said_if_the_question_asks(tmp_path: Path) -> None:
    evidence, answers = by_payload(tmp_path / "asked", 3.0, ("language", "payload_bytes"))
    result = ranking(evidence, answers)
    (choice,) = result.choices
    assert choice.exchanges == {"payload_bytes": ()}
    ((ranked,),) = (question.responses for question in result.questions)
    (order,) = ranked.orders
    words = SENTENCES.order(choice, order)
    assert words.startswith("No pair of the 3 alternatives significantly changes its order ")
    evidence, answers = by_payload(tmp_path / "unasked", 8.0)
    (choice,) = choices(evidence, answers)
    assert choice.exchanges == {}
