"""Conversion of payloads to and from Zenoh's; records use Zenoh's own serialisation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import zenoh
from wattwire_kit import UNREADABLE, Kit, Record
from zenoh.ext import Int64, UInt32, UInt64, ZDeserializeError, z_deserialize, z_serialize

_SAMPLE = tuple[UInt32, UInt32, float]
_POSE = tuple[tuple[float, float, float], tuple[float, float, float, float]]
_RECORD = tuple[tuple[UInt64, Int64], str, _POSE, list[_SAMPLE], UInt64]


def encoder(kit: Kit) -> Callable[[Any], Any]:
    """Return a function that copies the kit's buffer or reply into Zenoh's payload.

    It copies because the kit rewrites the buffer. This looks up the encoding once.
    """
    return {"bytes": bytes, "text": _encode_text, "record": _encode_record}[kit.encoding]


def decoder(kit: Kit) -> Callable[[zenoh.ZBytes], Any]:
    """Return a function that converts an arrival to the kit's form."""
    texts = {"bytes": zenoh.ZBytes.to_bytes, "text": zenoh.ZBytes.to_string}
    return texts.get(kit.encoding, _decode_record)


def _encode_text(data: Any) -> str:
    return bytes(data).decode("ascii")


def _encode_record(data: Record) -> zenoh.ZBytes:
    samples = [(UInt32(i), UInt32(state), value) for i, state, value in data.samples]
    header = (UInt64(data.seq), Int64(data.send_ns))
    pose = (tuple(data.position), tuple(data.orientation))
    return z_serialize((header, data.name, pose, samples, UInt64(data.trailer_seq)))


def _decode_record(payload: zenoh.ZBytes) -> Record:
    try:
        header, name, pose, samples, trailer = z_deserialize(_RECORD, payload)
    except ZDeserializeError:
        return UNREADABLE
    plain = [(int(i), int(state), value) for i, state, value in samples]
    return Record(int(header[0]), int(header[1]), name, pose[0], pose[1], plain, int(trailer))
