"""Test that the end of anything that a run depends on is seen, named and repaired.

The cases walk the table of `wattwire.run.dependencies`, at each point of a run.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end import random_kills
from tests.end_to_end.rigs.kills import RigSetting, crash_once, setting_of
from wattwire.hosts import namespaces
from wattwire.model.errors import MissingError
from wattwire.rig.emulator import find_emulator
from wattwire.run.dependencies import DEPENDENCIES, POINTS, End

pytestmark = [pytest.mark.quiet, pytest.mark.slow]

VICTIMS = {
    "controller": "controller", "agent": "agent", "ssh": "ssh", "guard": "guard",
    "emulator": "emulator", "switch": "switch", "device": "device", "service": "broker",
    "bridge": "bridge-1", "node": "node",
}  # fmt: skip
"""Kind → victim of a crash point."""
ELSEWHERE = {
    "namespace": "it ends with its agent",
    "link": "hosts/tests/test_kernel_links: it is no process",
    "probe": "middleware/ros2/tests/test_ros2_graph_kills: it reads a graph of ROS 2",
    "meter": "the tests of meters outside the machine: the agent starts no such process",
    "disk": "run/tests/test_dependencies: no test fills a disk of a host",
}
NAMED = {"ssh": "agent", "bridge": "bridge-1", "node": "was killed by signal 9"}
"""Kind → what the verdict names, where it is not the kind."""
QUICK = ("switch@window", "device@drain")
SETTINGS = {"ssh": "ssh", "bridge": "bridge"}
"""Kind → setting of `kills` other than that of two namespaces with a link."""


def test_each_kind_is_killed_here_or_has_its_own_test() -> None:
    assert {*VICTIMS, *ELSEWHERE} == set(DEPENDENCIES)


@pytest.fixture
def setting(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RigSetting | None]:
    """Yield the rig of the kind `request.param`; None for a service, which needs none."""
    if request.param == "service":
        yield None
        return
    with contextlib.ExitStack() as running:
        try:
            find_emulator()
            namespaces.user_namespace()
            namespaces.require_tap_devices()
            name = SETTINGS.get(request.param, "node")
            ready = running.enter_context(setting_of(name, tmp_path))
        except MissingError as error:
            pytest.skip(str(error))
        yield ready


def cases(points: list[str]) -> list[object]:
    kinds = [point.partition("@") for point in points]
    return [pytest.param(kind, kind, point, id=f"{kind}@{point}") for kind, _, point in kinds]


def assert_end_is_seen(kind: str, point: str, setting: RigSetting | None, folder: Path) -> None:
    crash = f"{VICTIMS[kind]}@{point}"
    if setting is None:
        assert random_kills.crash_once(crash, random_kills.Setting(), folder) == []
    else:
        assert crash_once(crash, setting, folder) == []
    documents = [json.loads(p.read_text()) for p in folder.glob("c/runs/*/run.json")]
    failed = [document for document in documents if document["verdict"] == "failed"]
    details = [r["detail"] for document in failed for r in document["reasons"]]
    end = DEPENDENCIES[kind].end_at(point)
    if end is End.RESUMED:
        assert failed == []
    elif end is End.RESULT:
        assert failed == []
        assert any(NAMED[kind] in document["outcome_detail"] for document in documents)
    else:
        assert len(failed) == 1 and any(NAMED.get(kind, kind) in text for text in details), details


@pytest.mark.parametrize(("setting", "kind", "point"), cases([*QUICK]), indirect=["setting"])
def test_an_end_is_seen_named_and_repeated(
    setting: RigSetting | None, kind: str, point: str, tmp_path: Path
) -> None:
    assert_end_is_seen(kind, point, setting, tmp_path)


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("setting", "kind", "point"),
    cases([f"{k}@{p}" for k in VICTIMS for p in POINTS if f"{k}@{p}" not in QUICK]),
    indirect=["setting"],
)
def test_an_end_at_any_point_is_seen_named_and_repeated(
    setting: RigSetting | None, kind: str, point: str, tmp_path: Path
) -> None:
    assert_end_is_seen(kind, point, setting, tmp_path)
