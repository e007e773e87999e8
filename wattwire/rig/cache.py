"""The user's cache of builds, as the agent keeps it: where it is, how big, what may go."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from wattwire.model.paths import cache_folder as folder

MARKER = ".wattwire-complete"
TREES = "trees"
"""Sources of commits that were measured as variants; agents know nothing of them."""
COMPILERS = "compilers"
"""What compilers keep between builds, a folder each."""
AGENT = b"wattwire-agent"
"""What a serving agent calls itself, as `agent/src/own.rs` has it."""
DAY_S = 86_400.0


def writable(place: Path) -> bool:
    """Whether files can be made in the cache at `place`, or where it would be made."""
    there = next(p for p in (place, *place.absolute().parents) if p.exists())
    parts = [place / "builds", place / "blobs"]
    return all(os.access(p, os.W_OK | os.X_OK) for p in (there, *parts) if p.exists())


@dataclass(frozen=True)
class Entry:
    """A build or a blob: its size, and for how many days nobody asked for it."""

    path: Path
    size_bytes: int
    age_days: float


def entries(place: Path, now_s: float | None = None) -> list[Entry]:
    """All builds, blobs, trees and compilers' own caches; one that vanishes is left out."""
    now = time.time() if now_s is None else now_s
    found = []
    for part in ("builds", "blobs", TREES, COMPILERS):
        with contextlib.suppress(OSError):
            for path in sorted((place / part).iterdir()):
                if part != "blobs" and not path.is_dir():
                    continue  # locks and logs go with their build
                with contextlib.suppress(OSError):
                    marker = path / MARKER
                    seen = marker if marker.exists() else path
                    age_s = max(0.0, now - seen.stat().st_mtime)
                    found.append(Entry(path, _size(path), age_s / DAY_S))
    return found


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
    """Remove a build with its log, or a blob; False where somebody is building it."""
    if not entry.path.is_dir():
        entry.path.unlink(missing_ok=True)
        return True
    lock = entry.path.with_name(f"{entry.path.name}.lock")
    with _locked(lock) as ours:
        if not ours:
            return False
        # The marker first: what is half removed must never look complete.
        (entry.path / MARKER).unlink(missing_ok=True)
        shutil.rmtree(entry.path)
        entry.path.with_name(f"{entry.path.name}.log").unlink(missing_ok=True)
        # The lock stays: whoever waits for it would otherwise hold a file that nobody sees.
    return True


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[bool]:
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
    """Running agents that may use the cache at `place`; one that cannot be looked into counts."""
    found = []
    for directory in proc.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if _is_agent((directory / "stat").read_bytes()):
                used = _cache_of(directory)
                if used is None or used.resolve() == place.resolve():
                    found.append(int(directory.name))
    return sorted(found)


def _is_agent(stat: bytes) -> bool:
    """Whether a process is alive and took the name that agents take, whatever their file is
    called; from /proc/PID/stat: `pid (name) state …`."""
    name, _, rest = stat.partition(b"(")[2].rpartition(b") ")
    return name == AGENT and rest[:1] not in (b"Z", b"X")


def _cache_of(process: Path) -> Path | None:
    """The cache folder of a running agent; None where its environment cannot be read."""
    try:
        pairs = (process / "environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return None
    return folder(dict(pair.split("=", 1) for pair in pairs if "=" in pair))
