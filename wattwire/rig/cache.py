"""Manage the user's build cache: its location, size and removal.

The agent writes the cache, so the layout is the same as in agent/src/cache.rs.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from wattwire.model.errors import MissingError
from wattwire.model.paths import cache_folder as folder

MARKER = ".wattwire-complete"
TREES = "trees"
"""Sources of commits measured as variants; agents do not use them."""
COMPILERS = "compilers"
"""Files that compilers cache between builds, in one folder for each compiler."""
HARNESS_COSTS = "harness_costs"
STRANGER_CALLS = "stranger_calls"
BUILD_NOTES = (HARNESS_COSTS, STRANGER_CALLS)
"""Folders of measurements with one file for each build, which is removed with the build."""
AGENT = b"wattwire-agent"
"""Name of the process of an agent, as in `agent/src/processes/own.rs`."""
DAY_S = 86_400.0


def writable(place: Path) -> bool:
    """Return whether this user can create files in the cache at `place`.

    If the cache does not exist, it must be possible to create it.
    """
    existing = next(path for path in (place, *place.absolute().parents) if path.exists())
    folders = [place / "builds", place / "blobs"]
    return all(os.access(path, os.W_OK | os.X_OK) for path in (existing, *folders) if path.exists())


def require_own(place: Path) -> None:
    """Raise MissingError if another user can write to the cache at `place`.

    Builds in the cache are executed. The agent checks the same (agent/src/cache.rs).
    """
    with contextlib.suppress(FileNotFoundError):
        status = place.stat()
        if status.st_uid not in (os.geteuid(), 0) or status.st_mode & 0o002:
            raise MissingError(
                f"{place}: the cache folder belongs to user {status.st_uid} (mode "
                f"{status.st_mode & 0o777:o}), who could put programs into it; export "
                "WATTWIRE_CACHE=FOLDER, a folder that only this user can write to"
            )


@dataclass(frozen=True)
class Entry:
    """A build or blob with its size and the number of days since its last use."""

    path: Path
    size_bytes: int
    age_days: float


def entries(place: Path, now_s: float | None = None) -> list[Entry]:
    """Return all builds, blobs, trees and compiler caches; entries that disappear are omitted."""
    now = time.time() if now_s is None else now_s
    present = []
    for kind in ("builds", "blobs", TREES, COMPILERS):
        with contextlib.suppress(OSError):
            for path in sorted((place / kind).iterdir()):
                if kind != "blobs" and not path.is_dir():
                    continue  # removed with the build
                with contextlib.suppress(OSError):
                    marker = path / MARKER
                    stamp = marker if marker.exists() else path
                    age_s = max(0.0, now - stamp.stat().st_mtime)
                    present.append(Entry(path, _size(path), age_s / DAY_S))
    return present


def _size(path: Path) -> int:
    if not path.is_dir():
        return path.lstat().st_blocks * 512
    total = 0
    for root, folders, files in os.walk(path):
        for name in (*folders, *files):
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(root, name)).st_blocks * 512
    return total


def remove(entry: Entry) -> bool:
    """Remove a build with its log and measurements, or a blob.

    Return False if the entry is being built.
    """
    if not entry.path.is_dir():
        entry.path.unlink(missing_ok=True)
        return True
    lock = entry.path.with_name(f"{entry.path.name}.lock")
    with _locked(lock) as acquired:
        if not acquired:
            return False
        # The marker is removed first, because a partly removed build must never appear complete.
        (entry.path / MARKER).unlink(missing_ok=True)
        shutil.rmtree(entry.path)
        entry.path.with_name(f"{entry.path.name}.log").unlink(missing_ok=True)
        for kind in BUILD_NOTES:
            note = entry.path.parents[1] / kind / f"{entry.path.name}.json"
            note.unlink(missing_ok=True)
        # The lock file remains, because a waiting process would otherwise lock an unlinked file.
    return True


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Lock the file at `path` within the block, or yield False if another process has the lock."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
        return
    else:
        yield True
    finally:
        os.close(handle)


def agents_using(place: Path, proc: Path = Path("/proc")) -> list[int]:
    """Return the process ids of agents that may use the cache at `place`.

    Agents with an unreadable environment are included.
    """
    pids = []
    for directory in proc.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if _is_agent((directory / "stat").read_bytes()):
                agent_cache = _cache_of(directory)
                if agent_cache is None or agent_cache.resolve() == place.resolve():
                    pids.append(int(directory.name))
    return sorted(pids)


def _is_agent(stat: bytes) -> bool:
    """Return whether a process is alive and has the name of an agent.

    The name of its file is not relevant. `stat` is the content of /proc/PID/stat: `pid (name) state
    …`.
    """
    name, _, state = stat.partition(b"(")[2].rpartition(b") ")
    return name == AGENT and state[:1] not in (b"Z", b"X")


def _cache_of(process: Path) -> Path | None:
    """Return the cache folder of an agent, or None if its environment is unreadable."""
    try:
        pairs = (process / "environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return None
    try:
        return folder(dict(pair.split("=", 1) for pair in pairs if "=" in pair))
    except MissingError:  # such an agent has no cache
        return None
