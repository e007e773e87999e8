"""Tests of phrases, which return text by key and raise errors for wrong keys or values."""

from __future__ import annotations

import copy
import pickle
from types import SimpleNamespace

import pytest

from wattwire.report.parts import Section, Text
from wattwire.report.tests.phrase_search import keys_in, only, phrases_in
from wattwire.report.words.phrases import Phrases, joined

PHRASES = Phrases(
    "example",
    {
        "ran": "{runs:plural run} in {time:duration}",
        "shares": "{share:percent} of {names:listed}",
        "outer": "<{inner}>",
        "plain": "no placeholder, {{braces}}",
    },
)


def test_a_phrase_is_its_text_and_keeps_key_and_values() -> None:
    phrase = PHRASES("ran", runs=1200, time=61.0)
    assert phrase == "1\u202f200 runs in 1 min 1 s" and isinstance(phrase, str)
    assert phrase.key == "example.ran"
    assert phrase.values == {"runs": 1200, "time": 61.0}
    assert PHRASES("plain") == "no placeholder, {braces}"


def test_braces_in_a_value_are_text() -> None:
    assert PHRASES("outer", inner="{runs}") == "<{runs}>"


@pytest.mark.parametrize(
    ("template", "value", "text"),
    [
        ("{x:number}", 0.12345, "0.123"),
        ("{x:number 2}", 0.12345, "0.12"),
        ("{x:percent 3}", 0.12345, "12.3 %"),
        ("{x:count}", 12345.4, "12\u202f345"),
        ("{x:confidence}", 0.9958, "99.58 %"),
        ("{x:plural query/queries}", 2, "2 queries"),
        ("{x:plural run}", 1, "1 run"),
        ("{x:listed}", ["a", "b", "c"], "a, b and c"),
        ("{x:listed 1}", ["a", "b", "c"], "a and 2 more"),
        ("{x:p}", 0.01234, "p = 0.012"),
        ("{x:capital}", "iPad", "IPad"),
        ("{x:.1f}", 0.25, "0.2"),
        ("{x:estimate} ({x:limits})", SimpleNamespace(estimate=2, low=1, high=3),
         "2.00 (1.00 to 3.00)"),
        ("{x:interval}", SimpleNamespace(estimate=2, low=1, high=3), "2.00 [1.00, 3.00]"),
    ],
)  # fmt: skip
def test_a_format_prints_the_number_and_the_phrase_keeps_it(template, value, text) -> None:
    phrase = Phrases("example", {"one": template})("one", x=value)
    assert phrase == text and phrase.values["x"] is value


def test_an_unknown_key_and_missing_or_unused_values_fail_at_once() -> None:
    with pytest.raises(KeyError, match="example.run: no such phrase; known: ran, shares"):
        PHRASES("run")
    with pytest.raises(TypeError, match=r"example.ran: missing \['time'\], unused \[\]"):
        PHRASES("ran", runs=1)
    with pytest.raises(TypeError, match=r"example.ran: missing \[\], unused \['blocks'\]"):
        PHRASES("ran", runs=1, time=1.0, blocks=2)


@pytest.mark.parametrize("template", ["{}", "{0}", "{a.b}", "{a[0]}", "{a!r}", "{a"])
def test_a_template_with_anything_but_names_is_refused_when_its_file_is_loaded(template) -> None:
    with pytest.raises(ValueError):
        Phrases("example", {"one": template})


def test_joined_phrases_keep_their_keys_and_empty_ones_are_dropped() -> None:
    text = joined([PHRASES("plain"), "", PHRASES("outer", inner=PHRASES("plain"))])
    assert text == "no placeholder, {braces} <no placeholder, {braces}>"
    section = Section("id", "title", [Text(text), Text("other")])
    assert keys_in(section) == ["example.plain", "example.outer", "example.plain"]
    assert only(section, "example.outer").values["inner"].key == "example.plain"
    assert phrases_in(section, "example.ran") == []


def test_a_copy_and_a_pickle_keep_the_key() -> None:
    phrase = PHRASES("ran", runs=2, time=1.0)
    for other in (copy.deepcopy(phrase), pickle.loads(pickle.dumps(phrase))):
        assert (other, other.key, other.values) == (phrase, phrase.key, phrase.values)
