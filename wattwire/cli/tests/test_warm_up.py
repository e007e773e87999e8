"""Tests of --warmup with the values auto, none, a number of calls, and a time."""

import pytest

from wattwire.catalog import Catalog
from wattwire.cli.main import main, parser
from wattwire.cli.studies import warm_up_changes
from wattwire.cli.verbs.try_cmd import document_of
from wattwire.model.errors import UsageError
from wattwire.model.study import parse_study
from wattwire.model.warm_up import AUTO


@pytest.mark.parametrize(
    ("typed", "calls", "seconds"),
    [([], AUTO, 0.2), (["--warmup", "auto"], AUTO, 0.2), (["--warmup", "none"], 0, 0.0),
     (["--warmup", "200"], 200, 0.2), (["--warmup", "500ms"], 0, 0.5)],
)  # fmt: skip
def test_a_trial_has_the_warm_up_that_was_typed(typed, calls, seconds):
    options = parser(["try_cmd"]).parse_args(
        ["try", "loopback/python", "--set", "loop=closed", *typed]
    )
    document = document_of(options, [Catalog().cell("loopback/python")])
    plan = parse_study("try", document, "test").plan
    assert (plan.warmup_calls, plan.warmup_s) == (calls, seconds)


def test_other_words_are_refused_with_what_is_allowed():
    for word in ("soon", "-5", "2 weeks", ""):
        with pytest.raises(UsageError, match="a number of calls"):
            warm_up_changes(word)


@pytest.mark.parametrize("verb", ["plan", "try"])
def test_calls_are_refused_where_the_loop_is_open(verb, capsys):
    what = ["first-look"] if verb == "plan" else ["loopback/python"]
    assert main([verb, *what, "--warmup", "200"]) == 2
    assert "a number of calls needs a closed loop" in capsys.readouterr().err
