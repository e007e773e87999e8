"""Files in /dev/shm that killed nodes leave there."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Set
from pathlib import Path

SHARED_MEMORY = "/dev/shm"
COMPANION_NAME_MIN = 8
"""Shorter names do not identify an owner reliably."""
_MAPPED = re.compile(rf"\S+ \S+ \S+ \S+ +(\d+) +{SHARED_MEMORY}/(.+)")


def shared_files() -> set[tuple[str, int]]:
    """Return the (name, inode) of each file in /dev/shm."""
    files = set()
    with contextlib.suppress(OSError):
        files = {(entry.name, entry.inode()) for entry in os.scandir(SHARED_MEMORY)}
    return files


def session_of(leader: int) -> list[int]:
    """Return the pids of a session."""
    pids = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.getsid(int(pid)) == leader:
                pids.append(int(pid))
    return pids


def used_by(pids: Iterable[int]) -> set[tuple[str, int]]:
    """Return the (name, inode) of each file in /dev/shm that these processes map or have open."""
    used: set[tuple[str, int]] = set()
    for pid in pids:
        process = Path(f"/proc/{pid}")
        with contextlib.suppress(OSError):
            for line in (process / "maps").read_text("utf-8", "replace").splitlines():
                if mapped := _MAPPED.match(line):
                    used.add((mapped[2], int(mapped[1])))
        with contextlib.suppress(OSError):
            for link in (process / "fd").iterdir():
                with contextlib.suppress(OSError):
                    target = os.readlink(link)
                    if target.startswith(f"{SHARED_MEMORY}/"):
                        used.add((target.removeprefix(f"{SHARED_MEMORY}/"), link.stat().st_ino))
    return used


class SharedMemory:
    """The files in /dev/shm of a group of nodes, which killed nodes leave there.

    A file belongs to a group if it did not exist before the group, and if a node mapped or opened
    it. Locks and semaphores are open only briefly, so files named after it belong to it, too.
    """

    def __init__(self) -> None:
        self._before = shared_files()
        self._own: set[tuple[str, int]] = set()

    def observe(self, leader: int) -> set[tuple[str, int]]:
        """Record the new files that a node's session uses, and those named after them.

        Return the files that are recorded for the first time.
        """
        files = used_by(session_of(leader)) - self._before
        names = [name for name, _ in files if len(name) >= COMPANION_NAME_MIN]
        words = re.compile(rf"(?<![A-Za-z0-9])({'|'.join(map(re.escape, names))})(?![A-Za-z0-9])")
        if names:
            files |= {file for file in shared_files() - self._before if words.search(file[0])}
        files -= self._own
        self._own |= files
        return files

    def remove_unused(self) -> None:
        """Remove the recorded files that no process uses any more."""
        remove_unused(self._own)


def remove_unused(files: Set[tuple[str, int]]) -> None:
    """Remove those of these files that still exist and that no process uses."""
    left = files & shared_files()
    if left:
        pids = [int(pid) for pid in os.listdir("/proc") if pid.isdecimal()]
        for name, _ in left - used_by(pids):
            with contextlib.suppress(OSError):
                os.unlink(f"{SHARED_MEMORY}/{name}")
