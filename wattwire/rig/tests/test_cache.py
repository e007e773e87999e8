"""Test that old entries of the build cache are removed, except those in use."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from wattwire.model.errors import MissingError
from wattwire.rig import cache
from wattwire.rig.agent import AgentClient

DAY_S = 86_400.0
NOW_S = 1_000 * DAY_S


def build(place: Path, key: str, age_days: float, size_bytes: int = 10_000) -> Path:
    folder = place / "builds" / key
    (folder / "source").mkdir(parents=True)
    (folder / "source/node").write_bytes(b"x" * size_bytes)
    for name in (f"{key}.lock", f"{key}.log"):
        (folder.parent / name).write_text("")
    marker = folder / cache.MARKER
    marker.write_text("1.0\n")
    os.utime(marker, (NOW_S, NOW_S - age_days * DAY_S))
    return folder


def test_entries_are_builds_and_blobs_with_their_size_and_the_age_of_their_last_use(tmp_path):
    build(tmp_path, "old", 40.0)
    build(tmp_path, "new", 1.0)
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / "b").write_bytes(b"x")
    (tmp_path / cache.COMPILERS / "c").mkdir(parents=True)
    found = {entry.path.name: entry for entry in cache.entries(tmp_path, NOW_S)}
    assert set(found) == {"old", "new", "b", "c"}
    assert found["old"].age_days == pytest.approx(40.0)
    assert found["old"].size_bytes >= 10_000


def test_an_empty_cache_has_no_entries(tmp_path):
    assert cache.entries(tmp_path / "none") == []


def test_a_removed_build_leaves_nothing_that_looks_complete(tmp_path):
    folder = build(tmp_path, "k", 40.0)
    costs = tmp_path / cache.HARNESS_COSTS
    costs.mkdir()
    for key in ("k", "other"):
        (costs / f"{key}.json").write_text("{}")
    (entry,) = cache.entries(tmp_path, NOW_S)
    assert cache.remove(entry)
    assert not folder.exists() and not (tmp_path / "builds/k.log").exists()
    assert [path.name for path in costs.iterdir()] == ["other.json"]


def test_a_build_that_somebody_holds_stays(tmp_path):
    folder = build(tmp_path, "k", 40.0)
    (entry,) = cache.entries(tmp_path, NOW_S)
    with (tmp_path / "builds/k.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert not cache.remove(entry)
    assert (folder / cache.MARKER).exists()
    assert cache.remove(entry)


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"WATTWIRE_CACHE": "/c", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/c"),
        ({"WATTWIRE_CACHE": "", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/wattwire"),
        ({"HOME": "/h"}, "/h/.cache/wattwire"),
    ],
)
def test_the_folder_is_the_one_that_the_agent_takes(environment, folder):
    assert cache.folder(environment) == Path(folder)


def test_without_a_home_there_is_no_folder_that_anybody_could_create() -> None:
    with pytest.raises(MissingError, match="WATTWIRE_CACHE"):
        cache.folder({})


def test_a_folder_that_another_user_can_write_to_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "cache"
    monkeypatch.setenv("WATTWIRE_CACHE", str(place))
    cache.require_own(place)  # it does not exist yet, and the agent creates it
    place.mkdir(mode=0o755)
    cache.require_own(place)
    place.chmod(0o777)
    with pytest.raises(MissingError, match="mode 777"):
        cache.require_own(place)
    with pytest.raises(MissingError, match="mode 777"):
        AgentClient(tmp_path / "state", Path("/bin/false"))
    if os.geteuid() == 0:
        place.chmod(0o755)
        os.chown(place, 12345, -1)
        with pytest.raises(MissingError, match="12345"):
            cache.require_own(place)


def process(proc: Path, pid: int, name: str, environment: dict[str, str], state: str = "S") -> None:
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    (folder / "cmdline").write_bytes(b"/x/an-agent-by-another-name\0serve\0")
    (folder / "stat").write_text(f"{pid} ({name}) {state} 1 {pid} {pid} 0 -1\n")
    pairs = [f"{k}={v}".encode() for k, v in environment.items()]
    (folder / "environ").write_bytes(b"\0".join(pairs) + b"\0")


def test_agents_that_use_this_cache_are_found_by_their_own_environment(tmp_path):
    place, proc = tmp_path / "cache", tmp_path / "proc"
    place.mkdir()
    ours, other = {"WATTWIRE_CACHE": str(place)}, {"WATTWIRE_CACHE": str(tmp_path / "other")}
    process(proc, 11, "wattwire-agent", ours)
    process(proc, 12, "wattwire-guard", ours)
    process(proc, 13, "wattwire-agent", other)
    process(proc, 14, "sleep (wattwire-agent)", ours)
    process(proc, 15, "wattwire-agent", ours)
    process(proc, 16, "wattwire-agent", ours, "Z")
    (proc / "15" / "environ").unlink()  # another user's agent, whose cache is unknown
    assert cache.agents_using(place, proc) == [11, 15]


def test_a_cache_that_is_not_there_yet_can_be_written_where_its_parent_can(tmp_path):
    assert cache.writable(tmp_path / "not" / "there")
    if os.geteuid() != 0:
        tmp_path.chmod(0o555)
        assert not cache.writable(tmp_path / "not")
        tmp_path.chmod(0o755)
