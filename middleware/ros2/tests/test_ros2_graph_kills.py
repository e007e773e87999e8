"""A killed probe, profiled node or node of a user's graph costs one attempt and leaves nothing.

The module graph_kills executes more kills than these tests, at random times.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from middleware.ros2.tests.graph_kills import KINDS, ros_build, setting_of
from tests.end_to_end.random_kills import (
    Setting,
    crash_once,
    exposure_s,
    kill_many,
    kill_once,
    reasons_of,
)
from wattwire.model.errors import MissingError
from wattwire.rig import CellBuild

pytestmark = [pytest.mark.quiet, pytest.mark.slow]

PROBE_ENDED = "the probe was killed by signal 9"
POINTS = {
    "probe": ("probe@window", "probe@drain", "agent@window", "guard@window", "controller@window"),
    "profiled": ("profiled@ready", "profiled@window", "profiled@drain", "agent@window",
                 "controller@window", "controller@convert", "controller@commit"),
    "relay": ("node/relay.py@window", "agent@window", "guard@window", "controller@window",
              "controller@drain", "controller@convert"),
}  # fmt: skip
"""Subject → its crash points."""
QUICK = ("probe@window", "profiled@ready", "node/relay.py@window")
KILLS = 59
KILLS_TIMEOUT_S = 3 * 3600


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> CellBuild:
    try:
        return ros_build(tmp_path_factory.mktemp("agent"))
    except MissingError as reason:
        pytest.skip(str(reason))


@pytest.fixture
def setting(request: pytest.FixtureRequest, build: CellBuild, tmp_path: Path) -> Iterator[Setting]:
    """Yield the campaign of the subject `request.param`. The graph of a probe runs meanwhile."""
    with setting_of(request.param, build, tmp_path) as ready:
        yield ready


def cases(quick: bool) -> list[object]:
    return [
        pytest.param(subject, crash, id=f"{subject}-{crash}")
        for subject, crashes in POINTS.items()
        for crash in crashes
        if (crash in QUICK) == quick
    ]


def assert_one_attempt_suffers(setting: Setting, crash: str, folder: Path) -> None:
    assert crash_once(crash, setting, folder) == []
    if crash.startswith("probe@"):
        documents = [json.loads(path.read_text()) for path in folder.glob("c/runs/*/run.json")]
        (failed,) = (document for document in documents if document["verdict"] == "failed")
        (reason,) = failed["reasons"]
        assert reason["detail"].startswith(PROBE_ENDED)
    if crash.startswith("profiled@"):
        (reason,) = reasons_of(folder / "c")
        assert reason.startswith("sink-0 (hop 2) was killed by signal 9")
    if crash.startswith("node/relay.py@"):
        logs = [path.read_text() for path in folder.glob("c/runs/*/logs/command.out")]
        assert ["relay ended with code 137" in log for log in logs].count(True) == 1


@pytest.mark.parametrize(("setting", "crash"), cases(True), indirect=["setting"])
def test_a_crash_costs_one_attempt_and_leaves_nothing(
    setting: Setting, crash: str, tmp_path: Path
) -> None:
    assert_one_attempt_suffers(setting, crash, tmp_path)


@pytest.mark.matrix
@pytest.mark.parametrize(("setting", "crash"), cases(False), indirect=["setting"])
def test_a_crash_at_any_point_costs_one_attempt_and_leaves_nothing(
    setting: Setting, crash: str, tmp_path: Path
) -> None:
    assert_one_attempt_suffers(setting, crash, tmp_path)


@pytest.mark.matrix
@pytest.mark.timeout(KILLS_TIMEOUT_S)
@pytest.mark.parametrize(
    ("setting", "kind"), [(name, kinds[0]) for name, kinds in KINDS.items()], indirect=["setting"]
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
