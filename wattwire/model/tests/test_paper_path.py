"""Tests of the parser of `[[paper_path]]`, including groups by any factors, filters and errors."""

import pytest

from wattwire.model.errors import UsageError
from wattwire.model.study import parse_study

STUDY = {
    "factors": {
        "language": ["python", "cpp"],
        "interval_s": [0.05, 0.1],
        "settings": {"no_delay": [True, False]},
    },
    "fixed": {"middleware": "loopback", "pattern": "topic"},
}


def parsed(*walks):
    return parse_study("example", {**STUDY, "paper_path": list(walks)}, "study.toml").paper_path


def refused(walk) -> str:
    with pytest.raises(UsageError) as caught:
        parsed(walk)
    return str(caught.value)


def test_a_walk_has_a_response_groups_and_a_filter_of_one_level_or_several():
    walk, other = parsed(
        {"response": "power_w", "by": ["language", "interval_s"],
         "where": {"settings": {"no_delay": True}}},
        {"response": "cpu", "by": ["language"], "where": {"interval_s": [0.05, 0.1]}},
    )  # fmt: skip
    assert walk.by == ("language", "interval_s")
    assert walk.where == {"settings.no_delay": (True,)}
    assert other.where == {"interval_s": (0.05, 0.1)}
    assert parsed() == ()


def test_a_fixed_factor_is_known_for_a_preset_may_have_fixed_it():
    (walk,) = parsed({"response": "cpu", "by": ["pattern"], "where": {"middleware": "loopback"}})
    assert walk.by == ("pattern",)


@pytest.mark.parametrize(
    ("walk", "message"),
    [
        ({"response": "cpu", "by": ["langage"]}, 'unknown factor "langage"'),
        ({"response": "cpu", "by": "language"}, "allowed: a list of factors, such as ['language']"),
        ({"response": "cpu"}, "by: found nothing; allowed: a list of factors"),
        ({"response": "cpu", "by": ["language", "language"]}, "found a factor twice"),
        ({"by": ["language"]}, 'response: found nothing; allowed: a name, as "power_w"'),
        ({"response": 5, "by": ["language"]}, "response: found 5"),
        ({"response": "cpu", "by": ["language"], "wher": {}}, 'unknown key "wher"'),
        ({"response": "cpu", "by": ["language"], "where": ["cpp"]}, "allowed: {factor = level}"),
        ({"response": "cpu", "by": ["language"], "where": {"clints": 1}}, 'factor "clints"'),
        ({"response": "cpu", "by": ["interval_s"], "where": {"language": "pyton"}},
         "paper_path 1: where.language: found 'pyton'; allowed: 'python', 'cpp'. "
         'Did you mean "python"?'),
        ({"response": "cpu", "by": ["language"], "where": {"interval_s": []}},
         "where.interval_s: the list is empty"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_what_is_allowed(walk, message):
    assert message in refused(walk)


def test_something_that_is_no_list_of_tables_is_refused():
    with pytest.raises(UsageError, match=r"paper_path: found 'cpu'; allowed: tables"):
        parse_study("example", {**STUDY, "paper_path": "cpu"}, "study.toml")
