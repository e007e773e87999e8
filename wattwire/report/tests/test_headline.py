"""Test how the sentences of the headline are joined."""

from __future__ import annotations

import pytest

from wattwire.report.headline import shortened, split
from wattwire.report.topic_page import TitleSentence


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
