"""Test that a campaign survives the end of a ROS master, a bridge, a gateway and an emulated board.

The module random_kills executes more kills than these tests.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.end_to_end.random_kills import (
    Setting,
    crash_once,
    exposure_s,
    kill_many,
    kill_once,
    reasons_of,
    study_of,
)
from wattwire.catalog import Catalog
from wattwire.model.errors import MissingError
from wattwire.rig.builds import check_requirements

pytestmark = pytest.mark.slow

BOARD = "server/qemu-system-arm"
"""The program that the server's node starts."""
STUDIES = {
    "ros1/python": ("pingpong",),
    "rosbridge/rospy": ("pingpong", "rosbridge/python"),
    "coproc/scalar": ("service",),
    "coproc/qemu-an385": ("service",),
}
"""Cell → pattern and the server's cell of a campaign."""
VICTIMS = (
    ("ros1/python", "master"),
    ("rosbridge/rospy", "master"),
    ("rosbridge/rospy", "bridge"),
    ("coproc/scalar", "client"),
    ("coproc/qemu-an385", BOARD),
)
REASONS = {
    "master": "the service master was killed by signal 9",
    "bridge": "the service bridge was killed by signal 9",
    "client": "client-0 was killed by signal 9",
    "server": "server-0 was killed by signal 9",
    BOARD: "server-0 ended with code 4 (the device qemu-system-arm ended by signal 9",
}
"""Victim → the reason that the run names. A run without its harness is repeated instead."""
POINTS = ("ready", "window", "drain")
QUICK = (
    ("rosbridge/rospy", "bridge@drain"),
    ("coproc/scalar", "client@ready"),
    ("coproc/qemu-an385", f"{BOARD}@window"),
)
ALL = tuple((cell, f"{victim}@{point}") for cell, victim in VICTIMS for point in POINTS)
HARNESS = ("controller", "agent", "guard")
KILLS = 59
KILLS_TIMEOUT_S = 3 * 3600


@pytest.fixture
def setting(request: pytest.FixtureRequest) -> Setting:
    """Return the campaign of the cell `request.param`."""
    cell, (pattern, *servers) = request.param, STUDIES[request.param]
    try:
        for name in (cell, *servers):
            check_requirements(Catalog().cell(name))
    except MissingError as reason:
        pytest.skip(str(reason))
    return Setting(study=study_of(cell, pattern, *servers))


def assert_only_one_attempt_suffers(setting: Setting, crash: str, folder: Path) -> None:
    assert crash_once(crash, setting, folder) == []
    reasons = reasons_of(folder / "c")
    expected = REASONS.get(crash.partition("@")[0])
    if expected is None:
        assert reasons == []
    else:
        (reason,) = reasons
        assert reason.startswith(expected)


@pytest.mark.parametrize(("setting", "crash"), QUICK, indirect=["setting"])
def test_a_crash_is_named_and_leaves_nothing(setting: Setting, crash: str, tmp_path: Path) -> None:
    assert_only_one_attempt_suffers(setting, crash, tmp_path)


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("setting", "crash"), [case for case in ALL if case not in QUICK], indirect=["setting"]
)
def test_a_crash_at_any_point_is_named_and_leaves_nothing(
    setting: Setting, crash: str, tmp_path: Path
) -> None:
    assert_only_one_attempt_suffers(setting, crash, tmp_path)


@pytest.mark.matrix
@pytest.mark.parametrize("setting", ["rosbridge/rospy", "coproc/qemu-an385"], indirect=True)
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("victim", HARNESS)
def test_services_and_devices_end_with_the_harness(
    setting: Setting, victim: str, point: str, tmp_path: Path
) -> None:
    assert_only_one_attempt_suffers(setting, f"{victim}@{point}", tmp_path)


@pytest.mark.matrix
@pytest.mark.parametrize("setting", ["coproc/qemu-an385"], indirect=True)
@pytest.mark.parametrize("point", POINTS)
def test_a_device_ends_with_its_node(setting: Setting, point: str, tmp_path: Path) -> None:
    assert_only_one_attempt_suffers(setting, f"server@{point}", tmp_path)


@pytest.mark.matrix
@pytest.mark.timeout(KILLS_TIMEOUT_S)
@pytest.mark.parametrize(
    ("setting", "kind"),
    [(cell, victim.rpartition("/")[2]) for cell, victim in VICTIMS],
    indirect=["setting"],
)
def test_random_kills_lose_repeat_and_leave_nothing(
    setting: Setting, kind: str, tmp_path: Path
) -> None:
    (tmp_path / "undisturbed").mkdir()
    delay_max_s = exposure_s(kind, setting, tmp_path / "undisturbed")
    kill = partial(kill_once, kind, setting, delay_max_s=delay_max_s)
    kills = list(kill_many(kind, KILLS, kill, tmp_path, 18))
    assert len(kills) == KILLS
    assert [(kill.phase, kill.after_s, kill.problems) for kill in kills if kill.problems] == []
