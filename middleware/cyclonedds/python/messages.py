"""The types of ../idl/wattwire.idl for cyclonedds, and their conversion to and from the kit.

cyclonedds evaluates annotations, so this file cannot use `from __future__ import annotations`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cyclonedds.idl import IdlStruct
from cyclonedds.idl.annotations import final
from cyclonedds.idl.types import byte, float64, int64, sequence, uint32, uint64
from point_cloud import PointCloud2, decode_point_cloud, point_cloud_encoder
from wattwire_kit import Kit
from wattwire_kit import Record as KitRecord


@dataclass
@final
class Bytes(IdlStruct, typename="wattwire.Bytes"):
    data: sequence[byte]


@dataclass
@final
class Text(IdlStruct, typename="wattwire.Text"):
    data: str


@dataclass
@final
class Header(IdlStruct, typename="wattwire.Header"):
    seq: uint64
    send_ns: int64


@dataclass
@final
class Position(IdlStruct, typename="wattwire.Position"):
    x: float64
    y: float64
    z: float64


@dataclass
@final
class Orientation(IdlStruct, typename="wattwire.Orientation"):
    x: float64
    y: float64
    z: float64
    w: float64


@dataclass
@final
class Pose(IdlStruct, typename="wattwire.Pose"):
    position: Position
    orientation: Orientation


@dataclass
@final
class Sample(IdlStruct, typename="wattwire.Sample"):
    id: uint32
    state: uint32
    value: float64


@dataclass
@final
class Trailer(IdlStruct, typename="wattwire.Trailer"):
    seq: uint64


@dataclass
@final
class Record(IdlStruct, typename="wattwire.Record"):
    header: Header
    name: str
    pose: Pose
    samples: sequence[Sample]
    trailer: Trailer


@dataclass
@final
class Call(IdlStruct, typename="wattwire.Call"):
    client: uint32
    number: uint64


@dataclass
@final
class BytesCall(IdlStruct, typename="wattwire.BytesCall"):
    call: Call
    body: Bytes


@dataclass
@final
class TextCall(IdlStruct, typename="wattwire.TextCall"):
    call: Call
    body: Text


@dataclass
@final
class RecordCall(IdlStruct, typename="wattwire.RecordCall"):
    call: Call
    body: Record


MESSAGES = {"bytes": Bytes, "text": Text, "record": Record, "pointcloud": PointCloud2}
CALLS = {"bytes": BytesCall, "text": TextCall, "record": RecordCall}


def encoder(kit: Kit) -> Callable[[Any], Any]:
    """Return a function that converts the kit's buffer or reply to a DDS message.

    This looks up the encoding once, not for each message.
    """
    if kit.encoding == "pointcloud":
        return point_cloud_encoder(kit)
    return {"bytes": _encode_bytes, "text": _encode_text, "record": _encode_record}[kit.encoding]


def decoder(kit: Kit) -> Callable[[Any], Any]:
    """Return a function that converts an arrival to the kit's form."""
    return {
        "bytes": _decode_bytes,
        "text": _decode_text,
        "record": _decode_record,
        "pointcloud": decode_point_cloud,
    }[kit.encoding]


def _encode_bytes(data: Any) -> Bytes:
    return Bytes(bytes(data))


def _encode_text(data: Any) -> Text:
    return Text(bytes(data).decode("ascii"))


def _encode_record(data: KitRecord) -> Record:
    return Record(
        Header(data.seq, data.send_ns),
        data.name,
        Pose(Position(*data.position), Orientation(*data.orientation)),
        [Sample(*sample) for sample in data.samples],
        Trailer(data.trailer_seq),
    )


def _decode_bytes(message: Bytes) -> bytes:
    return bytes(message.data)


def _decode_text(message: Text) -> str:
    return message.data


def _decode_record(message: Record) -> KitRecord:
    pose = message.pose
    return KitRecord(
        message.header.seq,
        message.header.send_ns,
        message.name,
        (pose.position.x, pose.position.y, pose.position.z),
        (pose.orientation.x, pose.orientation.y, pose.orientation.z, pose.orientation.w),
        [(sample.id, sample.state, sample.value) for sample in message.samples],
        message.trailer.seq,
    )
