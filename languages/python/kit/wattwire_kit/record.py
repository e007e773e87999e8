"""The record of C-32: one nested message, which each middleware carries in its own types."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .constants import CORRUPT, UNKNOWN_NS
from .payload import FOREIGN, OK, fill_stream, to_text

FIXED_BYTES, SAMPLE_BYTES = 96, 16
_NAME_CHARACTERS = 16
_FIRST_SAMPLE_WORD = 9
Sample = tuple[int, int, float]


@dataclass(slots=True)
class Record:
    """One message; `samples` are tuples (id, state, value), times are in ns.

    `len` is the nominal size in bytes. The kit rewrites the sender's record for each message.
    """

    seq: int = 0
    send_ns: int = 0
    name: str = ""
    position: tuple[float, ...] = (0.0, 0.0, 0.0)
    orientation: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)
    samples: list[Sample] = field(default_factory=list)
    trailer_seq: int = 0

    def __len__(self) -> int:
        return FIXED_BYTES + SAMPLE_BYTES * len(self.samples)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as a dictionary with the names and nesting of C-32's table."""
        return {
            "header": {"seq": str(self.seq), "send_ns": str(self.send_ns)},
            "name": self.name,
            "pose": {
                "position": dict(zip("xyz", self.position, strict=True)),
                "orientation": dict(zip("xyzw", self.orientation, strict=True)),
            },
            "samples": [{"id": i, "state": s, "value": v} for i, s, v in self.samples],
            "trailer": {"seq": str(self.trailer_seq)},
        }

    def to_json(self) -> bytes:
        return json.dumps(self.to_dict(), separators=(",", ":")).encode()

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Record:
        """Raise KeyError, TypeError or ValueError if a field is missing or has a wrong type."""
        header, pose = fields["header"], fields["pose"]
        position, orientation = pose["position"], pose["orientation"]
        record = cls(
            _digits(header["seq"], 0, 2**64),
            _digits(header["send_ns"], -(2**63), 2**63),
            _of(str, fields["name"]),
            tuple(float(_of((int, float), position[axis])) for axis in "xyz"),
            tuple(float(_of((int, float), orientation[axis])) for axis in "xyzw"),
            [(s["id"], s["state"], s["value"]) for s in _of(list, fields["samples"])],
            _digits(fields["trailer"]["seq"], 0, 2**64),
        )
        for number, state, value in record.samples:
            _whole(number, 0, 2**32)
            _whole(state, 0, 2**32)
            _of((int, float), value)
        return record

    @classmethod
    def from_json(cls, text: str | bytes | bytearray) -> Record:
        """Return the record of a JSON text, or UNREADABLE."""
        try:
            return cls.from_object(json.loads(text))
        except (ValueError, RecursionError):
            return UNREADABLE

    @classmethod
    def from_object(cls, value: Any) -> Record:
        """Return the record of decoded JSON, or UNREADABLE."""
        try:
            return cls.from_dict(value)
        except (KeyError, TypeError, ValueError, OverflowError):
            return UNREADABLE


_DECIMAL = re.compile("-?[0-9]{1,20}")
UNREADABLE = Record()
"""Stands for an arrival that the cell's decoder rejected."""


def _of(kind: Any, value: Any) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"found {value!r:.60}; allowed: {kind}")
    return value


def _whole(value: Any, low: int, end: int) -> int:
    if type(value) is not int or not low <= value < end:
        raise ValueError(f"found {value!r:.60}; allowed: an integer, {low} to {end - 1}")
    return value


def _digits(text: Any, low: int, end: int) -> int:
    if not _DECIMAL.fullmatch(_of(str, text)):
        raise ValueError(f"found {text!r:.60}; allowed: decimal digits")
    return _whole(int(text), low, end)


class RecordPayload:
    """The sender's record and the receiver's checks, with the methods of Payload."""

    literal = b""
    carries_seq = True
    short = False
    plain_length = -1  # no record is read in one step

    def __init__(self, spec: Mapping[str, Any], nodes: Iterable[int]) -> None:
        self.nodes = frozenset(nodes)
        self._full = spec["verify"] == "full"
        seed, count = spec["payload.seed"], (spec["payload.bytes"] - FIXED_BYTES) // SAMPLE_BYTES
        stream = fill_stream(seed, 8 * (_FIRST_SAMPLE_WORD + count))
        words = [int.from_bytes(stream[at : at + 8], "little") for at in range(0, len(stream), 8)]
        values = [((w >> 32) - (w >> 63 << 32)) / 1024 for w in words]
        self.buffer = Record(
            name=to_text(stream[:_NAME_CHARACTERS]),
            position=tuple(values[2:5]),
            orientation=tuple(values[5:9]),
            samples=[(i, words[9 + i] % 256, values[9 + i]) for i in range(count)],
        )
        self.length = len(self.buffer)

    def stamp(self, seq: int, begin_ns: int) -> None:
        """Write sequence and send time into the record."""
        buffer = self.buffer
        buffer.seq = buffer.trailer_seq = seq
        buffer.send_ns = begin_ns

    def check(self, data: Record) -> tuple[int, int | None, int]:
        """Return (OK, CORRUPT or FOREIGN; sequence or None; send time) of an arrival (C-32)."""
        if data is UNREADABLE:
            return CORRUPT, None, UNKNOWN_NS
        due, seq = self.buffer, data.seq
        if seq >> 48 not in self.nodes or data.name != due.name:
            return FOREIGN, seq, data.send_ns
        good = len(data.samples) == len(due.samples) and data.trailer_seq == seq
        if good and self._full:
            good = data.samples == due.samples and tuple(data.position) == due.position
            good = good and tuple(data.orientation) == due.orientation
        return (OK if good else CORRUPT), seq, data.send_ns


def answer(kind: str, request: Record, literal: str) -> Record:
    """Return the reply to a request, by its kind: `echo`, `ack` or `literal`."""
    if kind == "echo":
        return request
    if kind == "literal":
        return Record(name=literal)
    return Record(request.seq, request.send_ns, trailer_seq=request.trailer_seq)
