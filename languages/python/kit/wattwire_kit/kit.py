"""What a cell calls: see languages/python/README.md for the whole API and its order."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from time import monotonic_ns, sleep
from typing import Any

from .constants import (
    ACCEPT,
    CALL,
    CORRUPT,
    FAILED,
    FEEDBACK,
    GOAL,
    GUARANTEES,
    MESSAGE,
    PROBE,
    RESULT,
    ROLE_CODES,
    SENDERS,
    TIMEOUT,
    UNKNOWN_NS,
    UNKNOWN_PEER,
    WARM_UP,
)
from .dialogue import Dialogue
from .payload import COUNTER_MASK, FOREIGN, OK, Payload
from .record import UNREADABLE, Record, RecordPayload, answer
from .recorder import Recorder, pack_record
from .spec import MiddlewareFailed

_NAP_NS = 100_000_000  # how long a wait may last before it looks for STOP
Poll = Callable[[float], object]
# What goes out is one object that is rewritten for each message; what came in may be any of these.
Message = Any  # bytearray, or a Record where payload.encoding is record
Call = Callable[[Message, float], Any]


class SendFailed(Exception):
    """The middleware did not take this message, or the call failed (C-36); the run goes on."""


class Slot:
    """One message of the schedule, from its tick to its reply. Times in ns."""

    __slots__ = ("accepted", "begin_ns", "intended_ns", "open", "seq")

    def __init__(self, seq: int, intended_ns: int) -> None:
        self.seq = seq
        self.intended_ns = intended_ns
        self.begin_ns = UNKNOWN_NS
        self.accepted = False
        self.open = True


class Goal:
    """One goal at the action server."""

    __slots__ = ("begin_ns", "data", "feedback_ns", "flags", "probe", "seq")

    def __init__(self, seq: int, begin_ns: int, flags: int, data: Message) -> None:
        self.seq, self.begin_ns, self.flags, self.data = seq, begin_ns, flags, data
        self.feedback_ns = UNKNOWN_NS
        self.probe = seq & COUNTER_MASK == PROBE


class Kit:
    """One node of one run. Made by `run`; a role function gets it."""

    now = staticmethod(monotonic_ns)

    def __init__(
        self, spec: Mapping[str, Any], dialogue: Dialogue, process_start_ns: int, out: str = ""
    ) -> None:
        self.spec = spec
        self.out = out
        self.encoding: str = spec["payload.encoding"]
        self.text = self.encoding == "text"
        self.period_ns: int = spec["period_ns"]
        self.feedback_count: int = spec["action.feedback"]
        self._dialogue = dialogue
        self._process_start_ns = process_start_ns
        self._role: str = spec["role"]
        # A sender's arrivals are replies to itself.
        nodes = [spec["node"]] if self._role in SENDERS else spec["peers.nodes"]
        shape: Any = RecordPayload if self.encoding == "record" else Payload
        self._payload = shape(spec, nodes)
        self.carries_seq = self._payload.carries_seq
        self._recorder = Recorder(spec["record.capacity"])
        self._lock = threading.RLock()
        self._pending = threading.local()
        peers = spec["peers.nodes"]
        self._peer = peers[0] if len(peers) == 1 else UNKNOWN_PEER
        self._kind = {"topic": MESSAGE, "action": RESULT}.get(spec["pattern"], CALL)
        self._reply_literal = spec["reply.literal"].encode()
        self._ack_length = 16 if self.text else 8
        self._timeout_ns = spec["timeout_ns"]
        self._closed = spec["loop"] == "closed"
        self._native = spec["pacing"] == "native" and not self._closed
        self._outstanding_max = 1 if self._closed else spec["outstanding_max"]
        self._start_ns = self._warm_until_ns = self._last_ns = 2**63
        self._scheduled = spec["count"] if self._closed else self._open_count()
        self._most = self._scheduled + spec["count_beyond"]
        self._next = self._skipped = self._sent = self._received = 0
        self._foreign = self._corrupt = self._probes = 0
        self._through = False
        self._outstanding: dict[int, Slot] = {}
        self._current_seq = -1
        self._first_begin_ns: int | None = None
        self._last_end_ns: int | None = None
        self._arrival_ns = 0
        # Counted by whole arrivals without the lock, as next() is one step of the interpreter.
        self._arrivals = itertools.count()

    def _open_count(self) -> int:
        left_ns: int = self.spec["duration_ns"] - self.spec["phase_ns"]
        return max(0, -(-left_ns // self.period_ns))

    def setting(self, name: str) -> Any:
        return self.spec[f"settings.{name}"]

    # --- opening ---------------------------------------------------------------------------

    def listening(self, endpoints: Sequence[str]) -> None:
        self._dialogue.line("LISTENING", {"endpoints": list(endpoints)})

    def _ready_deadline_ns(self) -> int:
        return self._process_start_ns + self.spec["ready_timeout_ms"] * 1_000_000

    def await_peers(self, count_now: Callable[[], int], poll: Poll | None = None) -> int:
        """Waits until `count_now()` reaches peers.count; returns the ns it took."""
        begin_ns = monotonic_ns()
        while (found := count_now()) < self.spec["peers.count"]:
            if monotonic_ns() > self._ready_deadline_ns():
                raise MiddlewareFailed(
                    f"matched {found} of {self.spec['peers.count']} peers within "
                    f"ready_timeout_ms = {self.spec['ready_timeout_ms']}; are they running?"
                )
            (poll or sleep)(0.001)
        return monotonic_ns() - begin_ns

    def probe(self, call: Call) -> int:
        """Calls until a reply comes (C-07); returns the ns it took."""
        begin_ns, why = monotonic_ns(), ""
        while (left_ns := self._ready_deadline_ns() - monotonic_ns()) > 0:
            self._current_seq = self.spec["node"] << 48 | PROBE
            self._payload.stamp(self._current_seq, monotonic_ns())
            self._probes += 1
            try:
                if call(self._payload.buffer, min(left_ns / 1e9, 0.25)) is not None:
                    return monotonic_ns() - begin_ns
            except (SendFailed, OSError) as error:
                why = f"; the last one: {error}"  # not there yet, or never: then this tells
            sleep(0.005)
        limit = f"ready_timeout_ms = {self.spec['ready_timeout_ms']}"
        raise MiddlewareFailed(f"no reply to a probe within {limit}{why}")

    def ready(
        self,
        matched: int | None,
        library: tuple[str, str, str],
        effective: Mapping[str, Any],
        guarantee: tuple[str, str, str],
        discovery_ns: int | None = None,
    ) -> None:
        for found, allowed in zip(guarantee, GUARANTEES, strict=True):
            if found not in allowed:
                raise ValueError(f"guarantee: found {found!r}; allowed: {', '.join(allowed)}")
        fields = {
            "matched": matched,
            "startup_ns": monotonic_ns() - self._process_start_ns,
            "discovery_ns": discovery_ns,
            "library": dict(zip(("name", "version", "build"), library, strict=True)),
            "effective": dict(effective),
            "guarantee": dict(zip(("delivery", "ordering", "overload"), guarantee, strict=True)),
        }
        self._dialogue.line("READY", fields)

    def wait_go(self, poll: Poll | None = None) -> int:
        """Returns the window's start in ns, or 0 where STOP came first."""
        while self._dialogue.start_ns is None and self._dialogue.stop_ns is None:
            if poll is not None:
                poll(0.01)
            else:
                self._dialogue.go_or_stop.wait()
        self._learn_start()
        return self._dialogue.start_ns or 0

    def _learn_start(self) -> None:
        if self._dialogue.start_ns is not None and self._start_ns == 2**63:
            self._start_ns = self._dialogue.start_ns
            self._warm_until_ns = self._start_ns + self.spec["warmup_ns"]
            bound_ns = self.spec["duration_ns"] + self.spec["overrun_ns"]
            self._last_ns = 2**63 if self._closed else self._start_ns + bound_ns

    # --- schedule --------------------------------------------------------------------------

    def _sleep_until(self, due_ns: int) -> bool:
        """False where STOP came first."""
        spin_ns = self.spec["spin_ns"]
        while not self._dialogue.stop.is_set():
            left_ns = due_ns - monotonic_ns() - spin_ns
            if left_ns <= 0:
                while monotonic_ns() < due_ns:
                    pass
                return True
            sleep(min(left_ns, 1_000_000_000) / 1e9)
        return False

    def wait_timer_birth(self) -> None:
        """Returns one period before the next slot: when a periodic timer must be created."""
        first_ns = self.wait_go() + self.spec["phase_ns"] - self.period_ns
        behind_ns = max(0, monotonic_ns() - first_ns)
        self._sleep_until(first_ns + -(-behind_ns // self.period_ns) * self.period_ns)

    def _due_ns(self) -> int:
        return self._start_ns + self.spec["phase_ns"] + self._next * self.period_ns

    def tick(self) -> Slot | None:
        """The slot that is to be sent now, if there is one."""
        with self._lock:
            now_ns = monotonic_ns()
            self._expire(now_ns)
            if self._is_through(now_ns) or len(self._outstanding) >= self._outstanding_max:
                return None
            if now_ns < self._start_ns:
                return None
            if self._native:
                late_ns = now_ns - self._due_ns() + self.period_ns // 2
                ahead = min(late_ns // self.period_ns, self._scheduled - self._next)
                if ahead < 0:
                    return None
                self._skipped += ahead
                self._next += ahead
                if self._is_through(now_ns):
                    return None
            elif not self._closed and now_ns < self._due_ns():
                return None
            intended_ns = UNKNOWN_NS if self._closed else self._due_ns()
            if self._next == self._scheduled:
                self._dialogue.line("COUNTED", {})
            slot = Slot(self.spec["node"] << 48 | self._next, intended_ns)
            self._next += 1
            return slot

    def _is_through(self, now_ns: int) -> bool:
        if self._next >= self._most or self._dialogue.stop.is_set() or now_ns > self._last_ns:
            self._through = True
        return self._through

    def begin(self, slot: Slot) -> Message:
        """Stamps the buffer for this slot; the next statement sends it."""
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
        """The message was taken (topic), or its reply or result is in hand."""
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
        """The message was not taken, the goal was rejected, or the call failed (C-36)."""
        with self._lock:
            if slot.open:
                self._sent -= self._kind == MESSAGE  # a call was made, however it ended
                end_ns = monotonic_ns() if self._kind == MESSAGE else UNKNOWN_NS
                self._resolve(slot, end_ns, FAILED)

    def accepted(self, slot: Slot) -> None:
        end_ns = monotonic_ns()
        with self._lock:
            if slot.open and not slot.accepted:
                slot.accepted = True
                self._record_slot(slot, end_ns, GOAL, 0)

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

    def finished(self) -> bool:
        """True when the schedule is through and every message is resolved, or STOP came.

        A call beyond the count may end after STOP (C-15).
        """
        with self._lock:
            now_ns = monotonic_ns()
            self._expire(now_ns)
            through = self._is_through(now_ns) and not self._outstanding
            return through or (self._dialogue.stop.is_set() and self._next <= self._scheduled)

    def wait_s(self) -> float:
        """How long an event loop may wait before it must look at the schedule again."""
        with self._lock:
            now_ns = monotonic_ns()
            next_ns = now_ns + _NAP_NS
            if self._outstanding:
                oldest = next(iter(self._outstanding.values()))
                next_ns = min(next_ns, oldest.begin_ns + self._timeout_ns)
            if not self._through and len(self._outstanding) < self._outstanding_max:
                due_ns = self._start_ns if self._closed else self._due_ns() - self.spec["spin_ns"]
                next_ns = next_ns if self._native else min(next_ns, due_ns)
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

    def send_all(self, send: Callable[[Message], object]) -> None:
        recorder, buffer = self._recorder, self._payload.buffer
        # Names looked up once: what this loop costs, a sender's messages cost.
        places, room, data = recorder.places, recorder.end, recorder.data
        length, peer = self._payload.length, self._peer
        end_ns = None
        for seq, due_ns, begin_ns in self._slots():
            flags = WARM_UP if due_ns < self._warm_until_ns else 0
            try:
                send(buffer)
            except (SendFailed, OSError):
                flags |= FAILED
                self._sent -= 1
            end_ns = monotonic_ns()
            if (at := next(places)) < room:
                pack_record(data, at, seq, due_ns, begin_ns, end_ns, length, peer, MESSAGE, flags)
        self._last_end_ns = end_ns
        self.end_schedule()

    def call_all(self, call: Call) -> None:
        length, peer, kind = self._payload.length, self._peer, self._kind
        for seq, intended_ns, begin_ns in self._slots():
            end_ns, flags = self._call_reply(call, begin_ns)
            if intended_ns < self._warm_until_ns:
                flags |= WARM_UP
            self._recorder.add(seq, intended_ns, begin_ns, end_ns, length, peer, kind, flags)
            self._last_end_ns = monotonic_ns() if end_ns == UNKNOWN_NS else end_ns
        self.end_schedule()

    def _slots(self) -> Iterator[tuple[int, int, int]]:
        """The blocking schedule: (sequence, intended, begin) of each message when it is due.

        The buffer is stamped; the next statement sends it. Ends early at STOP and overrun.
        """
        if self._native:
            raise NotImplementedError("a blocking sender cannot be paced by a middleware's timer")
        self.wait_go()
        payload, dialogue, last_ns = self._payload, self._dialogue, self._last_ns
        closed, period_ns = self._closed, self.period_ns
        buffer, short = payload.buffer, payload.short
        write, fill = (payload.write, payload.fill) if short else (None, b"")
        due_ns = self._start_ns if closed else self._due_ns()
        seq = first_seq = self.spec["node"] << 48
        counted_seq, end_seq = seq + self._scheduled, seq + self._most
        while seq < end_seq:
            begin_ns = monotonic_ns()
            if begin_ns < due_ns:
                if not self._sleep_until(due_ns):
                    break
                begin_ns = monotonic_ns()
            if begin_ns > last_ns or dialogue.stop_ns is not None:
                break
            if seq == counted_seq:
                dialogue.line("COUNTED", {})
                begin_ns = monotonic_ns()
            if self._first_begin_ns is None:
                self._first_begin_ns = begin_ns
            self._current_seq = seq
            if short:  # as stamp does, without its call
                write(buffer, 0, seq, begin_ns, fill, seq)
            else:
                payload.stamp(seq, begin_ns)
            yield seq, begin_ns if closed else due_ns, begin_ns
            due_ns += period_ns
            seq += 1
        self._sent += seq - first_seq  # less messages not taken, which send_all took off
        self._through = True

    def _call_reply(self, call: Call, begin_ns: int) -> tuple[int, int]:
        """(end, flags) of one blocking call."""
        try:
            reply = call(self._payload.buffer, self._timeout_ns / 1e9)
        except (SendFailed, OSError):
            return UNKNOWN_NS, FAILED
        end_ns = monotonic_ns()
        if reply is None or end_ns - begin_ns > self._timeout_ns:
            return UNKNOWN_NS, TIMEOUT
        self._received += 1
        return end_ns, self._check_reply(self._current_seq, reply)

    def end_schedule(self, poll: Poll | None = None) -> None:
        """Prints SENT (C-14) and waits for STOP."""
        with self._lock:
            for slot in list(self._outstanding.values()):
                self._resolve(slot, UNKNOWN_NS, TIMEOUT)
            fields = {"begin_ns": self._first_begin_ns, "end_ns": self._last_end_ns}
            counts = {"scheduled": self._scheduled, "skipped": self._skipped}
        self._dialogue.line("SENT", {**fields, "sent": self._sent, **counts})
        self.wait_stop(poll)

    def wait_stop(self, poll: Poll | None = None) -> None:
        while not self._dialogue.stop.is_set():
            if poll is None:
                self._dialogue.stop.wait()
            else:
                poll(0.1)

    # --- arrivals --------------------------------------------------------------------------

    @staticmethod
    def _bytes(data: Any) -> Message:
        if type(data) is bytes or type(data) is bytearray or type(data) is Record:
            return data
        return data.encode("utf-8", "replace") if isinstance(data, str) else bytes(data)

    def _arrive(self, data: Message, now_ns: int) -> tuple[int | None, int, int] | None:
        """(sequence or None, send time, flags) of what is recorded; None of what is foreign."""
        if self._start_ns == 2**63:
            self._learn_start()
        if not self.carries_seq and now_ns < self._start_ns:
            self._probes += 1  # nothing but a probe comes before the start
            return PROBE, UNKNOWN_NS, 0
        verdict, seq, begin_ns = self._payload.check(data)
        if verdict == FOREIGN:
            self._foreign += 1
            return None
        if seq is not None and seq & COUNTER_MASK == PROBE and self.carries_seq:
            self._probes += 1
            return PROBE, UNKNOWN_NS, 0
        self._arrival_ns = now_ns
        if verdict == CORRUPT:
            self._corrupt += 1
        if seq is not None:
            self._received += 1
        return seq, begin_ns, verdict

    def _record(self, seq: int, times: tuple[int, int], length: int, kind: int, flags: int) -> None:
        flags |= WARM_UP if times[1] < self._warm_until_ns else 0
        peer = seq >> 48 if self._role not in SENDERS else self._peer
        self._recorder.add(seq, UNKNOWN_NS, *times, length, peer, kind, flags)

    def received(self, data: Any) -> None:
        """A subscriber's callback was entered with this payload."""
        now_ns = monotonic_ns()
        if type(data) is not bytes:
            data = self._bytes(data)
        payload = self._payload
        if payload.plain and len(data) == payload.length and now_ns >= self._start_ns:
            # The common case, without the lock and the calls that the general one needs.
            seq, begin_ns, looked_at, trailer = payload.read(data)
            peer = seq >> 48
            whole = trailer == seq and looked_at == payload.looked_at and peer in payload.nodes
            if whole and seq & COUNTER_MASK != PROBE:
                self._arrival_ns = now_ns
                next(self._arrivals)
                flags = WARM_UP if now_ns < self._warm_until_ns else 0
                recorder = self._recorder
                if (at := next(recorder.places)) < recorder.end:
                    pack_record(
                        recorder.data, at, seq, UNKNOWN_NS, begin_ns, now_ns,
                        payload.length, peer, MESSAGE, flags,
                    )  # fmt: skip
                return
        with self._lock:
            seen = self._arrive(data, now_ns)
            if seen is not None and seen[0] is not None and seen[0] != PROBE:
                self._record(seen[0], (seen[1], now_ns), len(data), MESSAGE, seen[2])

    def _reply(self, data: Message) -> Message:
        if self.spec["reply"] == "echo":
            return data
        if self.encoding == "record":
            return answer(self.spec["reply"], data, self.spec["reply.literal"])
        return data[: self._ack_length] if self.spec["reply"] == "ack" else self._reply_literal

    def serve(self, data: Any) -> Message | None:
        """The reply to a request in hand; None where the request is foreign or unreadable."""
        now_ns = monotonic_ns()
        data = self._bytes(data)
        with self._lock:
            seen = self._arrive(data, now_ns)
        self._pending.call = None
        if seen is None or data is UNREADABLE:
            return None
        if seen[0] is not None and seen[0] != PROBE:
            self._pending.call = (seen[0], now_ns, len(data), seen[2])
        return self._reply(data)

    def served(self) -> None:
        """The reply of this thread's last `serve` was handed over."""
        end_ns = monotonic_ns()
        if self._pending.call is not None:
            seq, begin_ns, length, flags = self._pending.call
            self._pending.call = None
            self._record(seq, (begin_ns, end_ns), length, CALL, flags)

    def _check_reply(self, seq: int, reply: Any) -> int:
        reply = self._bytes(reply)
        kind = self.spec["reply"]
        if kind == "echo" and self.carries_seq:
            verdict, found, _ = self._payload.check(reply)
            good = verdict == OK and found == seq
        elif self.encoding == "record":
            # The send time is not compared, as it is not in an echo: the next call restamps it.
            due = Record(seq, reply.send_ns, trailer_seq=seq)
            good = reply == answer(kind, due, self.spec["reply.literal"])
            good = good and reply is not UNREADABLE
        elif kind == "literal":
            good = reply == self._reply_literal
        else:
            # Without a whole sequence there is no send time either: all bytes are known.
            sent = self._payload.literal or self._header(seq)[: self._payload.length]
            good = reply == (sent if kind == "echo" else sent[: self._ack_length])
        self._corrupt += 0 if good else 1
        return 0 if good else CORRUPT

    def is_reply(self, data: Any) -> bool:
        """Whether this may be the reply to the open blocking call; True where nobody can tell."""
        if not self.carries_seq or self.spec["reply"] == "literal":
            return True
        if self.encoding == "record":
            return data is UNREADABLE or data.seq == self._current_seq
        return self._bytes(data)[: self._ack_length] == self._header(self._current_seq)

    def _header(self, seq: int) -> bytes:
        header = seq.to_bytes(8, "little")
        return header.hex().encode() if self.text else header

    def feedback(self, data: Any, slot: Slot | None = None) -> None:
        """An action client's feedback callback was entered.

        `slot` is the goal, which a payload too short for a sequence (or a literal) cannot name.
        """
        now_ns = monotonic_ns()
        data = self._bytes(data)
        with self._lock:
            verdict, seq, begin_ns = self._payload.check(data)
            if slot is not None and not self.carries_seq:
                seq = slot.seq
            self._foreign += verdict == FOREIGN
            self._corrupt += verdict == CORRUPT
            if verdict != FOREIGN and seq is not None and seq & COUNTER_MASK != PROBE:
                self._record(seq, (begin_ns, now_ns), len(data), FEEDBACK, verdict)

    # --- action server ---------------------------------------------------------------------

    def goal(self, data: Any) -> Goal | None:
        """A goal in hand; None where it is foreign or unreadable."""
        now_ns = monotonic_ns()
        data = self._bytes(data)
        with self._lock:
            seen = self._arrive(data, now_ns)
        if seen is None or data is UNREADABLE:
            return None
        return Goal(PROBE if seen[0] is None else seen[0], now_ns, seen[2], data)

    def accept(self, goal: Goal) -> None:
        """The acceptance was handed over."""
        self._record_goal(goal, (goal.begin_ns, monotonic_ns()), ACCEPT)

    def feedback_begin(self, goal: Goal) -> Message:
        """The stamped feedback buffer; the next statement publishes it."""
        goal.feedback_ns = monotonic_ns()
        self._payload.stamp(goal.seq, goal.feedback_ns)
        return self._payload.buffer

    def feedback_sent(self, goal: Goal) -> None:
        self._record_goal(goal, (goal.feedback_ns, monotonic_ns()), FEEDBACK)

    def result(self, goal: Goal) -> Message:
        return self._reply(goal.data)

    def finish_goal(self, goal: Goal) -> None:
        """The result was handed over."""
        self._record_goal(goal, (goal.begin_ns, monotonic_ns()), GOAL)

    def _record_goal(self, goal: Goal, times: tuple[int, int], kind: int) -> None:
        if not goal.probe:
            length = self._payload.length if kind == FEEDBACK else len(goal.data)
            self._record(goal.seq, times, length, kind, goal.flags)

    # --- the end ---------------------------------------------------------------------------

    def _left_s(self) -> float:
        """Seconds until a receiver may end: quiet and linger of C-15; a nap before STOP."""
        stop_ns = self._dialogue.stop_ns
        if stop_ns is None:
            return _NAP_NS / 1e9
        quiet_ns = max(self._arrival_ns, stop_ns) + self.spec["quiet_ms"] * 1_000_000
        linger_ns = stop_ns + self.spec["linger_ms"] * 1_000_000
        return (min(quiet_ns, linger_ns) - monotonic_ns()) / 1e9

    def poll(self, poll: Poll) -> None:
        """Drives a receiver's `poll(timeout_s)` until the end."""
        while (left_s := self._left_s()) > 0:
            poll(min(left_s, _NAP_NS / 1e9))

    def wait(self) -> None:
        """Blocks this thread until the end, while the library's own thread receives."""
        self._dialogue.stop.wait()
        self.poll(sleep)

    def on_end(self, function: Callable[[], object]) -> None:
        def watch() -> None:
            self.wait()
            function()

        threading.Thread(target=watch, name="wattwire-end", daemon=True).start()

    def add_counts(
        self, received: int, foreign: int, corrupt: int, probes: int, recorded: int, overflow: int
    ) -> None:
        """What another process of this node counted, and wrote to a file of its own."""
        self._received += received
        self._foreign += foreign
        self._corrupt += corrupt
        self._probes += probes
        self._recorder.recorded_elsewhere += recorded
        self._recorder.overflow_elsewhere += overflow

    def finish(self) -> None:
        """Writes the samples and prints DONE."""
        with self._lock:
            spec, recorder = self.spec, self._recorder
            path = os.path.join(self.out, "samples.bin")
            role = ROLE_CODES[self._role]
            recorder.write(path, role, spec["node"], spec["payload.seed"])
            fields = {"sent": self._sent, "received": self._received + next(self._arrivals)}
            fields["recorded"] = recorder.recorded + recorder.recorded_elsewhere
            fields["overflow"] = recorder.overflow + recorder.overflow_elsewhere
            fields.update(foreign=self._foreign, corrupt=self._corrupt, probes=self._probes)
        self._dialogue.line("DONE", fields)
