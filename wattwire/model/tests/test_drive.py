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
    "legs", [[], [{**SIDE, "seconds": 0.0}], [{"m_per_s": 1.0}], None], ids=str
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


def test_a_watchdog_below_the_period_is_refused():
    message = refused({**SQUARE, "watchdog_s": 0.05})
    assert "drive.watchdog_s: found 0.05 s, which is below the period of 0.1 s (rate_hz 10.0)" in (
        message
    )
    assert "allowed: 0.1 or more" in message
    assert parsed({**SQUARE, "watchdog_s": 0.1}).drive.watchdog_s == 0.1


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
