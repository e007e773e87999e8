"""A sender's schedule (C-10, C-11): the next message and its due time."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic_ns, sleep
from typing import Any

from .constants import UNKNOWN_NS
from .dialogue import Dialogue

NEVER_NS = 2**63
NOT_DUE = -1
_SLEEP_NS_MAX = 1_000_000_000


class Schedule:
    """The schedule of both front ends, blocking.py and events.py; times are in ns.

    One thread takes messages; any thread may check whether the schedule is complete.
    """

    def __init__(self, spec: Mapping[str, Any], dialogue: Dialogue) -> None:
        self.is_closed = spec["loop"] == "closed"
        self.period_ns: int = spec["period_ns"]
        self.scheduled = spec["count"] if self.is_closed else _open_count(spec)
        self.skipped = 0
        self.due_ns = NEVER_NS
        """Due time of the next message; in a closed loop the start, because each is due at once."""
        self.intended_ns = UNKNOWN_NS
        """Due time of the last taken message."""
        self._seq = self._first_seq = spec["node"] << 48
        self._counted_seq = self._first_seq + self.scheduled
        self._end_seq = self._counted_seq + spec["count_beyond"]
        # The sequence at which COUNTED or the end follows instead of a message.
        self._mark_seq = self._counted_seq
        self._phase_ns: int = 0 if self.is_closed else spec["phase_ns"]
        self._step_ns = 0 if self.is_closed else self.period_ns
        self._bound_ns: int = spec["duration_ns"] + spec["overrun_ns"]
        self._spin_ns: int = spec["spin_ns"]
        self._start_ns = self._last_ns = NEVER_NS
        self._complete = False
        self._dialogue = dialogue

    @property
    def taken(self) -> int:
        """The number of taken messages, including slots that a native timer skipped."""
        return self._seq - self._first_seq

    def start(self, start_ns: int) -> None:
        self._start_ns = start_ns
        self.due_ns = start_ns + self._phase_ns
        self._last_ns = NEVER_NS if self.is_closed else start_ns + self._bound_ns

    def take(self, now_ns: int) -> int:
        """Take the message that is due now and return its sequence, or NOT_DUE."""
        due_ns, seq = self.due_ns, self._seq
        if now_ns < due_ns:
            return NOT_DUE
        if now_ns > self._last_ns or self._dialogue.stop_ns is not None:
            self._complete = True
            return NOT_DUE
        if seq == self._mark_seq:
            self._pass_mark()
            return NOT_DUE
        self._seq = seq + 1
        self.intended_ns = due_ns
        self.due_ns = due_ns + self._step_ns
        return seq

    def _pass_mark(self) -> None:
        if self._mark_seq == self._end_seq:
            self._complete = True
            return
        # Printing takes long, so the call begins only at the next reading of the clock.
        self._dialogue.line("COUNTED", {})
        self._mark_seq = self._end_seq

    def is_complete(self, now_ns: int) -> bool:
        """Return whether no message follows: all were taken, time is over, or STOP arrived."""
        if self._seq >= self._end_seq or now_ns > self._last_ns or self._dialogue.stop.is_set():
            self._complete = True
        return self._complete

    def is_interrupted(self) -> bool:
        """Return whether STOP ends open calls; a call beyond `count` may finish (C-15)."""
        return self._dialogue.stop.is_set() and self._seq <= self._counted_seq

    def look_ns(self) -> int:
        """Return when an event loop must check the schedule: `spin_ns` before a due time."""
        if self._complete:
            return NEVER_NS
        return self.due_ns if self.is_closed else self.due_ns - self._spin_ns

    def wait_until(self, due_ns: int) -> bool:
        """Sleep, then spin for the last `spin_ns`; return False if STOP arrives first."""
        while not self._dialogue.stop.is_set():
            left_ns = due_ns - monotonic_ns() - self._spin_ns
            if left_ns <= 0:
                while monotonic_ns() < due_ns:
                    pass
                return True
            sleep(min(left_ns, _SLEEP_NS_MAX) / 1e9)
        return False


def _open_count(spec: Mapping[str, Any]) -> int:
    left_ns: int = spec["duration_ns"] - spec["phase_ns"]
    return max(0, -(-left_ns // spec["period_ns"]))
