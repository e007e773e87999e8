"""Test the table `[drive]` of a study: its commands, its laps, and the rejection of bad input."""

import math

import pytest

from wattwire.model.errors import UsageError
from wattwire.model.study import parse_study
from wattwire.model.study.parsing import apply_preset

SIDE = {"seconds": 3.0, "m_per_s": 0.5}
CORNER = {"seconds": 3.0, "deg_per_s": 30.0}
SQUARE = {"legs": [SIDE, CORNER], "repeats": 4}


def parsed(drive=None, fixed=None, **changes):
    document = {
        "drive": SQUARE if drive is None else drive,
        "fixed": {"cell": "loopback/python", "pattern": "topic", "rate_hz": 10.0} | (fixed or {}),
        "plan": {"duration_s": 96.0},
        **changes,
    }
    return parse_study("example", document, "study.toml")


def refused(*arguments, **changes) -> str:
    with pytest.raises(UsageError) as caught:
        parsed(*arguments, **changes)
    return str(caught.value)


def test_a_lap_repeats_the_legs_with_a_command_per_period():
    drive = parsed().drive
    assert (drive.lap_s, drive.laps(96.0), drive.laps(95.9), drive.watchdog_s) == (24, 4, 3, 0.5)
    velocities = drive.velocities(0.1)
    assert velocities[:60] == [(0.5, 0.0)] * 30 + [(0.0, math.radians(30.0))] * 30
    assert velocities == velocities[:60] * 4


def test_a_preset_shortens_the_drive_and_a_study_without_the_table_has_none():
    document = {"drive": dict(SQUARE), "presets": {"short": {"drive": {"repeats": 1}}}}
    assert apply_preset(document, "short", "study.toml")["drive"] == {**SQUARE, "repeats": 1}
    assert parse_study("s", {"fixed": {"cell": "x/y", "pattern": "topic"}}, "s").drive is None


@pytest.mark.parametrize(
    "legs",
    [[], [{**SIDE, "seconds": 0.0}], [{**SIDE, "seconds": math.inf}], [{"m_per_s": 1.0}], None],
    ids=str,
)
def test_a_drive_without_commands_is_refused(legs):
    message = refused({} if legs is None else {"legs": legs})
    assert message.startswith("study.toml: drive.legs") and "allowed" in message


def test_a_leg_of_no_whole_number_of_commands_is_refused():
    message = refused({"legs": [SIDE, {"seconds": 0.25}]})
    assert "drive.legs 2: seconds: found 0.25, which is 2.5 periods" in message
    message = refused({"legs": [{"seconds": 0.02}]})
    assert "drive.legs 1: seconds: found 0.02, which is 0.2 periods" in message


@pytest.mark.parametrize("key", ["interval_s", "rate_hz"])
def test_a_period_of_0_is_refused(key):
    fixed = {"cell": "loopback/python", "pattern": "topic", key: 0.0}
    with pytest.raises(UsageError) as caught:
        parse_study("s", {"drive": SQUARE, "fixed": fixed}, "study.toml")
    assert f"study.toml: fixed.{key}: found 0.0; allowed: " in str(caught.value)


@pytest.mark.parametrize("watchdog_s", [0.05, 0.1])
def test_a_watchdog_of_a_period_or_less_is_refused(watchdog_s):
    message = refused({**SQUARE, "watchdog_s": watchdog_s})
    assert f"drive.watchdog_s: found {watchdog_s} s, which is not more than the period" in message
    assert "0.1 s (rate_hz 10.0)" in message and "allowed: more than 0.1" in message
    assert parsed({**SQUARE, "watchdog_s": 0.11}).drive.watchdog_s == 0.11
    assert "drive.watchdog_s: found inf; allowed: " in refused({**SQUARE, "watchdog_s": math.inf})


@pytest.mark.parametrize(
    ("drive", "found"),
    [
        ({**SQUARE, "legs": [SIDE, {**CORNER, "deg_per_s": 29.0}]}, "heading of 348°"),
        ({"legs": [SIDE, CORNER]}, "ends 1.5 m from its start with a heading of 90°"),
        ({"legs": [SIDE]}, "ends 1.5 m from its start with a heading of 0°"),
    ],
    ids=["29 degrees per second", "no repeats", "a line"],
)
def test_a_lap_that_does_not_end_where_it_began_is_refused(drive, found):
    message = refused(drive)
    assert message.startswith("study.toml: drive.legs: found a lap that ends") and found in message
    assert "allowed: at most 0.001 m and a multiple of 360°" in message and "repeats" in message


@pytest.mark.parametrize(
    "legs",
    [
        [{"seconds": 4.0, "m_per_s": 0.5, "deg_per_s": 90.0}],
        [SIDE, {**SIDE, "m_per_s": -0.5}],
        [{"seconds": 3.0, "m_per_s": 0.5, "deg_per_s": sign * 120.0} for sign in (1, -1)],
    ],
    ids=["circle", "back and forth", "eight"],
)
def test_other_laps_that_close_are_accepted(legs):
    apart_m, heading_deg = parsed({"legs": legs}).drive.end_of_lap(0.1)
    assert apart_m <= 1e-9 and heading_deg % 360 == pytest.approx(0.0, abs=1e-9)


def test_the_rate_of_a_variant_is_checked_against_the_legs_and_the_watchdog():
    slow = {"slow": {"levels": {"rate_hz": 1.0}}, "plain": {}}
    factors = {"variant": ["plain", "slow"]}
    message = refused(variants=slow, factors=factors)
    assert "drive.watchdog_s: found 0.5 s" in message and "(rate_hz 1.0)" in message
    slow["slow"]["levels"]["rate_hz"] = 7.0
    message = refused({"legs": [{"seconds": 0.5}]}, variants=slow, factors=factors)
    assert "drive.legs 1: seconds: found 0.5, which is 3.5 periods" in message
    for levels in ({"rate_hz": 10.0}, {"interval_s": 0.1}):
        parsed(variants={"slow": {"levels": levels}, "plain": {}}, factors=factors)


def test_a_warm_up_in_seconds_is_refused():
    message = refused(plan={"duration_s": 96.0, "warmup_s": 1.0})
    assert "study.toml: plan.warmup_s: found 1, but the first lap begins" in message


def test_less_than_two_laps_are_refused():
    message = refused(plan={"duration_s": 47.0})
    assert "plan.duration_s: found 47, less than 2 laps of 24 s" in message


@pytest.mark.parametrize(
    ("key", "level"), [("pattern", "service"), ("loop", "closed"), ("clients", 2)]
)
def test_messages_that_a_robot_cannot_obey_as_commands_are_refused(key, level):
    assert f"study.toml: drive: {key}: found {level}; allowed: " in refused(fixed={key: level})


def test_the_commands_are_a_flow_of_a_study_with_flows():
    command = {"name": "command", "payload_bytes": 64, "rate_hz": 10}
    changes = {"flow": [command], "fixed": {"cell": "x/y"}, "plan": {"duration_s": 48.0}}
    study = parse_study("s", {"drive": {**SQUARE, "flow": "command"}, **changes}, "study.toml")
    assert study.drive.flow == "command"
    with pytest.raises(UsageError, match="drive.flow: unknown flow"):
        parse_study("s", {"drive": SQUARE, **changes}, "study.toml")
    assert "drive.flow: found 'image', but the study has no table [[flow]]" in refused(
        {**SQUARE, "flow": "image"}
    )
