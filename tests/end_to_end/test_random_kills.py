"""Test that a kill at a random time loses at most the current run.

The module random_kills executes more kills than this test.
"""

from __future__ import annotations

import os
import shutil
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from tests.end_to_end.random_kills import (
    KINDS,
    Family,
    Seen,
    Setting,
    kill_many,
    kill_once,
    left,
    sockets_held_by,
)

pytestmark = pytest.mark.slow

KILLS = 2


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Seen]]:
    """Return the results by kind. Two campaigns run at a time, because each mostly waits."""
    if shutil.which("mosquitto", path="/usr/sbin:/usr/bin:/usr/local/sbin") is None:
        pytest.skip("mosquitto is not installed: the campaigns here run through a broker")

    folders = {kind: tmp_path_factory.mktemp(kind) for kind in KINDS}  # mktemp is not thread-safe

    def kill(kind: str) -> list[Seen]:
        return list(
            kill_many(kind, KILLS, partial(kill_once, kind, Setting()), folders[kind], seed=7)
        )

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(KINDS, pool.map(kill, KINDS), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_lost_or_done_twice_or_left_behind(
    kind: str, seen: dict[str, list[Seen]]
) -> None:
    assert len(seen[kind]) == KILLS
    for kill in seen[kind]:
        assert kill.problems == [], (kill.phase, kill.after_s)


def test_an_open_port_and_a_temporary_file_are_leftovers(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp" / "map").touch()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        inodes = sockets_held_by([os.getpid()])
        with socket.create_server(("127.0.0.1", 0)) as later:
            problems = " ".join(left(tmp_path, Family(), 0.0, inodes))
            assert f"tcp :{later.getsockname()[1]:04X}" not in problems
    assert f"tcp :{port:04X}" in problems and "temporary file: ['map']" in problems
    problems = " ".join(left(tmp_path, Family(), 0.0, inodes))
    assert f"tcp :{port:04X}" not in problems and "temporary file: ['map']" in problems
