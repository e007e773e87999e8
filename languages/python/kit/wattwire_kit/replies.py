"""A server's replies, and a client's checks of them (C-23)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .payload import OK, Payload
from .record import UNREADABLE, Record, RecordPayload, answer

Message = Any


def as_message(data: Any) -> Message:
    """Convert a library's object to a type that the payload's checks accept."""
    if type(data) is bytes or type(data) is bytearray or type(data) is Record:
        return data
    return data.encode("utf-8", "replace") if isinstance(data, str) else bytes(data)


class Replies:
    """The replies of one run, by the spec's `reply`; the kit creates it once."""

    def __init__(self, spec: Mapping[str, Any], payload: Payload | RecordPayload) -> None:
        self._payload = payload
        self._kind: str = spec["reply"]
        self.is_echo = self._kind == "echo"
        self._is_record = spec["payload.encoding"] == "record"
        self._is_text = spec["payload.encoding"] == "text"
        self._literal_text: str = spec["reply.literal"]
        self._literal = self._literal_text.encode()
        self._ack_length = 16 if self._is_text else 8
        # A literal reply, or a payload without a sequence, does not identify its call.
        self._names_call = payload.carries_seq and self._kind != "literal"
        self._is_checked_whole = self.is_echo and payload.carries_seq
        if self.is_echo and payload.plain_length >= 0:
            assert isinstance(payload, Payload)
            self.is_due = self._plain_check(payload)

    def answer(self, data: Message) -> Message:
        """Return the reply to a request."""
        if self.is_echo:
            return data
        if self._is_record:
            return answer(self._kind, data, self._literal_text)
        return data[: self._ack_length] if self._kind == "ack" else self._literal

    def is_due(self, seq: int, reply: Any) -> bool:
        """Return whether `reply` is the complete reply to the call `seq`."""
        reply = as_message(reply)
        if self._is_checked_whole:
            verdict, own_seq, _ = self._payload.check(reply)
            return verdict == OK and own_seq == seq
        if self._is_record:
            # The send time is not compared, because the next call overwrites it.
            due = Record(seq, reply.send_ns, trailer_seq=seq)
            is_due = reply == answer(self._kind, due, self._literal_text)
            return is_due and reply is not UNREADABLE
        if self._kind == "literal":
            return bool(reply == self._literal)
        # A reply without a complete sequence has no send time, so all of its bytes are known.
        sent = self._payload.literal or self._header(seq)[: self._payload.length]
        return bool(reply == (sent if self.is_echo else sent[: self._ack_length]))

    def _plain_check(self, payload: Payload) -> Callable[[int, Any], bool]:
        """Return a fast replacement for `is_due`, for echoes that are read in one step.

        Between two calls a node's code has left the processor's caches, so each function and each
        object that a call needs costs more than its instructions.
        """
        length, due, read = payload.length, payload.looked_at, payload.read
        is_due_any = self.is_due

        def is_due(seq: int, reply: Any) -> bool:
            if type(reply) is bytes and len(reply) == length:
                own_seq, _, looked_at, trailer = read(reply)
                return own_seq == seq and trailer == seq and looked_at == due
            return is_due_any(seq, reply)

        return is_due

    def may_be(self, seq: int, data: Message) -> bool:
        """Return whether `data` may be the reply to the call `seq`; True if unknown."""
        if not self._names_call:
            return True
        if self._is_record:
            return bool(data is UNREADABLE or data.seq == seq)
        return bool(data[: self._ack_length] == self._header(seq))

    def _header(self, seq: int) -> bytes:
        header = seq.to_bytes(8, "little")
        return header.hex().encode() if self._is_text else header
