"""Remove the shared memory that killed nodes leave in /dev/shm.

A file belongs to a group if it did not exist before the group, and if a node mapped or opened it.
Locks and semaphores are open only briefly, so files named after it belong to it, too.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

FOLDER = "/dev/shm"
COMPANION_NAME_MIN = 8
"""Shorter names do not identify an owner reliably."""
_MAPPED = re.compile(rf"\S+ \S+ \S+ \S+ +(\d+) +{FOLDER}/(.+)")


def files() -> set[tuple[str, int]]:
    """Return the (name, inode) of each file in /dev/shm."""
    found = set()
    with contextlib.suppress(OSError):
        found = {(entry.name, entry.inode()) for entry in os.scandir(FOLDER)}
    return found


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
                    if target.startswith(f"{FOLDER}/"):
                        used.add((target.removeprefix(f"{FOLDER}/"), link.stat().st_ino))
    return used


class SharedMemory:
    """The files of a group of nodes."""

    def __init__(self) -> None:
        self._before = files()
        self._own: set[tuple[str, int]] = set()

    def observe(self, leader: int) -> None:
        """Record the new files that a node's session uses, and those named after them."""
        new = used_by(session_of(leader)) - self._before
        self._own |= new
        names = [name for name, _ in new if len(name) >= COMPANION_NAME_MIN]
        words = re.compile(rf"(?<![A-Za-z0-9])({'|'.join(map(re.escape, names))})(?![A-Za-z0-9])")
        if names:
            self._own |= {file for file in files() - self._before if words.search(file[0])}

    def remove_unused(self) -> None:
        """Remove the recorded files that no process uses any more."""
        left = self._own & files()
        if left:
            pids = [int(pid) for pid in os.listdir("/proc") if pid.isdecimal()]
            for name, _ in left - used_by(pids):
                with contextlib.suppress(OSError):
                    os.unlink(f"{FOLDER}/{name}")
