"""Servers that answer requests in forked processes and are nevertheless one node.

The processes share memory with the start of the window, each process's last arrival, and its
counts at the end.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import threading
from collections.abc import Callable
from struct import Struct
from time import sleep
from typing import Any

from .constants import ROLE_CODES
from .core import Message
from .dialogue import LINES
from .kit import Kit
from .spec import MiddlewareFailed

PROCESSES_MAX = 1024
_PR_SET_PDEATHSIG = 1
_TIME = Struct("<q")
# Per process: whether it serves, its last arrival (ns), its counts, and its numbers of records.
_PLACE = Struct("<8q")


class _Window:
    """A child's view of its parent's dialogue: only the start of the window."""

    stop_ns = None

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory

    @property
    def start_ns(self) -> int | None:
        return _TIME.unpack_from(self._memory)[0] or None


class Processes:
    """The forked processes. The parent creates it; children call `enter`, `serve` and `leave`."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._parent = os.getpid()
        self._memory = mmap.mmap(-1, _TIME.size + PROCESSES_MAX * _PLACE.size)
        self._number = -1

    @property
    def is_child(self) -> bool:
        return os.getpid() != self._parent

    # --- in a child ------------------------------------------------------------------------

    def enter(self, number: int) -> None:
        """Begin to serve as child `number` (from 0). The child ends with its parent."""
        if number >= PROCESSES_MAX:
            raise MiddlewareFailed(
                f"process {number}: a run may have at most {PROCESSES_MAX} processes"
            )
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != self._parent:
            os._exit(5)  # the parent ended before prctl took effect
        os.close(LINES)  # only the parent writes lines (C-05)
        self._number = number
        self._kit._dialogue = _Window(self._memory)  # type: ignore[assignment]
        self._write(1, 0, 0, 0, 0, 0, 0, 0)

    def serve(self, data: Any) -> Message | None:
        """Do the same as `Kit.serve`, and store the arrival time for the parent."""
        reply = self._kit.serve(data)
        at = _TIME.size + self._number * _PLACE.size + 8
        _TIME.pack_into(self._memory, at, self._kit._arrival_ns)
        return reply

    def leave(self) -> None:
        """Write the child's samples, and its counts for the parent's DONE."""
        kit = self._kit
        if not self.is_child or self._number < 0:
            return
        recorder, spec = kit._recorder, kit.spec
        path = os.path.join(kit.out, f"samples-{self._number + 1}.bin")
        role = ROLE_CODES[spec["role"]]
        recorder.write(path, role, spec["node"], spec["payload.seed"])
        self._write(
            1, kit._arrival_ns, kit.count_received(), kit._foreign, kit._corrupt, kit._probes,
            recorder.recorded, recorder.overflow,
        )  # fmt: skip

    def _write(self, *fields: int) -> None:
        _PLACE.pack_into(self._memory, _TIME.size + self._number * _PLACE.size, *fields)

    # --- in the parent ---------------------------------------------------------------------

    def _places(self) -> list[tuple[int, ...]]:
        return list(_PLACE.iter_unpack(self._memory[_TIME.size :]))

    def attend(self, count: int, ready: Callable[[], None], end: Callable[[], None]) -> None:
        """Start a thread that follows the run.

        It calls `ready()` when `count` children serve, passes GO's time to all of them, and calls
        `end()` when receivers may end (C-15).
        """

        def poll(timeout_s: float) -> None:
            sleep(timeout_s)
            self._kit._arrival_ns = max(place[1] for place in self._places())

        def watch() -> None:
            while sum(place[0] for place in self._places()) < count:
                sleep(0.001)  # the harness bounds this by ready_timeout_ms
            ready()
            _TIME.pack_into(self._memory, 0, self._kit.wait_go())
            self._kit.poll(poll)
            end()

        threading.Thread(target=watch, name="wattwire-end", daemon=True).start()

    def collect(self) -> None:
        """Add the children's counts to the parent's DONE."""
        for _, _, received, foreign, corrupt, probes, recorded, overflow in self._places():
            self._kit.add_counts(received, foreign, corrupt, probes, recorded, overflow)
