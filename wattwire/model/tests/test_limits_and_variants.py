"""Tests of the parsers of [[limit]] and [variants], including errors with remedies."""

from __future__ import annotations

from typing import Any

import pytest

from wattwire.model.errors import UsageError
from wattwire.model.limits import Limit
from wattwire.model.study import parse_study

BASE: dict[str, Any] = {
    "factors": {"variant": ["base", "head"], "pattern": ["topic", "service"], "clients": [1, 2]},
    "fixed": {"middleware": "loopback", "language": "python", "rate_hz": 10},
    "variants": {"base": {}, "head": {"levels": {"payload_bytes": 5}}},
}


def refused(**changes: Any) -> str:
    with pytest.raises(UsageError) as caught:
        parse_study("s", {**BASE, **changes}, "study.toml")
    return str(caught.value)


def limit(**table: Any) -> str:
    return refused(limit=[{"response": "lost", "max": 0}, table])


def test_limits_are_read_and_know_whom_they_concern():
    where = {"pattern": "topic", "clients": 2}
    document = {**BASE, "limit": [{"response": "latency_p99_us", "max": 500, "where": where},
                                  {"response": "rate_hz_achieved", "min": 1.5}]}  # fmt: skip
    one, other = parse_study("s", document, "study.toml").limits
    assert one == Limit("latency_p99_us", 500.0, None, where)
    assert one.concerns({"pattern": "topic", "clients": 2, "x": 1})
    assert not one.concerns({"pattern": "topic", "clients": 1})
    assert other.min == 1.5 and other.concerns({})


def test_limits_that_say_nothing_or_too_much_are_refused():
    assert "limit 2: response: found nothing" in limit(max=1)
    assert "limit 2: lost: max and min are missing" in limit(response="lost")
    assert "min 2 is above max 1" in limit(response="lost", max=1, min=2)
    assert "max: found '5'" in limit(response="lost", max="5")
    assert "max: found True" in limit(response="lost", max=True)
    assert "max: found 1000" in limit(response="lost", max=10**400)
    assert "max: found nan" in limit(response="lost", max=float("nan"))
    assert 'unknown key "maxx"; known: max, min, response, where. Did you mean "max"?' in limit(
        response="lost", maxx=1
    )
    assert 'where: unknown factor "patern"' in limit(response="x", max=1, where={"patern": "a"})
    assert 'Did you mean "topic"?' in limit(response="x", max=1, where={"pattern": "topics"})
    assert "allowed: {factor = level}" in limit(response="x", max=1, where="topic")
    assert "allowed: tables [[limit]]" in refused(limit={"response": "lost"})


def test_variants_and_their_factor_must_agree():
    assert 'unknown variant "haed"' in refused(variants={"base": {}, "head": {}, "haed": {}})
    assert "the table [variants.head] is missing" in refused(variants={"base": {}})
    assert 'unknown variant "base"; known: none' in refused(
        factors={"pattern": ["topic"]}, variants={"base": {}}
    )


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"root": 5}, "root: found 5; allowed: a folder's path"),
        ({"rot": "."}, 'unknown key "rot"'),
        ({"levels": {"clients": 5}}, "levels.clients: clients is a factor of the study"),
        ({"levels": {"payload_bytes": -1}}, "levels.payload_bytes: found -1"),
        ({"levels": {"nothing": 1}}, 'unknown factor "nothing"'),
        ("fast", "allowed: a table with root or levels"),
    ],
)
def test_a_variants_table_is_checked(table, says):
    assert says in refused(variants={"base": {}, "head": table})


def test_a_second_look_is_the_most_there_is():
    assert "answers.looks: found 3; allowed: 1 or 2" in refused(answers={"looks": 3})
    assert "answers.looks: found True" in refused(answers={"looks": True})


def test_a_limit_on_a_variant_of_a_study_without_any_says_how_to_give_them():
    told = refused(
        factors={"pattern": ["topic", "service"]},
        variants={},
        limit=[{"response": "latency_p50_us", "max": 1, "where": {"variant": "head"}}],
    )
    assert (
        "where.variant: this study has no variants. Add two, for example with --variant base="
        in told
    )
