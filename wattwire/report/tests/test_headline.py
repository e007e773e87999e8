"""Test how the sentences of the headline are joined."""

from __future__ import annotations

import pytest

from wattwire.analysis.document import Document
from wattwire.analysis.topics.headline.numbers import PageHeadline, SingleTreatment
from wattwire.report.headline import VERDICT, page_headline, shortened, split
from wattwire.report.topic_page import Sentences, TitleSentence, topic_page
from wattwire.stats import Interval, TooFew

STATED = [
    TitleSentence(place, text)
    for place, text in (
        ((90,), "missing"), ((50, 4), "ranking"), ((50, 3), "flows"), ((50, 3), "growth"),
        ((60,), "answer"), ((5,), "lost"), ((0,), "command"),
    )
]  # fmt: skip


def joined(result: PageHeadline, verdict: str = "") -> list[str]:
    """Return the page's headline from STATED and a verdict on variants."""
    verdicts = [TitleSentence(VERDICT, verdict)] if verdict else []
    return page_headline(Document({"headline": result}, {}), [*STATED, *verdicts])


def test_sentences_are_in_the_order_of_their_places_with_one_alternative() -> None:
    of_messages = PageHeadline()
    assert joined(of_messages) == ["lost", "flows", "growth", "answer", "missing"]
    assert joined(of_messages, "v") == ["lost", "v", "answer", "missing"]


def test_the_headline_of_a_command_has_its_costs_and_the_verdict_alone() -> None:
    assert joined(PageHeadline(is_command=True), "v") == ["command", "v"]


def test_a_headline_of_flows_omits_only_what_is_not_apart() -> None:
    assert joined(PageHeadline(chars_max=12)) == ["lost", "flows", "growth", "missing"]


def test_the_values_of_a_single_treatment_replace_answers() -> None:
    few = TooFew(50, 1000, "messages")
    single = SingleTreatment(
        "a", 3, Interval(200.0, 190.0, 210.0, 0.95, 3, "t"), few, 0.0, None, "calls"
    )
    text = Sentences("headline").single(single)
    assert "200 µs (95 % interval 190 to 210)" in text and f"p99 unknown ({few.brief})" in text
    shown = topic_page("headline", PageHeadline(single=single, has_single=True)).sentences
    assert [sentence.place for sentence in shown] == [(50, 2)]
    assert topic_page("headline", PageHeadline(single=single)).sentences == ()


@pytest.mark.parametrize("names", [3, 40])
def test_a_headline_without_room_omits_the_minor_sentence_first_and_keeps_its_first(names):
    """However long the names of levels and flows are."""
    texts = [f"{n} of 900 messages arrived at {'x' * 10 * names}." for n in range(9)]
    sentences = [TitleSentence((20,), text) for text in texts]
    minor = TitleSentence((60,), "A is better than B in all 2 responses.", is_minor=True)
    kept = shortened([sentences[0], minor, *sentences[1:]], 400)
    assert kept[0] == sentences[0] and minor not in kept
    length = len(" ".join(sentence.text for sentence in kept))
    assert length <= max(400, len(texts[0]))
    assert kept == sentences[: len(kept)]
    short = [TitleSentence((20,), "None arrived."), minor]
    assert shortened(short, 400) == short


def test_a_long_headline_keeps_its_first_sentences_and_loses_none() -> None:
    sentences = [f"Run {number} took 20 seconds." for number in range(9)]
    first, rest = split(sentences, 100)
    assert len(first) <= 100 < len(first) + len(sentences[0])
    assert f"{first} {rest}" == " ".join(sentences)
    assert split(["a" * 500, "b"], 100) == ("a" * 500, "b")
    assert split([], 100) == ("", "")
