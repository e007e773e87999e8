"""The interface types by encoding, and a payload as the field of one."""

from __future__ import annotations

from array import array
from typing import Any

from wattwire_kit import POINT_BYTES, POINT_FIELDS, Kit, Unsupported


def message_type(kit: Kit) -> Any:
    if kit.text:
        from std_msgs.msg import String

        return String
    if kit.encoding == "pointcloud":
        return point_cloud_types()[0]
    from wattwire_interfaces.msg import Bytes

    return Bytes


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
    """Convert `data` for a field; rclpy copies only arrays to uint8[] as a whole."""
    return data.decode("ascii", "replace") if kit.text else array("B", data)
