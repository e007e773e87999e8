"""Test campaigns whose meter is unplugged, or whose agent or controller is killed.

The module kills executes more kills than these tests.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from meters.watts_up.tests.kills import MeteredSetting, pull_once
from tests.end_to_end.random_kills import crash_once
from wattwire.model.errors import MissingError
from wattwire.rig.agent import find_agent
from wattwire.run.crash import POINTS
from wattwire.run.dependencies import POINTS as READING

pytestmark = [pytest.mark.quiet, pytest.mark.slow, pytest.mark.matrix]

PULLED = {
    "#S,R,0;": "the meter watts_up does not answer",
    "#L,W,3,E,,1;": "the meter watts_up does not answer",
    "#L,W,0;": "the meter watts_up is gone: its address: no such device",
}
"""Command at which the cable is pulled → the reason of the attempt that it fails."""


@pytest.fixture(autouse=True)
def _needs_agent() -> None:
    try:
        find_agent()
    except MissingError as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("command", PULLED)
def test_a_pulled_cable_fails_an_attempt_stops_the_campaign_and_resume_goes_on(
    command: str, tmp_path: Path
) -> None:
    problems, said = pull_once(command, tmp_path)
    assert problems == []
    assert "no such device" in said and "Continue with --resume" in said
    documents = [json.loads(path.read_text()) for path in tmp_path.glob("c/runs/*/run.json")]
    failed = [d["reasons"] for d in documents if d["verdict"] == "failed"]
    assert len(failed) == 1 and failed[0][0]["detail"].startswith(PULLED[command])
    assert str(tmp_path) not in str(failed)


@pytest.mark.parametrize(
    ("victim", "point"),
    [*(("agent", point) for point in READING), *(("controller", point) for point in POINTS)],
)
def test_a_killed_reader_leaves_no_meter_logging_after_the_next_run(
    victim: str, point: str, tmp_path: Path
) -> None:
    setting = MeteredSetting(killed=victim)
    try:
        assert crash_once(f"{victim}@{point}", setting, tmp_path) == []
    finally:
        setting.unplug()
