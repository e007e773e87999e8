"""Payloads of the three encodings, to and from Zenoh's; a record in Zenoh's own serialisation."""

from __future__ import annotations

from typing import Any

import zenoh
from wattwire_kit import UNREADABLE, Kit, Record
from zenoh.ext import Int64, UInt32, UInt64, ZDeserializeError, z_deserialize, z_serialize

_SAMPLE = tuple[UInt32, UInt32, float]
_POSE = tuple[tuple[float, float, float], tuple[float, float, float, float]]
_RECORD = tuple[tuple[UInt64, Int64], str, _POSE, list[_SAMPLE], UInt64]


def payload_of(kit: Kit, data: Any) -> Any:
    """What Zenoh takes for the kit's buffer or reply: a copy, because the buffer is rewritten."""
    if kit.encoding == "bytes":
        return bytes(data)
    if kit.encoding == "text":
        return bytes(data).decode("ascii")
    samples = [(UInt32(i), UInt32(state), value) for i, state, value in data.samples]
    header = (UInt64(data.seq), Int64(data.send_ns))
    pose = (tuple(data.position), tuple(data.orientation))
    return z_serialize((header, data.name, pose, samples, UInt64(data.trailer_seq)))


def data_of(kit: Kit, payload: zenoh.ZBytes) -> Any:
    """What the kit takes for an arrival."""
    if kit.encoding == "bytes":
        return payload.to_bytes()
    if kit.encoding == "text":
        return payload.to_string()
    try:
        header, name, pose, samples, trailer = z_deserialize(_RECORD, payload)
    except ZDeserializeError:
        return UNREADABLE
    plain = [(int(i), int(state), value) for i, state, value in samples]
    return Record(int(header[0]), int(header[1]), name, pose[0], pose[1], plain, int(trailer))
