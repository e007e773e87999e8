"""Checks, counts and records the arrivals of subscribers, servers and clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import get_ident
from time import monotonic_ns
from typing import Any

from .constants import CALL, CORRUPT, MESSAGE, PROBE, UNKNOWN_NS, WARM_UP
from .core import Core, Message
from .dialogue import Dialogue
from .payload import COUNTER_MASK, FOREIGN, OK
from .record import UNREADABLE
from .recorder import pack_record
from .replies import Replies, as_message
from .schedule import NEVER_NS

Pending = tuple[int, int, int, int]
"""Sequence, begin (ns), length (bytes) and flags of a request."""


class Arrivals(Core):
    """The arrivals of subscribers, servers and pongs, and the replies of clients."""

    def __init__(
        self, spec: Mapping[str, Any], dialogue: Dialogue, process_start_ns: int, out: str = ""
    ) -> None:
        super().__init__(spec, dialogue, process_start_ns, out)
        self._replies = Replies(spec, self._payload)
        # The request that each thread has answered but not yet handed over, by thread.
        self._pending: dict[int, Pending] = {}
        self.served = self._server_end()
        if self._payload.plain_length >= 0:
            self.received = self._plain_receiver()
            self.serve = self._plain_server()

    def _arrive(self, data: Message, now_ns: int) -> tuple[int | None, int, int] | None:
        """Return (sequence or None, send time, flags) of an arrival, or None if it is foreign."""
        if self._start_ns == NEVER_NS:
            self._learn_start()
        if not self.carries_seq and now_ns < self._start_ns:
            self._probes += 1  # before the start, only probes arrive
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
        peer = self._peer if self._is_sender else seq >> 48
        self._recorder.add(seq, UNKNOWN_NS, *times, length, peer, kind, flags)

    def received(self, data: Any) -> None:
        """Record an arrival; the first statement of a subscriber's callback."""
        self._receive(as_message(data), monotonic_ns())

    def _receive(self, data: Message, now_ns: int) -> None:
        with self._lock:
            arrival = self._arrive(data, now_ns)
            if arrival is not None and arrival[0] is not None and arrival[0] != PROBE:
                self._record(arrival[0], (arrival[1], now_ns), len(data), MESSAGE, arrival[2])

    def _plain_receiver(self) -> Callable[[Any], None]:
        """Return a fast replacement for `received`, for payloads that are read in one step.

        Every message pays for this function. It therefore takes no lock, calls no other function of
        the kit for a valid message, and uses only local variables.
        """
        payload, recorder = self._payload, self._recorder
        length, due, nodes, read = payload.length, payload.looked_at, payload.nodes, payload.read
        arrivals, places, room, records = (
            self._arrivals,
            recorder.places,
            recorder.end,
            recorder.data,
        )
        start_ns = warm_until_ns = NEVER_NS

        def received(data: Any) -> None:
            nonlocal start_ns, warm_until_ns
            now_ns = monotonic_ns()
            if type(data) is not bytes:
                data = as_message(data)
            if len(data) == length and now_ns >= start_ns:
                seq, begin_ns, looked_at, trailer = read(data)
                peer = seq >> 48
                whole = trailer == seq and looked_at == due and peer in nodes
                if whole and seq & COUNTER_MASK != PROBE:
                    self._arrival_ns = now_ns
                    next(arrivals)
                    flags = WARM_UP if now_ns < warm_until_ns else 0
                    if (at := next(places)) < room:
                        pack_record(
                            records, at, seq, UNKNOWN_NS, begin_ns, now_ns, length, peer, MESSAGE,
                            flags,
                        )  # fmt: skip
                    return
            self._receive(data, now_ns)
            start_ns, warm_until_ns = self._start_ns, self._warm_until_ns  # set by `_receive`

        return received

    def serve(self, data: Any) -> Message | None:
        """Return the reply to a request, or None if the request is foreign or unreadable."""
        now_ns = monotonic_ns()
        data = as_message(data)
        if self.carries_seq and now_ns >= self._start_ns:
            # The common case needs no lock, because this check has no state.
            verdict, seq, _ = self._payload.check(data)
            if verdict == OK and seq & COUNTER_MASK != PROBE:
                self._arrival_ns = now_ns
                next(self._arrivals)
                self._pending[get_ident()] = (seq, now_ns, len(data), 0)
                return self._replies.answer(data)
        return self._serve_any(data, now_ns)

    def _serve_any(self, data: Message, now_ns: int) -> Message | None:
        with self._lock:
            arrival = self._arrive(data, now_ns)
        self._pending.pop(get_ident(), None)
        if arrival is None or data is UNREADABLE:
            return None
        if arrival[0] is not None and arrival[0] != PROBE:
            self._pending[get_ident()] = (arrival[0], now_ns, len(data), arrival[2])
        return self._replies.answer(data)

    def _plain_server(self) -> Callable[[Any], Message | None]:
        """Return a fast replacement for `serve`; see `_plain_receiver`."""
        payload, pending, requests = self._payload, self._pending, self._arrivals
        length, due, nodes, read = payload.length, payload.looked_at, payload.nodes, payload.read
        answer, is_echo = self._replies.answer, self._replies.is_echo
        start_ns = NEVER_NS

        def serve(data: Any) -> Message | None:
            nonlocal start_ns
            now_ns = monotonic_ns()
            if type(data) is not bytes:
                data = as_message(data)
            if len(data) == length and now_ns >= start_ns:
                seq, _, looked_at, trailer = read(data)
                is_request = trailer == seq and looked_at == due and seq >> 48 in nodes
                if is_request and seq & COUNTER_MASK != PROBE:
                    self._arrival_ns = now_ns
                    next(requests)
                    pending[get_ident()] = (seq, now_ns, length, 0)
                    return data if is_echo else answer(data)
            reply = self._serve_any(data, now_ns)
            start_ns = self._start_ns  # set by `_serve_any`
            return reply

        return serve

    def _server_end(self) -> Callable[[], None]:
        """Return `served`, which records that the reply of this thread's last `serve` was handed
        over; see `_plain_receiver`.
        """
        pending, recorder = self._pending, self._recorder
        places, room, records = recorder.places, recorder.end, recorder.data

        def served() -> None:
            end_ns = monotonic_ns()
            call = pending.pop(get_ident(), None)
            if call is not None:
                seq, begin_ns, length, flags = call
                if end_ns < self._warm_until_ns:
                    flags |= WARM_UP
                if (at := next(places)) < room:
                    pack_record(
                        records, at, seq, UNKNOWN_NS, begin_ns, end_ns, length, seq >> 48, CALL,
                        flags,
                    )  # fmt: skip

        return served

    def is_reply(self, data: Any) -> bool:
        """Return whether `data` may be the reply to the open blocking call; True if unknown."""
        return self._replies.may_be(self._current_seq, as_message(data))

    def _check_reply(self, seq: int, reply: Any) -> int:
        if self._replies.is_due(seq, reply):
            return 0
        self._corrupt += 1
        return CORRUPT
