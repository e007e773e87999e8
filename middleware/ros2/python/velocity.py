"""A payload of 64 bytes as geometry_msgs/TwistStamped (C-44), in messages and serialized."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from fitting import check_fit
from wattwire_kit import Kit, MiddlewareFailed, Unsupported

SECOND_NS = 1_000_000_000
VELOCITY = "twist_stamped"
"""The value of settings.message with which topics carry velocity commands."""
PAYLOAD_BYTES = 64
SEQUENCE_DIGITS = 20
"""The decimal digits of the greatest sequence: frame_id has a fixed length."""
_HEADER = Struct("<Qq")
_TWIST = Struct("<6d")
_FIELDS = tuple((vector, axis) for vector in ("linear", "angular") for axis in "xyz")
# CDR of the message: sec, nanosec, length of frame_id with its NUL, frame_id, padding, six doubles.
# Each byte order has its own encapsulation, and this cell runs on little-endian machines.
_SERIALIZED = Struct(f"<4xiII{SEQUENCE_DIGITS}sx7x{_TWIST.size}s")
UNREADABLE = b""
"""The payload of a message with an invalid header: the kit counts it as corrupt."""


def is_velocity(kit: Kit) -> bool:
    """Return whether topics carry velocity commands."""
    return bool(kit.setting("message") == VELOCITY)


def check_velocity(kit: Kit) -> None:
    """Raise Unsupported if topics carry velocity commands and the payload is none of these."""
    if is_velocity(kit):
        check_fit(kit, "message", (PAYLOAD_BYTES,), "payload")


def velocity_type() -> Any:
    """Return the type TwistStamped, which small ROS installations lack."""
    try:
        from geometry_msgs.msg import TwistStamped
    except ImportError as error:
        raise Unsupported(
            f"settings.message {VELOCITY!r}; this ROS has no geometry_msgs ({error}); install "
            "ros-$ROS_DISTRO-geometry-msgs, or choose settings.message = payload"
        ) from error
    return TwistStamped


def fill(message: Any, buffer: bytes | bytearray) -> None:
    """Write a payload into a message: send time and sequence into its header, the rest as twist."""
    seq, sent_ns = _HEADER.unpack_from(buffer)
    header, twist = message.header, message.twist
    header.stamp.sec, header.stamp.nanosec = divmod(sent_ns, SECOND_NS)
    header.frame_id = f"{seq:0{SEQUENCE_DIGITS}d}"
    values = _TWIST.unpack_from(buffer, _HEADER.size)
    for (vector, axis), value in zip(_FIELDS, values, strict=True):
        setattr(getattr(twist, vector), axis, value)


def payload_of(message: Any) -> bytes:
    """Return the payload of a message, or UNREADABLE if its header is none of a node."""
    header, twist = message.header, message.twist
    values = (getattr(getattr(twist, vector), axis) for vector, axis in _FIELDS)
    stamp = header.stamp
    return _payload(stamp.sec, stamp.nanosec, header.frame_id.encode(), _TWIST.pack(*values))


def payload_within(serialized: bytes) -> bytes:
    """Return the payload of a serialized message, or UNREADABLE as `payload_of`.

    Any bytes may follow the message, as in `Kit.relay_within`.
    """
    if len(serialized) < _SERIALIZED.size:
        return UNREADABLE
    sec, nanosec, length, frame_id, twist = _SERIALIZED.unpack_from(serialized)
    return _payload(sec, nanosec, frame_id if length == SEQUENCE_DIGITS + 1 else b"", twist)


def _payload(sec: int, nanosec: int, frame_id: bytes, twist: bytes) -> bytes:
    # int() alone also accepts signs, spaces and underscores.
    is_sequence = len(frame_id) == SEQUENCE_DIGITS and frame_id.isdigit()
    seq = int(frame_id) if is_sequence else 1 << 64
    if seq >> 64 or nanosec >= SECOND_NS:
        return UNREADABLE
    return _HEADER.pack(seq, sec * SECOND_NS + nanosec) + twist


class VelocityLayout:
    """The places of the payload in serialized velocity commands, as `serialized.Layout`."""

    payload_offset_bytes = _SERIALIZED.size - _TWIST.size
    """Where the payload continues after the part that is in the header of the message."""

    def __init__(self) -> None:
        from rclpy.serialization import serialize_message

        self.message_type = velocity_type()
        payload = bytes(range(1, PAYLOAD_BYTES + 1))
        message = self.message_type()
        fill(message, payload)
        if payload_within(serialize_message(message)) != payload:
            raise MiddlewareFailed(
                "TwistStamped: the serialized message is not in the layout of CDR with "
                "little-endian numbers, so the bridge cannot read the sequence"
            )

    def relay(self, kit: Kit) -> Callable[[bytes], Any]:
        """Return the function that checks and records an arrival."""
        return lambda serialized: kit.relay(payload_within(serialized))
