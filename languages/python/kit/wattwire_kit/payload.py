"""Payloads: stamping outgoing messages, and checking arrivals (C-17 to C-22)."""

from __future__ import annotations

import sys
from array import array
from binascii import unhexlify
from collections.abc import Iterable, Mapping
from struct import Struct
from typing import Any

from .constants import CORRUPT, UNKNOWN_NS, UNKNOWN_PEER

COUNTER_MASK = 2**48 - 1
OK, FOREIGN = 0, -1  # verdicts; the third is the record's flag CORRUPT
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_TO_TEXT = bytes(_ALPHABET[value % 64] for value in range(256))
_HEADER = Struct("<Qq")
_SEQ = Struct("<Q")
_MASK = 2**64 - 1
_SHORT_FILL = 512  # bytes: rewriting a fill up to this size costs less than another call


def fill_stream(seed: int, count: int) -> bytes:
    """Return the first `count` bytes of the fill: splitmix64 with little-endian words."""
    words = array("Q", bytes(8 * ((count + 7) // 8)))
    state = seed
    for index in range(len(words)):
        state = (state + 0x9E3779B97F4A7C15) & _MASK
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        words[index] = z ^ (z >> 31)
    if sys.byteorder == "big":
        words.byteswap()
    return words.tobytes()[:count]


def to_text(data: bytes) -> str:
    """Return the characters of C-20 for some bytes of the fill."""
    return data.translate(_TO_TEXT).decode("ascii")


class Payload:
    """The payload of one spec: the sender's buffer and the receiver's checks; times are in ns."""

    def __init__(self, spec: Mapping[str, Any], nodes: Iterable[int]) -> None:
        self.nodes = frozenset(nodes)
        self._text = spec["payload.encoding"] == "text"
        self._full = spec["verify"] == "full"
        self.literal: bytes = spec["payload.literal"].encode()
        self._unit = 2 if self._text else 1
        self.length: int = len(self.literal) or spec["payload.bytes"]
        self.carries_seq = not self.literal and self.length >= 8 * self._unit
        self._fill_at = 16 * self._unit
        self._trailer = 8 * self._unit if self.length >= 24 * self._unit else 0
        fill = b""
        if not self.literal:
            count = max(0, self.length - self._fill_at - self._trailer)
            fill = fill_stream(spec["payload.seed"], count)
            fill = fill.translate(_TO_TEXT) if self._text else fill
        self.fill, self._first = fill, fill[:8]
        blank = bytes(self._fill_at) + fill + bytes(self._trailer)
        self.buffer = bytearray(self.literal or blank[: self.length])
        # A binary payload is written and read in one step if the fill is short. In a longer
        # payload this step reads only the first word of the fill.
        self._binary = not self._text and not self.literal and self._trailer > 0
        self.short = self._binary and len(fill) <= _SHORT_FILL
        self.write = Struct(f"<Qq{len(fill)}sQ").pack_into
        plain = self.short or (self._binary and not self._full)
        self.plain_length = self.length if plain else -1
        """The length of arrivals that are read in one step, or -1."""
        self.looked_at = fill if self._full else self._first
        unseen = len(fill) - len(self.looked_at)
        whole = Struct(f"<Qq{len(self.looked_at)}s{unseen}xQ")
        self.read, self.read_at = whole.unpack, whole.unpack_from
        self._expected: dict[int, int] = {}

    def stamp(self, seq: int, begin_ns: int) -> None:
        """Write sequence and send time into the buffer; the fill does not change."""
        if self.short:
            self.write(self.buffer, 0, seq, begin_ns, self.fill, seq)
        elif self._binary:
            _HEADER.pack_into(self.buffer, 0, seq, begin_ns)
            _SEQ.pack_into(self.buffer, self.length - 8, seq)
        elif not self.literal:
            header = _HEADER.pack(seq, begin_ns)
            header = header.hex().encode() if self._text else header
            self.buffer[: self._fill_at] = header[: self.length]
            if self._trailer:
                self.buffer[self.length - self._trailer :] = header[: self._trailer]

    def check(self, data: bytes | bytearray) -> tuple[int, int | None, int]:
        """Return (OK, CORRUPT or FOREIGN; sequence or None; send time) of an arrival (C-21)."""
        if len(data) == self.plain_length:
            seq, begin_ns, looked_at, trailer = self.read(data)
            if trailer == seq and looked_at == self.looked_at and seq >> 48 in self.nodes:
                return OK, seq, begin_ns
        return self._check_any(data)

    def _check_any(self, data: bytes | bytearray) -> tuple[int, int | None, int]:
        if self.literal:
            return (OK if data == self.literal else CORRUPT), self._count(None, 0), UNKNOWN_NS
        seq, begin_ns = self._read_header(data)
        if seq is None:
            return CORRUPT, None, UNKNOWN_NS
        if seq >> 48 not in self.nodes:
            return FOREIGN, seq, begin_ns
        at = self._fill_at
        if data[at : at + len(self._first)] != self._first[: max(0, len(data) - at)]:
            return FOREIGN, seq, begin_ns
        good = len(data) == self.length
        if self._trailer:
            good = good and data[-self._trailer :] == data[: self._trailer]
        if self._full:
            good = good and data[at : at + len(self.fill)] == self.fill
        return (OK if good else CORRUPT), seq, begin_ns

    def _read_header(self, data: bytes | bytearray) -> tuple[int | None, int]:
        head = bytes(data[: min(self.length, self._fill_at)])
        if self._text:
            try:
                whole = unhexlify(head[: len(head) // 2 * 2])
            except ValueError:
                return None, UNKNOWN_NS
            if whole.hex().encode() != head[: len(whole) * 2]:
                return None, UNKNOWN_NS  # the contract has lower-case digits
            head = whole
        if len(head) == 16:
            seq, begin_ns = _HEADER.unpack(head)
            return seq, begin_ns
        if len(head) >= 8:
            return _SEQ.unpack_from(head)[0], UNKNOWN_NS
        if self.carries_seq:
            return None, UNKNOWN_NS
        return self._count(int.from_bytes(head[:6], "little"), len(head[:6])), UNKNOWN_NS

    def _count(self, low: int | None, known_bytes: int) -> int:
        """Return the sequence with the known low bytes that is nearest to the expected sequence."""
        node = next(iter(self.nodes)) if len(self.nodes) == 1 else UNKNOWN_PEER
        expected = self._expected.get(node, 0)
        counter = expected
        if low is not None and known_bytes:
            modulus = 256**known_bytes
            ahead = (low - expected) % modulus
            counter = expected + (ahead - modulus if ahead > modulus // 2 else ahead)
            counter += modulus if counter < 0 else 0
        self._expected[node] = max(expected, counter + 1)
        return node << 48 | counter
