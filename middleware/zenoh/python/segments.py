"""Removes shared memory, which would remain because the kit ends the process with _exit."""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import suppress

SEGMENT = re.compile(r"/dev/shm/\d+\.zenoh")


def remove_own() -> None:
    """Remove the files of shared memory that no other process uses.

    Zenoh holds a shared lock on every segment that it uses, and would do the same at exit.
    """
    for link in os.scandir("/proc/self/fd"):
        with suppress(OSError):
            if SEGMENT.fullmatch(path := os.readlink(link.path)):
                fcntl.flock(int(link.name), fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(path)
