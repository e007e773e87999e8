"""The schedule's front end for cells whose send and call block: `send_all` and `call_all`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic_ns

from .constants import CORRUPT, FAILED, MESSAGE, TIMEOUT, UNKNOWN_NS, WARM_UP
from .core import Call, Message, SendFailed
from .native_timer import NativeTimer
from .recorder import pack_record
from .sending import Sending


class BlockingSender(Sending):
    """Sends messages one after the other in this thread, each when it is due."""

    def send_all(self, send: Callable[[Message], object]) -> None:
        recorder, buffer = self._recorder, self._payload.buffer
        # Attributes are looked up once, because every message pays for this loop.
        places, room, data = recorder.places, recorder.end, recorder.data
        length, peer = self._payload.length, self._peer
        end_ns = None
        for seq, due_ns, begin_ns in self._messages():
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
        recorder, buffer = self._recorder, self._payload.buffer
        places, room, data = recorder.places, recorder.end, recorder.data
        length, peer, kind = self._payload.length, self._peer, self._kind
        timeout_ns, is_due = self._timeout_ns, self._replies.is_due
        timeout_s = timeout_ns / 1e9
        received = corrupt = 0
        ended_ns = None
        for seq, intended_ns, begin_ns in self._messages():
            self._current_seq = seq
            flags = WARM_UP if intended_ns < self._warm_until_ns else 0
            try:
                reply = call(buffer, timeout_s)
                ended_ns = end_ns = monotonic_ns()
            except (SendFailed, OSError):
                flags |= FAILED
                ended_ns, end_ns = monotonic_ns(), UNKNOWN_NS
            else:
                if reply is None or end_ns - begin_ns > timeout_ns:
                    flags |= TIMEOUT
                    end_ns = UNKNOWN_NS
                else:
                    received += 1
                    if not is_due(seq, reply):
                        corrupt += 1
                        flags |= CORRUPT
            if (at := next(places)) < room:
                pack_record(data, at, seq, intended_ns, begin_ns, end_ns, length, peer, kind, flags)
        self._received += received
        self._corrupt += corrupt
        self._last_end_ns = ended_ns
        self.end_schedule()

    def _messages(self) -> Iterator[tuple[int, int, int]]:
        """Yield (sequence, intended time, begin time) of each message when it is due.

        The buffer is stamped, and the next statement must send it. STOP and overrun end the
        iteration early.
        """
        schedule, payload = self._schedule, self._payload
        if isinstance(schedule, NativeTimer):
            raise NotImplementedError("a blocking sender does not support native pacing")
        self.wait_go()
        take, closed = schedule.take, self._closed
        buffer, short = payload.buffer, payload.short
        write, fill = (payload.write, payload.fill) if short else (None, b"")
        while True:
            begin_ns = monotonic_ns()
            seq = take(begin_ns)
            if seq < 0:
                if schedule.is_complete(begin_ns) or not schedule.wait_until(schedule.due_ns):
                    break
                continue
            if self._first_begin_ns is None:
                self._first_begin_ns = begin_ns
            if short:  # stamp, inlined
                write(buffer, 0, seq, begin_ns, fill, seq)
            else:
                payload.stamp(seq, begin_ns)
            yield seq, begin_ns if closed else schedule.intended_ns, begin_ns
        self._sent += schedule.taken  # send_all has subtracted the failed messages
