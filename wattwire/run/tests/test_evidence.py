"""Every limit of [guards] sets a run aside when it is passed, and only then."""

import pytest

from wattwire.model.study import Guards
from wattwire.run.evidence import _judge_machine

WITHIN = {"steal_share": 0.01, "other_load_share": 0.1, "temperature_celsius": 60.0}


def test_a_quiet_machine_gives_no_reason():
    assert _judge_machine(WITHIN, Guards()) == []


def test_what_the_machine_does_not_show_gives_no_reason():
    assert _judge_machine(dict.fromkeys(WITHIN), Guards()) == []


@pytest.mark.parametrize(
    ("figure", "value", "code", "words"),
    [
        ("steal_share", 0.2, "steal", "20.0%"),
        ("other_load_share", 0.5, "other_load", "50.0%"),
        ("temperature_celsius", 99.0, "temperature", "99 °C; allowed: 95 °C"),
    ],
)
def test_each_breach_is_named_with_its_limit(figure, value, code, words):
    (reason,) = _judge_machine({**WITHIN, figure: value}, Guards())
    assert (reason.code, reason.verdict.value) == (code, "unknown")
    assert words in reason.detail
