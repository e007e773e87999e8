"""Test how the sentences of the headline are joined."""

from __future__ import annotations

import pytest

from wattwire.report.words.headline import CHARS_MAX, shortened
from wattwire.report.words.phrases import Phrase, joined


@pytest.mark.parametrize("names", [3, 40])
def test_a_headline_of_flows_has_three_lines_and_keeps_its_first_sentence(names):
    """However long the names of levels and flows are."""
    sentences = [Phrase(f"{n} of 900 messages arrived at {'x' * 10 * names}.") for n in range(9)]
    compared = "A is better than B in all 2 responses."
    text = joined([sentences[0], compared, joined(sentences[1:])])
    text = shortened(text, compared)
    assert text.startswith(sentences[0])
    assert len(text) <= max(CHARS_MAX, len(sentences[0]))
    assert compared not in text
    short = joined([sentences[0][:30], compared])
    assert shortened(short, compared) == short
