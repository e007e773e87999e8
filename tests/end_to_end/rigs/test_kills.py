"""Test that a campaign on a rig survives the end of any of its processes, and leaves nothing.

The module kills executes more kills than these tests, at random times.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.end_to_end.random_kills import kill_many
from tests.end_to_end.rigs.kills import (
    BRIDGE_KINDS,
    LINK_KINDS,
    SSH_KINDS,
    RigSetting,
    crash_once,
    is_of_other_program,
    kill_once,
    length_s,
    setting_of,
)
from wattwire.hosts import namespaces
from wattwire.model.errors import MissingError
from wattwire.rig.emulator import find_emulator

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
POINTS = ("ready", "window", "drain")
LATE_POINTS = ("convert", "commit")
"""Crash points after the end of the nodes."""
ONE_PER_KIND = ("controller@window", "agent@drain", "node@window", "emulator@window", "ssh@drain")
ALL = (
    *(f"{kind}@{point}" for kind in ("node", "emulator", "bridge-1", "ssh") for point in POINTS),
    *(f"{kind}@{point}" for kind in ("controller", "agent") for point in (*POINTS, *LATE_POINTS)),
)
KILLS = 3


CHECKED_BY_ANOTHER_PROGRAM = """
import sys
from tests.end_to_end.random_kills import born
from tests.end_to_end.rigs.kills import is_of_other_program

starter, pid = map(int, sys.argv[1:])
print(is_of_other_program(pid, {}), is_of_other_program(pid, {starter: born(starter)}))
"""


def test_a_process_that_another_program_started_is_no_leftover() -> None:
    script = "sleep 1000 & echo $!; wait"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        try:
            assert not is_of_other_program(pid, {})
            words = [sys.executable, "-c", CHECKED_BY_ANOTHER_PROGRAM, str(starter.pid), str(pid)]
            assert subprocess.check_output(words, cwd=ROOT, text=True).split() == ["True", "False"]
        finally:
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def setting(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RigSetting]:
    """Yield the rig on which processes of the kind `request.param` are killed."""
    with contextlib.ExitStack() as running:
        try:
            find_emulator()
            namespaces.user_namespace()
            namespaces.require_tap_devices()
            ready = running.enter_context(setting_of(request.param, tmp_path))
        except MissingError as error:
            pytest.skip(str(error))
        yield ready


def crashes(chosen: tuple[str, ...]) -> list[object]:
    return [
        pytest.param(crash.partition("@")[0].removesuffix("-1"), crash, id=crash)
        for crash in chosen
    ]


@pytest.mark.parametrize(("setting", "crash"), crashes(ONE_PER_KIND), indirect=["setting"])
def test_a_crash_costs_at_most_one_attempt(setting: RigSetting, crash: str, tmp_path: Path) -> None:
    assert crash_once(crash, setting, tmp_path) == []


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("setting", "crash"),
    crashes(tuple(crash for crash in ALL if crash not in ONE_PER_KIND)),
    indirect=["setting"],
)
def test_a_crash_at_any_point_costs_at_most_one_attempt(
    setting: RigSetting, crash: str, tmp_path: Path
) -> None:
    assert crash_once(crash, setting, tmp_path) == []


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("setting", "kind"),
    [pytest.param(kind, kind, id=kind) for kind in (*LINK_KINDS, *BRIDGE_KINDS, *SSH_KINDS)],
    indirect=["setting"],
)
def test_a_kill_at_a_random_time_costs_at_most_one_attempt(
    setting: RigSetting, kind: str, tmp_path: Path
) -> None:
    (tmp_path / "first").mkdir()
    campaign_s = length_s(setting, tmp_path / "first")
    kill = partial(kill_once, kind, setting, campaign_s=campaign_s)
    for seen in kill_many(kind, KILLS, kill, tmp_path, 7):
        assert seen.problems == [], (seen.phase, seen.after_s)
