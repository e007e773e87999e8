"""Every limit of [guards] sets a run aside when it is passed, and only then."""

import pytest

from wattwire.model.study import Guards
from wattwire.rig import host
from wattwire.run.evidence import _judge_machine

WITHIN = {
    "steal_share": 0.01,
    "other_load_share": 0.1,
    "temperature_celsius": 60.0,
    "stall_ms_max": 2.0,
    "clock_step_ms": -3.0,
}


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
        ("stall_ms_max", 59.0, "stall", "stood still for 59 ms; allowed: 10 ms"),
        ("clock_step_ms", -500.0, "clock_step", "set by -500 ms; allowed: 10 ms"),
    ],
)
def test_each_breach_is_named_with_its_limit(figure, value, code, words):
    (reason,) = _judge_machine({**WITHIN, figure: value}, Guards())
    assert (reason.code, reason.verdict.value) == (code, "unknown")
    assert words in reason.detail


def clocks(monotonic, realtime, boottime):
    return [
        {
            "monotonic_ns": monotonic,
            "realtime_ns": realtime,
            "boottime_ns": boottime,
            "monotonic_after_ns": monotonic,
        }
    ]


def test_a_suspend_and_a_step_of_the_clock_are_told_apart():
    begin = clocks(1_000, 50_000, 3_000)
    slept = clocks(2_000, 60_000, 13_000)
    assert host.suspended_ns(begin, slept) == 9_000
    assert host.clock_step_ns(begin, slept) == 0
    stepped = clocks(2_000, 30_000, 4_000)
    assert host.suspended_ns(begin, stepped) == 0
    assert host.clock_step_ns(begin, stepped) == -21_000
