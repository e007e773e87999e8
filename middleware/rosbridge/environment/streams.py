"""Split a stream of bytes into messages of JSON and CBOR, which follow each other directly.

The bridge and its clients use this module for TCP. A message is an object of JSON or a map of CBOR.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

TOKEN = re.compile(rb'\\.|["{}]', re.DOTALL)
"""The bytes of JSON that decide where an object ends; a backslash takes the next byte with it."""
BYTES, TEXT, ARRAY, MAP, TAG = 2, 3, 4, 5, 6
"""Major types of CBOR (RFC 8949) whose argument is a length or which contain other items."""
ARGUMENT_BYTES = {24: 1, 25: 2, 26: 4, 27: 8}
INDEFINITE = 31


class InvalidStream(Exception):
    """The bytes can be no message, so the end of the message is unknown."""


class MessageStream:
    """The bytes that have arrived. No byte is examined twice."""

    def __init__(self, message_bytes_max: int) -> None:
        self._bytes_max = message_bytes_max
        self._buffer = bytearray()
        self._at = self._depth = 0
        self._is_in_string = False
        self._item: CborItem | None = None

    def messages(self, arrived: bytes) -> Iterator[bytes]:
        """Add bytes, and yield the messages that are complete.

        Raise InvalidStream for a message that is too long. Text before an object of JSON is a part
        of the message, which makes it invalid.
        """
        self._buffer += arrived
        while self._buffer and (end := self._end()):
            message = bytes(self._buffer[:end])
            del self._buffer[:end]
            self._at = self._depth = 0
            self._item = None
            yield message
        if len(self._buffer) > self._bytes_max:
            raise InvalidStream(f"a message of more than {self._bytes_max} bytes")

    def _end(self) -> int:
        """Return the end of the first message, or 0 if it is incomplete."""
        if self._buffer[0] >> 5 == MAP:
            self._item = self._item or CborItem()
            return self._item.end(self._buffer)
        while token := self._token():
            if token == b'"':
                self._is_in_string = not self._is_in_string
            elif not self._is_in_string and token in (b"{", b"}"):
                self._depth += 1 if token == b"{" else -1
                if self._depth <= 0:
                    return self._at
        return 0

    def _token(self) -> bytes:
        match = TOKEN.search(self._buffer, self._at)
        if match is not None:
            self._at = match.end()
            return match[0]
        # The byte after a last backslash has not arrived yet.
        self._at = max(self._at, len(self._buffer) - self._buffer.endswith(b"\\"))
        return b""


class CborItem:
    """An item of CBOR at the begin of a growing buffer, of which no byte is examined twice."""

    def __init__(self) -> None:
        self._at, self._items = 0, 1

    def end(self, data: bytes | bytearray) -> int:
        """Return the end of the item in `data`, or 0 if it is incomplete.

        Raise InvalidStream for an item without a length, which encoders of the protocol do not
        write.
        """
        at, items = self._at, self._items
        while items and at < len(data):
            major, info = data[at] >> 5, data[at] & 0x1F
            if info == INDEFINITE:
                raise InvalidStream(f"an item of CBOR of indefinite length at byte {at}")
            argument, begin = info, at + 1
            if argument_bytes := ARGUMENT_BYTES.get(info, 0):
                begin += argument_bytes
                if begin > len(data):
                    break
                argument = int.from_bytes(data[at + 1 : begin], "big")
            at = begin
            items -= 1
            if major in (BYTES, TEXT):
                at += argument
            elif major in (ARRAY, MAP, TAG):
                items += {ARRAY: argument, MAP: 2 * argument, TAG: 1}[major]
        self._at, self._items = at, items
        return at if not items and at <= len(data) else 0
