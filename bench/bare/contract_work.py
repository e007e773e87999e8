"""The contract's work per message, for fair peers: bare clients that do what every node must do.

A client writes the sequence and the send time into its payload, reads the clock before and after
the call, checks the reply and keeps a record (C-19, C-21, C-25, C-27). A server checks the request,
reads the clock twice and keeps a record. A thread watches standard input (C-09). None of it is code
of the kit.
"""

from __future__ import annotations

import os
import sys
import threading
from struct import Struct

RECORD = Struct("<QqqqIHBB")
HEADER_BYTES, TRAILER_BYTES = 16, 8
UNKNOWN_NS = -(2**63)
PEER, CALL = 1, 1
CAPACITY = 100_000
"""Maximum number of records."""


def watch_input() -> None:
    """Read standard input in a thread until its end. A client continues after the end."""

    def read() -> None:
        while os.read(0, 4096):
            pass

    threading.Thread(target=read, daemon=True).start()


class Work:
    """The payload's layout and the records of one side; times are in ns.

    A server learns the length (bytes, at least 24) of its requests from the first one.
    """

    def __init__(self, length: int | None = None) -> None:
        self._records = bytearray(RECORD.size * CAPACITY)
        # Touch every page now to avoid page faults during the calls.
        self._records[::4096] = bytes(len(range(0, len(self._records), 4096)))
        self._at = 0
        self._length = -1
        if length is not None:
            self._learn(length)

    def _learn(self, length: int) -> None:
        self._fill = bytes(range(1, 1 + length - HEADER_BYTES - TRAILER_BYTES))
        layout = Struct(f"<Qq{len(self._fill)}sQ")
        self._write, self._read = layout.pack_into, layout.unpack
        self._buffer, self._length = bytearray(length), length

    def stamped(self, seq: int, begin_ns: int) -> bytes:
        """Return the payload of call `seq`."""
        self._write(self._buffer, 0, seq, begin_ns, self._fill, seq)
        return bytes(self._buffer)

    def checked(self, data: bytes) -> int:
        """Return the sequence of an arrival. An arrival that is not valid ends the program."""
        if self._length < 0:
            self._learn(len(data))
        if len(data) == self._length:
            seq, _, fill, trailer = self._read(data)
            if trailer == seq and fill == self._fill:
                return int(seq)
        sys.exit(f"an invalid arrival of {len(data)} bytes")

    def record(self, seq: int, intended_ns: int, begin_ns: int, end_ns: int) -> None:
        """Keep the record of a call."""
        RECORD.pack_into(
            self._records, self._at, seq, intended_ns, begin_ns, end_ns, self._length, PEER, CALL, 0
        )
        self._at += RECORD.size

    def median_ns(self, count: int) -> int:
        """Return the median duration of the last `count` recorded calls."""
        records = RECORD.iter_unpack(memoryview(self._records)[: self._at])
        durations = [end_ns - begin_ns for _, _, begin_ns, end_ns, *_ in records][-count:]
        return sorted(durations)[len(durations) // 2]
