"""Test that a run is excluded if and only if it exceeds a limit of [validity]."""

from types import SimpleNamespace

import polars as pl
import pytest

from wattwire.model.validity import ValidityLimits, broken_limits, missed_ticks_share
from wattwire.rig import host
from wattwire.rig.host import load_between
from wattwire.run.results.evidence import machine_figures, resolution
from wattwire.run.results.resources import Readings

WITHIN = {
    "steal_share": 0.01,
    "other_load_share": 0.1,
    "temperature_celsius": 60.0,
    "stall_ms_max": 2.0,
    "clock_step_ms": -3.0,
    "missed_ticks_share": 0.05,
    "link_late_p99_ms": 0.3,
}


def test_a_quiet_machine_gives_no_reason():
    assert broken_limits(WITHIN, {}, ValidityLimits()) == []


def test_what_the_machine_does_not_show_gives_no_reason():
    assert broken_limits(dict.fromkeys(WITHIN), {}, ValidityLimits()) == []


@pytest.mark.parametrize(
    ("figure", "value", "code", "words"),
    [
        ("steal_share", 0.2, "steal", "20.0 %"),
        ("other_load_share", 0.5, "other_load", "50.0 %"),
        (
            "temperature_celsius",
            99.0,
            "temperature",
            "a temperature of 99 °C; allowed: at most 95 °C",
        ),
        ("stall_ms_max", 59.0, "stall", "stalled for 59 ms; allowed: at most 10 ms"),
        ("missed_ticks_share", 0.3, "missed_ticks", "missed 30.0 % of its ticks"),
        ("link_late_p99_ms", 9.0, "link_late", "was 9.0 ms late"),
        ("clock_step_ms", -500.0, "clock_step", "adjusted by -500 ms; allowed: at most 10 ms"),
    ],
)
def test_each_breach_is_named_with_its_limit(figure, value, code, words):
    (reason,) = broken_limits({**WITHIN, figure: value}, {}, ValidityLimits())
    assert (reason.code, reason.verdict.value) == (code, "invalid")
    assert words in reason.detail


def test_a_share_of_one_is_never_passed_and_a_look_passes_over_every_limit():
    beyond = {**dict.fromkeys(WITHIN, 1e9), "other_load_share": 1.3}
    share = ValidityLimits(other_load_max=1.0)
    assert broken_limits({"other_load_share": 1.3}, {}, share) == []
    assert len(broken_limits(beyond, {}, ValidityLimits())) == len(WITHIN)
    assert broken_limits(beyond, {}, ValidityLimits(look=True)) == []


def test_a_share_counted_in_steps_is_beyond_its_limit_only_by_more_than_a_step():
    """Five ticks of 10 ms are 5 % of two cores in 0.5 s, within the counting resolution."""
    half_s = SimpleNamespace(
        window={"start_ns": 0, "end_ns": 500_000_000}, tick_ns=10_000_000,
        sampling={"ticks": 10, "missed": 2},
    )  # fmt: skip
    steps = resolution(half_s)
    assert steps["steal_share"] == pytest.approx(0.02)
    assert steps["missed_ticks_share"] == pytest.approx(1 / 12)
    reasons = [
        broken_limits({"steal_share": ticks / 100}, steps, ValidityLimits()) for ticks in (6, 7, 8)
    ]
    assert [len(found) for found in reasons] == [0, 0, 1]
    assert broken_limits({"missed_ticks_share": 2 / 12}, steps, ValidityLimits()) == []
    assert broken_limits({"missed_ticks_share": 0.3}, steps, ValidityLimits())


def test_a_share_of_ticks_is_never_above_one():
    assert missed_ticks_share({"ticks": 1, "missed": 3}) == 0.75
    assert missed_ticks_share({"ticks": 0, "missed": 3}) == 1.0
    assert missed_ticks_share({"ticks": 9}) == 0.0
    assert missed_ticks_share({}) is None


def test_a_share_of_stolen_time_is_never_above_one():
    before = {"total_ns": 0, "busy_ns": 0, "steal_ns": 0, "other_demand_ns": 0}
    before |= {"tick_ns": 10_000_000, "cpus": 1}
    after = {**before, "total_ns": 100_000_000, "steal_ns": 110_000_000}
    assert load_between(before, after).steal == 1.0


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


def test_figures_of_the_window_are_taken_from_it_alone():
    second = 10**9
    rows = [
        ("stall_longest", "machine", [(0, 1e6), (2, 90e6), (3, 2e6), (4, 59e6), (5, 70e6)]),
        ("stalled_time", "machine", [(0, 0.0), (2, 90e6), (3, 92e6), (4, 151e6), (5, 221e6)]),
        # All CPUs are busy, including the nodes and idle-priority processes. Other processes demand
        # half.
        ("busy_time", "machine", [(0, 0.0), (2, 8e9), (4, 16e9), (5, 20e9)]),
        ("other_cpu_time", "machine", [(0, 0.0), (2, 8e9), (4, 14e9), (5, 14e9)]),
        ("other_demand", "machine", [(0, 0.0), (2, 2e9), (4, 6e9), (5, 9e9)]),
        ("temperature", "zone-0", [(0, 40.0), (3, 50.0), (5, 60.0)]),
        ("temperature", "zone-1", [(0, 40.0), (3, 70.0), (5, 80.0)]),
        ("datagrams_dropped", "machine", [(0, 5.0), (2, 5.0), (4, 9.0), (5, 12.0), (6, 15.0)]),
        ("datagrams_unassembled", "machine", [(0, 0.0), (2, 1.0), (4, 3.0), (5, 3.0)]),
    ]
    frame = pl.DataFrame(
        [
            {"meter": "m", "quantity": q, "scope": "machine", "subject": s, "kind": "measured",
             "t_ns": int(t * second), "value": v}
            for q, s, points in rows
            for t, v in points
        ]
    )  # fmt: skip
    record = SimpleNamespace(
        window={"start_ns": 2 * second, "end_ns": 4 * second}, stop_ns=5 * second, cpus=4,
        clocks={}, processes=SimpleNamespace(states={}),
    )  # fmt: skip
    figures = machine_figures(Readings(frame), record)
    assert figures["stall_ms_max"] == 59.0  # excludes the 90 ms before and the 70 ms after
    assert figures["stalled_ms"] == pytest.approx(61.0)
    assert figures["other_load_share"] == pytest.approx(0.5)
    assert figures["other_cpu_share"] == pytest.approx(0.75)
    assert figures["temperature_celsius"] == 70.0
    assert figures["datagrams_dropped"] == 10.0  # also those after STOP
    assert figures["datagrams_unassembled"] == 2.0
    assert figures["clock_step_ms"] is None
