"""Relays of pipelines (C-37): checks, forwards and records each arrival."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping
from time import monotonic_ns
from typing import Any

from .arrivals import Arrivals, as_message
from .constants import FAILED, PROBE, RELAY, UNKNOWN_NS, WARM_UP
from .core import Message
from .dialogue import Dialogue
from .payload import COUNTER_MASK
from .recorder import pack_record
from .schedule import NEVER_NS

Forward = tuple[int | None, int, int, int, int]
"""A message that the cell forwards: sequence, arrival and send time in ns, length, flags.

The sequence is None if it is unreadable, and PROBE for a probe.
"""


class Relays(Arrivals):
    """The arrivals of a relay, each of which the cell sends on."""

    def __init__(
        self, spec: Mapping[str, Any], dialogue: Dialogue, process_start_ns: int, out: str = ""
    ) -> None:
        super().__init__(spec, dialogue, process_start_ns, out)
        # Counted without the lock, like valid arrivals.
        self._forwarded = itertools.count()
        self.relayed = self._recorder_of_sends()
        if self._payload.plain_length >= 0:
            self.relay = self._plain_relay()

    def relay(self, data: Any) -> Forward | None:
        """Check an arrival in the first statement of a relay's callback.

        Return None for a foreign message, which must not be sent. Otherwise the next statement must
        send `data`, and `relayed` or `relay_failed` must follow.
        """
        return self._relay(as_message(data), monotonic_ns())

    def relay_within(self, head: bytes) -> Callable[[bytes], Forward | None]:
        """Return a function that does what `relay` does, for payloads within longer messages.

        The payload follows `head`, and any bytes may follow the payload. If a message does not
        begin with `head`, which may contain a length, all bytes from there on are its payload.
        """
        begin, end = len(head), len(head) + self._payload.length

        def payload_of(message: bytes) -> bytes:
            return message[begin : end if message.startswith(head) else None]

        if self._payload.plain_length >= 0:
            return self._plain_relay(head, sys.maxsize, payload_of)
        return lambda message: self.relay(payload_of(message))

    def _relay(self, data: Message, now_ns: int) -> Forward | None:
        with self._lock:
            arrival = self._arrive(data, now_ns)
        if arrival is None:
            return None
        seq, _, flags = arrival
        flags |= WARM_UP if now_ns < self._warm_until_ns else 0
        return seq, now_ns, monotonic_ns(), len(data), flags

    def _plain_relay(
        self,
        head: bytes = b"",
        tail_bytes_max: int = 0,
        payload_of: Callable[[Any], Message] = as_message,
    ) -> Callable[[Any], Forward | None]:
        """Return a fast replacement for `relay`, for payloads that are read in one step.

        As `received`, it takes no lock and uses only local variables for a valid message. Between
        two messages, other processes take the caches, so that each call and each object counts.
        """
        payload, arrivals = self._payload, self._arrivals
        length, due, nodes, read = payload.length, payload.looked_at, payload.nodes, payload.read_at
        begin, shortest = len(head), len(head) + length
        longest = shortest + tail_bytes_max
        start_ns = warm_until_ns = NEVER_NS

        def relay(data: Any) -> Forward | None:
            nonlocal start_ns, warm_until_ns
            now_ns = monotonic_ns()
            if type(data) is not bytes:
                data = as_message(data)
            is_due = shortest <= len(data) <= longest and data.startswith(head)
            if is_due and now_ns >= start_ns:
                seq, _, looked_at, trailer = read(data, begin)
                whole = trailer == seq and looked_at == due and seq >> 48 in nodes
                if whole and seq & COUNTER_MASK != PROBE:
                    self._arrival_ns = now_ns
                    next(arrivals)
                    flags = WARM_UP if now_ns < warm_until_ns else 0
                    return seq, now_ns, monotonic_ns(), length, flags
            forward = self._relay(payload_of(data), now_ns)
            start_ns, warm_until_ns = self._start_ns, self._warm_until_ns  # set by `_relay`
            return forward

        return relay

    def _recorder_of_sends(self) -> Callable[[Forward], None]:
        """Return `relayed`, which records that the send call of a message has returned."""
        forwarded, recorder = self._forwarded, self._recorder
        places, room, records = recorder.places, recorder.end, recorder.data

        def relayed(forward: Forward) -> None:
            end_ns = monotonic_ns()
            seq, arrival_ns, begin_ns, length, flags = forward
            if seq == PROBE:
                return
            next(forwarded)
            if seq is not None and (at := next(places)) < room:
                pack_record(
                    records, at, seq, arrival_ns, begin_ns, end_ns, length, seq >> 48, RELAY,
                    flags,
                )  # fmt: skip

        return relayed

    def relay_failed(self, forward: Forward) -> None:
        """Record that the send call of this message has failed."""
        seq, arrival_ns, begin_ns, length, flags = forward
        if seq is not None and seq != PROBE:
            times = (arrival_ns, begin_ns, UNKNOWN_NS)
            self._recorder.add(seq, *times, length, seq >> 48, RELAY, flags | FAILED)

    def finish(self) -> None:
        """Write the samples and print DONE."""
        self._sent += next(self._forwarded)
        super().finish()
