"""Tests of the sentence, the table and the omissions of the lowest alternative on the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from wattwire import stats
from wattwire.analysis import best_alternative as lowest
from wattwire.analysis.answering.answer_types import Answers
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import Evidence, gather
from wattwire.analysis.document import document
from wattwire.report.tables import best_alternative as best_alternative_table
from wattwire.report.tests.phrase_search import only, phrases_in
from wattwire.report.tests.planted import planted
from wattwire.report.tests.synthetic import (
    FAST,
    SLOW,
    Shape,
    put_row,
    row_of,
    write_campaign,
)
from wattwire.report.words import best_alternative as best_alternative_words
from wattwire.report.words.answers import headline
from wattwire.store import Campaign


def gathered(folder: Path, **answers: Any) -> tuple[Evidence, Answers]:
    study = {"answers": {"best_of": ["language", "pattern"], **answers}}
    campaign = write_campaign(folder, Shape(blocks=4, study=study))
    evidence = gather(Campaign(campaign))
    return evidence, answer_all(evidence)


def test_the_first_sentence_names_the_lowest_its_equals_and_the_rest(tmp_path: Path) -> None:
    evidence, answers = gathered(tmp_path / "c", margin=0.9)
    text = only(headline(evidence, answers), "best_headline.headline")
    assert text.values["alternatives"] == 6
    assert text.values["conditions"].values["conditions"] == ["64 B"]
    first = text.values["leaders"][0]
    assert first.key == "best_headline.leader" and first.values["leader"].startswith("Swift ")
    assert first.values["response"] == "CPU time per message"
    assert only(first, "best.value").values["unit"] == " µs"
    equal = only(first, "best_headline.equal").values
    assert equal["margin"] == 0.9 and all(title.startswith("Swift ") for title in equal["titles"])
    ratios = {
        one.values["title"]: one.values["ratio"]
        for one in phrases_in(first, "best_headline.ratio_of")
    }
    assert all(ratios[f"Python {pattern}"] > 1 for pattern in ("topic", "service", "action"))


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
    text = only(headline(evidence, answer_all(evidence)), "best_headline.headline")
    assert text.values["conditions"].values["conditions"] == ["64 B"]


def test_all_of_the_slow_language_is_higher_and_none_of_the_fast_one(tmp_path: Path) -> None:
    evidence, answers = gathered(tmp_path / "c", margin=0.05)
    for choice in lowest.choices(evidence, answers):
        if choice.response.column == "memory_kib_per_node":
            continue  # constant in this campaign, without scatter
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
    choice = lowest.choices(evidence, answer_all(evidence))[0]
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
    latency, throughput, memory = lowest.choices(evidence, answer_all(evidence))
    assert (FAST, "topic") not in {placed.levels for placed in latency.placed}
    assert throughput.placed[0].levels == (FAST, "topic")
    assert throughput.placed[0].typical == pytest.approx(6000.0, rel=0.01)
    assert (FAST, "topic") in {placed.levels for placed in memory.placed}
    (title,) = throughput.saturated
    assert title == throughput.placed[0].title and not throughput.without
    texts = best_alternative_words.sentences(
        evidence, evidence.study.questions[0], [throughput, memory]
    )
    words = [text.words for text in texts]
    named = only(words, "best.saturated_rate")
    assert only(named, "best.saturated_title").values["title"] == title
    assert phrases_in(words, "best.saturated")
    table = best_alternative_table.table(evidence, [throughput])
    assert table is not None and "saturated in" in str(list(table.rows)[0]["group"])


def test_an_effect_as_small_as_the_noise_is_not_called_higher(tmp_path: Path) -> None:
    evidence, answers = gathered(tmp_path / "c", margin=0.05)
    answers.noise["cpu_us_per_message"] = math.log(1000.0)
    choice = lowest.choices(evidence, answers)[0]
    assert choice.response.column == "cpu_us_per_message"
    assert not choice.titles("higher")


def test_a_study_that_names_no_alternatives_keeps_its_first_sentence(tmp_path: Path) -> None:
    evidence, answers = gathered(tmp_path / "c", best_of=[])
    assert phrases_in(headline(evidence, answers), "best_headline.headline") == []
    assert lowest.choices(evidence, answers) == []
    assert best_alternative_words.notes(evidence, []) == []
    assert best_alternative_table.table(evidence, []) is None


def test_the_table_holds_every_alternative_in_every_response(tmp_path: Path) -> None:
    evidence, answers = gathered(tmp_path / "c", margin=0.05)
    found = lowest.choices(evidence, answers)
    made = best_alternative_table.table(evidence, found)
    assert made is not None
    assert len(made.rows) == sum(len(one.placed) for one in found)
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
    notes = best_alternative_words.notes(evidence, lowest.choices(evidence, answer_all(evidence)))
    assert only(notes, "best.without_run").values["titles"] == ["Python action"]


def test_a_campaign_that_stops_by_width_ranks_at_the_level_of_its_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evidence, answers = gathered(tmp_path / "c")
    levels: list[float] = []

    def recorded(fit: stats.Fit, factors: tuple[str, ...], level: float) -> stats.Ranking:
        levels.append(level)
        return ranked(fit, factors, level)

    ranked = stats.lowest_of
    monkeypatch.setattr(lowest.stats, "lowest_of", recorded)
    for width, level in ((0.0, 0.95), (0.05, stats.sequential.INNER_CONFIDENCE)):
        plan = replace(evidence.study.plan, stop_width=width)
        study = replace(evidence.study, plan=plan)
        lowest.choices(replace(evidence, study=study), answers)
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
    (choice,) = lowest.choices(evidence, answers)
    assert choice.placed[0].title == "cpp"
    (reversal,) = choice.reversals
    assert (reversal.factor, reversal.level, reversal.title) == ("payload_bytes", 4096, "go")
    assert reversal.ratio == pytest.approx(80 / 50, rel=0.05)
    text = headline(evidence, answers)
    assert len(phrases_in(text, "best_headline.no_winner_at_all_levels")) == 1
    named = only(text, "best.better_at").values
    assert (named["title"], named["level"]) == ("go", "4096 B")
    (entry,) = document(evidence, answers).values["best_alternatives"]
    assert entry["reversals"] == [
        {"factor": "payload_bytes", "level": 4096, "title": "go", "ratio": reversal.ratio}
    ]
    question = evidence.study.questions[0]
    below = best_alternative_words.sentences(evidence, question, [choice])
    assert only(below, "best.better_at").values["title"] == "go"


def test_an_alternative_that_is_the_best_at_every_level_is_the_winner(tmp_path: Path) -> None:
    evidence, answers = by_payload(tmp_path, 3.0)
    (choice,) = lowest.choices(evidence, answers)
    assert choice.placed[0].title == "cpp" and choice.reversals == ()
    assert phrases_in(headline(evidence, answers), "best_headline.no_winner_at_all_levels") == []


def test_pairs_that_change_places_between_the_levels_of_an_asked_factor_are_named(
    tmp_path: Path,
) -> None:
    # cpp is better than go and rust by 5 and 6 at 64 B, and worse by 1.6 and 1.33 at 4096 B.
    evidence, answers = by_payload(tmp_path, 8.0, ("language", "payload_bytes"))
    (choice,) = lowest.choices(evidence, answers)
    found = {exchange.second: exchange for exchange in choice.exchanges["payload_bytes"]}
    assert set(found) == {"go", "rust"}
    for second, ratio, other_ratio in (("go", 50 / 10, 80 / 50), ("rust", 60 / 10, 80 / 60)):
        exchange = found[second]
        assert (exchange.first, exchange.level, exchange.other_level) == ("cpp", 64, 4096)
        assert exchange.ratio == pytest.approx(ratio, rel=0.05)
        assert exchange.other_ratio == pytest.approx(other_ratio, rel=0.05)
    (entry,) = document(evidence, answers).values["best_alternatives"]
    assert [exchange["second"] for exchange in entry["exchanges"]] == [*found]
    below = best_alternative_words.sentences(evidence, evidence.study.questions[0], [choice])
    pairs = phrases_in(below, "best.exchange")
    assert [(pair.values["first"], pair.values["second"]) for pair in pairs] == [
        ("cpp", second) for second in found
    ]
    assert phrases_in(below, "best.no_exchange") == []


def test_an_order_that_no_level_turns_is_said_if_the_question_asks(tmp_path: Path) -> None:
    evidence, answers = by_payload(tmp_path / "asked", 3.0, ("language", "payload_bytes"))
    (choice,) = lowest.choices(evidence, answers)
    assert choice.exchanges == {"payload_bytes": ()}
    below = best_alternative_words.sentences(evidence, evidence.study.questions[0], [choice])
    assert only(below, "best.no_exchange").values["alternatives"] == 3
    evidence, answers = by_payload(tmp_path / "unasked", 8.0)
    (choice,) = lowest.choices(evidence, answers)
    assert choice.exchanges == {}
