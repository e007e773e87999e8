"""Tests of the sentences on the lowest alternative and on the lowest level of each factor."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from wattwire.analysis import best_alternative as lowest
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import gather, levels_of
from wattwire.report.tests.phrase_search import only, phrases_in
from wattwire.report.tests.synthetic import FAST, SLOW, Shape, write_campaign
from wattwire.report.words import best_alternative
from wattwire.report.words.phrases import Phrase
from wattwire.store import Campaign

QUESTION = {"id": "Q1", "text": "Which?", "factors": ["language", "clients"],
            "responses": ["cpu_us_per_message"]}  # fmt: skip
COSTS = {(FAST, 1): 10.0, (SLOW, 1): 40.0, (FAST, 2): 30.0, (SLOW, 2): 20.0}


def sentences(folder, question=None, best_of=("language", "clients"), **shape) -> list[Phrase]:
    study = {"question": [QUESTION], "answers": {"best_of": list(best_of)}}
    made = Shape(**{"blocks": 4, "duration_s": 2.0, "patterns": ("topic",),
                    "intervals_s": (0.2,), "study": study, **shape})  # fmt: skip
    evidence = gather(Campaign(write_campaign(folder / "campaign", made)))
    frame = evidence.usable
    keys = zip(*(levels_of(frame, name) for name in ("language", "clients")), strict=True)
    values = [
        COSTS[key] * (1.01 if (at + block) % 2 else 1.0)
        for at, (key, block) in enumerate(zip(keys, frame["block"].to_list(), strict=True))
    ]
    evidence.usable = frame.with_columns(pl.Series("cpu_us_per_message", values))
    found = lowest.choices(evidence, answer_all(evidence))
    (own,) = evidence.study.questions
    asked = replace(own, **(question or {}))
    return [one.words for one in best_alternative.sentences(evidence, asked, found)]


def wins(sentence: Phrase) -> dict[str, int]:
    """Return the number of levels of the other factor at which each level is lowest."""
    return {one.values["level"]: one.values["levels"] for one in phrases_in(sentence, "best.win")}


def test_the_lowest_is_named_with_its_value_and_how_far_the_others_lie_above(tmp_path) -> None:
    first, by_clients, by_language = sentences(tmp_path)
    assert first.key == "best.lowest" and first.values["mean"].key == "best.mean"
    assert (first.values["title"], first.values["response"]) == (
        "Swift 1 client", "CPU time per message",
    )  # fmt: skip
    assert only(first, "best.value").values["value"] == pytest.approx(10, rel=0.05)
    higher = only(first, "best.some_higher").values
    assert higher["alternatives"] == 3 and higher["farthest"] == "Python 1 client"
    assert higher["nearest_ratio"] == pytest.approx(2, rel=0.05)
    assert higher["farthest_ratio"] <= higher["at_most"] < 5
    # Swift is lower with one client, Python with two.
    assert [one.values["factor"] for one in (by_clients, by_language)] == ["clients", "language"]
    assert wins(by_clients) == {"Swift": 1, "Python": 1}
    assert wins(by_language) == {"1 client": 1, "2 clients": 1}


def test_one_block_tells_what_was_seen_and_why_it_is_no_answer(tmp_path) -> None:
    first, *_ = sentences(tmp_path, blocks=1)
    assert first.key == "best.unranked" and first.values["alternatives"] == 4
    assert first.values["lowest"].values["title"] == "Swift 1 client"
    assert first.values["highest"].values["title"] == "Python 1 client"
    assert first.values["reason"].startswith("there is only 1 block")


@pytest.mark.parametrize(
    "question",
    [{"factors": ("language",)}, {"responses": ("memory_kib",)}],
    ids=["of other factors", "of another response"],
)
def test_a_question_that_does_not_ask_it_is_not_told(tmp_path, question) -> None:
    assert sentences(tmp_path, question) == []


def test_a_study_without_alternatives_has_no_such_sentence(tmp_path) -> None:
    assert sentences(tmp_path, best_of=()) == []
