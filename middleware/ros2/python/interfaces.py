"""The interface types by encoding, and a payload as the field of one."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any

import velocity
from fitting import check_fit
from wattwire_kit import POINT_BYTES, POINT_FIELDS, Kit, Unsupported

ARRAYS = {
    1024: "Array1k",
    4096: "Array4k",
    16_384: "Array16k",
    65_536: "Array64k",
    262_144: "Array256k",
    1_048_576: "Array1m",
    2_097_152: "Array2m",
}
"""The messages with a fixed array, by its length in bytes."""


def message_type(kit: Kit) -> Any:
    if kit.text:
        from std_msgs.msg import String

        return String
    if kit.encoding == "pointcloud":
        return point_cloud_types()[0]
    if velocity.is_velocity(kit):
        return velocity.velocity_type()
    if kit.setting("array") == "fixed":
        return array_type(kit)
    from wattwire_interfaces.msg import Bytes

    return Bytes


def array_type(kit: Kit) -> Any:
    """Return the message type whose fixed array has the payload's length."""
    from wattwire_interfaces import msg

    return getattr(msg, ARRAYS[kit.spec["payload.bytes"]])


def check_message(kit: Kit) -> None:
    """Raise Unsupported if the type of messages that the settings select does not fit the run."""
    if kit.setting("array") == "fixed":
        check_fit(kit, "array", ARRAYS, "sequence")
    velocity.check_velocity(kit)


def point_cloud_types() -> tuple[Any, Any]:
    """Return the types PointCloud2 and PointField, which small ROS installations lack."""
    try:
        from sensor_msgs.msg import PointCloud2, PointField
    except ImportError as error:
        raise Unsupported(f"encoding.pointcloud; this ROS has no sensor_msgs ({error})") from error
    return PointCloud2, PointField


def new_message(kit: Kit) -> Any:
    """Return a message without data; only the data differ between the messages of a run."""
    if kit.encoding != "pointcloud":
        return message_type(kit)()
    from std_msgs.msg import Header

    cloud_type, field_type = point_cloud_types()
    fields = [
        field_type(name=name, offset=offset, datatype=field_type.FLOAT32, count=1)
        for name, offset in POINT_FIELDS
    ]
    points = kit.spec["payload.bytes"] // POINT_BYTES
    return cloud_type(
        header=Header(frame_id="lidar"),
        height=1,
        width=points,
        fields=fields,
        point_step=POINT_BYTES,
        row_step=POINT_BYTES * points,
    )


def service_type(kit: Kit) -> Any:
    from wattwire_interfaces.srv import ExchangeBytes, ExchangeText

    return ExchangeText if kit.text else ExchangeBytes


def action_type(kit: Kit) -> Any:
    from wattwire_interfaces.action import PerformBytes, PerformText

    return PerformText if kit.text else PerformBytes


def field_of(kit: Kit, data: bytes | bytearray) -> Any:
    """Convert `data` for a field of variable length.

    rclpy copies only arrays to uint8[] as a whole.
    """
    return data.decode("ascii", "replace") if kit.text else array("B", data)


def message_filler(kit: Kit) -> Callable[[Any, bytearray], None]:
    """Return a function that writes the kit's buffer into a topic's message."""
    if velocity.is_velocity(kit):
        return velocity.fill
    field = field_maker(kit)

    def fill(message: Any, buffer: bytearray) -> None:
        message.data = field(buffer)

    return fill


def payload_reader(kit: Kit) -> Callable[[Any], Any]:
    """Return a function that returns the payload of a topic's message."""
    return velocity.payload_of if velocity.is_velocity(kit) else attrgetter("data")


def field_maker(kit: Kit) -> Callable[[bytearray], Any]:
    """Return a function that converts the kit's buffer for the data of a topic's message.

    rclpy has NumPy's arrays for uint8[N]; this one is a view of the kit's buffer.
    """
    if kit.setting("array") != "fixed":
        return partial(field_of, kit)
    import numpy

    return partial(numpy.frombuffer, dtype=numpy.uint8)
