"""The part of senders and clients that both front ends share: the schedule and SENT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .arrivals import Arrivals
from .constants import CALL, MESSAGE, RESULT
from .core import Poll
from .dialogue import Dialogue
from .native_timer import NativeTimer
from .schedule import NEVER_NS, Schedule

KINDS = {"topic": MESSAGE, "pipeline": MESSAGE, "action": RESULT}


class Sending(Arrivals):
    """A sender's schedule, and the SENT line after it."""

    def __init__(
        self, spec: Mapping[str, Any], dialogue: Dialogue, process_start_ns: int, out: str = ""
    ) -> None:
        super().__init__(spec, dialogue, process_start_ns, out)
        self._kind = KINDS.get(spec["pattern"], CALL)
        self._timeout_ns: int = spec["timeout_ns"]
        self._closed = spec["loop"] == "closed"
        native = spec["pacing"] == "native" and not self._closed
        self._schedule = (NativeTimer if native else Schedule)(spec, dialogue)
        self._first_begin_ns: int | None = None
        self._last_end_ns: int | None = None

    def _learn_start(self) -> None:
        if self._start_ns == NEVER_NS:
            super()._learn_start()
            if self._start_ns != NEVER_NS:
                self._schedule.start(self._start_ns)

    def _time_out_open(self) -> None:
        """Record the calls that are still open as timed out."""

    def end_schedule(self, poll: Poll | None = None) -> None:
        """Print SENT (C-14) and wait for STOP."""
        self._dialogue.line("SENT", self._sent_fields())
        self.wait_stop(poll)

    def _sent_fields(self) -> dict[str, Any]:
        """Return the fields of SENT, and record calls that are still open."""
        schedule = self._schedule
        with self._lock:
            self._time_out_open()
            fields = {"begin_ns": self._first_begin_ns, "end_ns": self._last_end_ns}
            counts = {"scheduled": schedule.scheduled, "skipped": schedule.skipped}
        return {**fields, "sent": self._sent, **counts}
