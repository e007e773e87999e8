"""Under its question, the lowest alternative is named, and where each level is the lowest."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from wattwire.analysis import best_alternative as lowest
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import gather, levels_of
from wattwire.report.tests.synthetic import FAST, SLOW, FileCampaign, Shape, write_campaign
from wattwire.report.words import best_alternative as lowest_told

QUESTION = {"id": "Q1", "text": "Which?", "factors": ["language", "clients"],
            "responses": ["cpu_us_per_message"]}  # fmt: skip
COSTS = {(FAST, 1): 10.0, (SLOW, 1): 40.0, (FAST, 2): 30.0, (SLOW, 2): 20.0}


def told(folder, question=None, best_of=("language", "clients"), **shape) -> list[str]:
    study = {"question": [QUESTION], "answers": {"best_of": list(best_of)}}
    made = Shape(**{"blocks": 4, "duration_s": 2.0, "patterns": ("topic",),
                    "intervals_s": (0.2,), "study": study, **shape})  # fmt: skip
    evidence = gather(FileCampaign(write_campaign(folder / "campaign", made)))
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
    return [one.words for one in lowest_told.sentences(evidence, asked, found)]


def test_the_lowest_is_named_with_its_value_and_how_far_the_others_lie_above(tmp_path) -> None:
    first, by_clients, by_language = told(tmp_path)
    assert first.startswith("Swift 1 client has the lowest CPU time per message: 10.")
    assert any(f"3 are significantly higher, from {start}" in first for start in ("2.", "1.9"))
    assert "(Python 1 client; at most 4." in first
    # One client: Swift is lower; two clients: Python is.
    assert by_clients == (
        "Lowest CPU time per message by medians, over 2 levels of clients: Swift at 1 and "
        "Python at 1."
    )
    assert by_language.endswith("1 client at 1 and 2 clients at 1.")


def test_one_block_tells_what_was_seen_and_why_it_is_no_answer(tmp_path) -> None:
    first, *_ = told(tmp_path, blocks=1)
    assert first.startswith("Lowest observed CPU time per message: Swift 1 client (10")
    assert "highest: Python 1 client (40" in first
    assert "The 4 alternatives cannot be ranked yet: too few: 1 block" in first


@pytest.mark.parametrize(
    "question",
    [{"factors": ("language",)}, {"responses": ("memory_kib",)}],
    ids=["of other factors", "of another response"],
)
def test_a_question_that_does_not_ask_it_is_not_told(tmp_path, question) -> None:
    assert told(tmp_path, question) == []


def test_a_study_without_alternatives_has_no_such_sentence(tmp_path) -> None:
    assert told(tmp_path, best_of=()) == []
