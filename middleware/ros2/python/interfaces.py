"""Our interface types by encoding, and a payload as the field of one."""

from __future__ import annotations

from array import array
from typing import Any

from wattwire_kit import Kit


def message_type(kit: Kit) -> Any:
    if kit.text:
        from std_msgs.msg import String

        return String
    from wattwire_interfaces.msg import Bytes

    return Bytes


def service_type(kit: Kit) -> Any:
    from wattwire_interfaces.srv import ExchangeBytes, ExchangeText

    return ExchangeText if kit.text else ExchangeBytes


def action_type(kit: Kit) -> Any:
    from wattwire_interfaces.action import PerformBytes, PerformText

    return PerformText if kit.text else PerformBytes


def field_of(kit: Kit, data: bytes | bytearray) -> Any:
    """Convert `data` for a field; rclpy copies only arrays to uint8[] as a whole."""
    return data.decode("ascii", "replace") if kit.text else array("B", data)
