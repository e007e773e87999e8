"""The point cloud of ../idl/wattwire.idl for cyclonedds, and its conversion to and from the kit.

cyclonedds evaluates annotations, so this file cannot use `from __future__ import annotations`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cyclonedds.idl import IdlStruct
from cyclonedds.idl.annotations import final
from cyclonedds.idl.types import byte, int32, sequence, uint32
from wattwire_kit import POINT_BYTES, POINT_FIELDS, Kit

FLOAT32 = 7
"""The value of PointField.FLOAT32."""


@dataclass
@final
class Time(IdlStruct, typename="builtin_interfaces.msg.Time"):
    sec: int32
    nanosec: uint32


@dataclass
@final
class Header(IdlStruct, typename="std_msgs.msg.Header"):
    stamp: Time
    frame_id: str


@dataclass
@final
class PointField(IdlStruct, typename="sensor_msgs.msg.PointField"):
    name: str
    offset: uint32
    datatype: byte
    count: uint32


@dataclass
@final
class PointCloud2(IdlStruct, typename="sensor_msgs.msg.PointCloud2"):
    header: Header
    height: uint32
    width: uint32
    fields: sequence[PointField]
    is_bigendian: bool
    point_step: uint32
    row_step: uint32
    data: sequence[byte]
    is_dense: bool


def point_cloud_encoder(kit: Kit) -> Callable[[Any], PointCloud2]:
    """Return a function that fills the data of one message; its other fields never change."""
    points = kit.spec["payload.bytes"] // POINT_BYTES
    cloud = PointCloud2(
        header=Header(Time(0, 0), "lidar"),
        height=1,
        width=points,
        fields=[PointField(name, offset, FLOAT32, 1) for name, offset in POINT_FIELDS],
        is_bigendian=False,
        point_step=POINT_BYTES,
        row_step=POINT_BYTES * points,
        data=b"",
        is_dense=False,
    )

    def encode(data: Any) -> PointCloud2:
        cloud.data = bytes(data)
        return cloud

    return encode


def decode_point_cloud(message: PointCloud2) -> bytes:
    return bytes(message.data)
