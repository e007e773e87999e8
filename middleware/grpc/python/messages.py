"""Conversion of payloads to the messages of wattwire.proto, and READY of both roles."""

from __future__ import annotations

import sys
from typing import Any

import grpc
import wattwire_pb2 as proto
from wattwire_kit import Kit, Record

GUARANTEE = ("reliable", "none", "block")
LIBRARY = ("grpcio", grpc.__version__, f"CPython {sys.version.split()[0]}")


def method(kit: Kit) -> str:
    """Return the procedure for the run's payloads."""
    return "Text" if kit.spec["payload.literal"] else kit.encoding.capitalize()


def to_message(kit: Kit, payload: Any) -> Any:
    name = method(kit)
    if name == "Bytes":
        return proto.BytesPayload(data=bytes(payload))
    if name == "Text":
        return proto.TextPayload(data=bytes(payload).decode())
    return proto.RecordPayload(
        header=proto.Header(seq=payload.seq, send_ns=payload.send_ns),
        name=payload.name,
        pose=proto.Pose(
            position=proto.Position(**dict(zip("xyz", payload.position, strict=True))),
            orientation=proto.Orientation(**dict(zip("xyzw", payload.orientation, strict=True))),
        ),
        samples=[proto.Sample(id=i, state=s, value=v) for i, s, v in payload.samples],
        trailer=proto.Trailer(seq=payload.trailer_seq),
    )


def to_payload(message: Any) -> Any:
    if not isinstance(message, proto.RecordPayload):
        return message.data
    at, turned = message.pose.position, message.pose.orientation
    return Record(
        message.header.seq,
        message.header.send_ns,
        message.name,
        (at.x, at.y, at.z),
        (turned.x, turned.y, turned.z, turned.w),
        [(sample.id, sample.state, sample.value) for sample in message.samples],
        message.trailer.seq,
    )


def effective(kit: Kit, workers: int, keeps: bool) -> dict[str, Any]:
    return {
        "keep_alive": keeps,
        "tls": "on" if kit.spec["tls.authority"] else "none",
        "server_workers": workers,
        "transport": "http/2 over tcp",
    }
