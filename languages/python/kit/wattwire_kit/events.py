"""The schedule's front end for event loops and timers: from `tick` to `complete`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic_ns
from typing import Any

from .constants import FAILED, GOAL, MESSAGE, RESULT, TIMEOUT, UNKNOWN_NS, WARM_UP
from .core import NAP_NS, Message, Poll, SendFailed
from .dialogue import Dialogue
from .native_timer import NativeTimer
from .sending import Sending


class Slot:
    """One message of the schedule, from its tick to its reply; times are in ns."""

    __slots__ = ("accepted", "begin_ns", "intended_ns", "open", "seq")

    def __init__(self, seq: int, intended_ns: int) -> None:
        self.seq = seq
        self.intended_ns = intended_ns
        self.begin_ns = UNKNOWN_NS
        self.accepted = False
        self.open = True


class EventSender(Sending):
    """A sender with several open messages; any thread may complete them."""

    def __init__(
        self, spec: Mapping[str, Any], dialogue: Dialogue, process_start_ns: int, out: str = ""
    ) -> None:
        super().__init__(spec, dialogue, process_start_ns, out)
        self._outstanding_max = 1 if self._closed else spec["outstanding_max"]
        self._outstanding: dict[int, Slot] = {}

    def wait_timer_birth(self) -> None:
        """Return one period before the next slot, when the cell must create a periodic timer."""
        self.wait_go()
        assert isinstance(self._schedule, NativeTimer)
        self._schedule.wait_until(self._schedule.birth_ns(monotonic_ns()))

    def tick(self) -> Slot | None:
        """Return the slot that is due now, or None."""
        with self._lock:
            now_ns = monotonic_ns()
            self._expire(now_ns)
            if len(self._outstanding) >= self._outstanding_max:
                return None
            seq = self._schedule.take(now_ns)
            if seq < 0:
                return None
            return Slot(seq, UNKNOWN_NS if self._closed else self._schedule.intended_ns)

    def begin(self, slot: Slot) -> Message:
        """Stamp the buffer for this slot and return it; the next statement must send it."""
        with self._lock:
            self._outstanding[slot.seq] = slot
            self._sent += 1
        now_ns = monotonic_ns()
        slot.begin_ns = now_ns
        if self._closed:
            slot.intended_ns = now_ns
        if self._first_begin_ns is None:
            self._first_begin_ns = now_ns
        self._payload.stamp(slot.seq, now_ns)
        return self._payload.buffer

    def complete(self, slot: Slot, reply: Any = None) -> None:
        """Record that the message was sent (topic), or that its reply or result has arrived."""
        end_ns = monotonic_ns()
        with self._lock:
            if not slot.open:
                return
            if self._kind == MESSAGE:
                self._resolve(slot, end_ns, 0)
            elif end_ns - slot.begin_ns > self._timeout_ns:
                self._resolve(slot, UNKNOWN_NS, TIMEOUT)
            else:
                self._received += 1
                self._resolve(slot, end_ns, self._check_reply(slot.seq, reply))

    def fail(self, slot: Slot) -> None:
        """Record that the message was not sent, the goal was rejected, or the call failed."""
        with self._lock:
            if slot.open:
                self._sent -= self._kind == MESSAGE  # a failed call still counts as sent
                end_ns = monotonic_ns() if self._kind == MESSAGE else UNKNOWN_NS
                self._resolve(slot, end_ns, FAILED)

    def _resolve(self, slot: Slot, end_ns: int, flags: int) -> None:
        slot.open = False
        self._outstanding.pop(slot.seq, None)
        self._last_end_ns = monotonic_ns() if end_ns == UNKNOWN_NS else end_ns
        if self._kind == RESULT and not slot.accepted and flags & (FAILED | TIMEOUT):
            self._record_slot(slot, UNKNOWN_NS, GOAL, flags)
        self._record_slot(slot, end_ns, self._kind, flags)

    def _record_slot(self, slot: Slot, end_ns: int, kind: int, flags: int) -> None:
        flags |= WARM_UP if slot.intended_ns < self._warm_until_ns else 0
        times = (slot.intended_ns, slot.begin_ns, end_ns)
        self._recorder.add(slot.seq, *times, self._payload.length, self._peer, kind, flags)

    def _expire(self, now_ns: int) -> None:
        while self._outstanding:
            slot = next(iter(self._outstanding.values()))
            if slot.begin_ns + self._timeout_ns > now_ns:
                break
            self._resolve(slot, UNKNOWN_NS, TIMEOUT)

    def _time_out_open(self) -> None:
        for slot in list(self._outstanding.values()):
            self._resolve(slot, UNKNOWN_NS, TIMEOUT)

    def finished(self) -> bool:
        """Return whether the schedule is complete and no message is open, or STOP arrived.

        A call beyond the count may end after STOP (C-15).
        """
        with self._lock:
            now_ns = monotonic_ns()
            self._expire(now_ns)
            complete = self._schedule.is_complete(now_ns) and not self._outstanding
            return complete or self._schedule.is_interrupted()

    def wait_s(self) -> float:
        """Return the maximum time, in s, until an event loop must check the schedule again."""
        with self._lock:
            now_ns = monotonic_ns()
            next_ns = now_ns + NAP_NS
            if self._outstanding:
                oldest = next(iter(self._outstanding.values()))
                next_ns = min(next_ns, oldest.begin_ns + self._timeout_ns)
            if len(self._outstanding) < self._outstanding_max:
                next_ns = min(next_ns, self._schedule.look_ns())
            return max(0, next_ns - now_ns) / 1e9

    def drive(self, begin: Callable[[Slot, Message], object], poll: Poll) -> None:
        self.wait_go(poll)
        while not self.finished():
            slot = self.tick()
            if slot is None:
                poll(self.wait_s())
                continue
            try:
                begin(slot, self.begin(slot))
            except (SendFailed, OSError):
                self.fail(slot)
        self.end_schedule(poll)
