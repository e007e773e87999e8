"""Actions (C-30): goals, acceptances and feedback of action clients and action servers."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic_ns
from typing import Any

from .arrivals import Arrivals, as_message
from .constants import ACCEPT, CORRUPT, FEEDBACK, GOAL, PROBE, UNKNOWN_NS
from .core import Message
from .dialogue import Dialogue
from .events import EventSender, Slot
from .payload import COUNTER_MASK, FOREIGN
from .record import UNREADABLE


class Goal:
    """One goal at the action server."""

    __slots__ = ("begin_ns", "data", "feedback_ns", "flags", "probe", "seq")

    def __init__(self, seq: int, begin_ns: int, flags: int, data: Message) -> None:
        self.seq, self.begin_ns, self.flags, self.data = seq, begin_ns, flags, data
        self.feedback_ns = UNKNOWN_NS
        self.probe = seq & COUNTER_MASK == PROBE


class ActionClient(EventSender):
    """An action client; each goal is a slot of the schedule, and its result is the slot's reply."""

    def accepted(self, slot: Slot) -> None:
        end_ns = monotonic_ns()
        with self._lock:
            if slot.open and not slot.accepted:
                slot.accepted = True
                self._record_slot(slot, end_ns, GOAL, 0)

    def feedback(self, data: Any, slot: Slot | None = None) -> None:
        """Record feedback; the first statement of the feedback callback.

        `slot` is the goal; literals and payloads without a sequence do not identify it.
        """
        now_ns = monotonic_ns()
        data = as_message(data)
        with self._lock:
            verdict, seq, begin_ns = self._payload.check(data)
            if slot is not None and not self.carries_seq:
                seq = slot.seq
            self._foreign += verdict == FOREIGN
            self._corrupt += verdict == CORRUPT
            if verdict != FOREIGN and seq is not None and seq & COUNTER_MASK != PROBE:
                self._record(seq, (begin_ns, now_ns), len(data), FEEDBACK, verdict)


class ActionServer(Arrivals):
    """An action server; the same thread takes, accepts and finishes a goal."""

    def __init__(
        self, spec: Mapping[str, Any], dialogue: Dialogue, process_start_ns: int, out: str = ""
    ) -> None:
        super().__init__(spec, dialogue, process_start_ns, out)
        self.feedback_count: int = spec["action.feedback"]

    def goal(self, data: Any) -> Goal | None:
        """Return the arriving goal, or None if it is foreign or unreadable."""
        now_ns = monotonic_ns()
        data = as_message(data)
        with self._lock:
            arrival = self._arrive(data, now_ns)
        if arrival is None or data is UNREADABLE:
            return None
        return Goal(PROBE if arrival[0] is None else arrival[0], now_ns, arrival[2], data)

    def accept(self, goal: Goal) -> None:
        """Record that the acceptance was handed over."""
        self._record_goal(goal, (goal.begin_ns, monotonic_ns()), ACCEPT)

    def feedback_begin(self, goal: Goal) -> Message:
        """Return the stamped feedback buffer; the next statement must publish it."""
        goal.feedback_ns = monotonic_ns()
        self._payload.stamp(goal.seq, goal.feedback_ns)
        return self._payload.buffer

    def feedback_sent(self, goal: Goal) -> None:
        self._record_goal(goal, (goal.feedback_ns, monotonic_ns()), FEEDBACK)

    def result(self, goal: Goal) -> Message:
        return self._replies.answer(goal.data)

    def finish_goal(self, goal: Goal) -> None:
        """Record that the result was handed over."""
        self._record_goal(goal, (goal.begin_ns, monotonic_ns()), GOAL)

    def _record_goal(self, goal: Goal, times: tuple[int, int], kind: int) -> None:
        if not goal.probe:
            length = self._payload.length if kind == FEEDBACK else len(goal.data)
            self._record(goal.seq, times, length, kind, goal.flags)
