"""The ROS 2 end of a bridge: serialized messages in and out, and where they hold the payload."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interfaces import field_maker, message_type, new_message
from session import Session
from topic import publisher_count
from velocity import VelocityLayout, is_velocity
from wattwire_kit import Kit, MiddlewareFailed, SendFailed

MARK = 0x5A
"""The byte that fills the payload of the message from which the layout is computed."""


class Layout:
    """The place of the payload in the serialized messages of one type and payload length."""

    def __init__(self, kit: Kit) -> None:
        from rclpy.serialization import serialize_message

        length = len(kit.spec["payload.literal"].encode()) or kit.spec["payload.bytes"]
        fill = bytes([MARK]) * length
        self.message_type = message_type(kit)
        message = new_message(kit)
        empty = serialize_message(message)
        message.data = field_maker(kit)(bytearray(fill))
        serialized = serialize_message(message)
        # Without a payload, it would begin where the shorter message ends.
        begin = serialized.find(fill) if length else len(empty)
        self.head = serialized[:begin]
        """The bytes before the payload, such as its length, which are equal in all messages."""
        if begin < 0:
            raise MiddlewareFailed(
                f"{self.message_type.__name__}: the serialized message does not contain its "
                "payload in one piece, so the bridge cannot read the sequence"
            )

    @property
    def payload_offset_bytes(self) -> int:
        return len(self.head)

    def relay(self, kit: Kit) -> Callable[[bytes], Any]:
        """Return the function that checks and records an arrival."""
        return kit.relay_within(self.head)


class RosEnd:
    """Publisher or subscription of serialized messages, with the QoS of the settings."""

    def __init__(self, kit: Kit, session: Session) -> None:
        from rclpy.impl.implementation_singleton import rclpy_implementation

        self._rejected = rclpy_implementation.RCLError  # rclpy has no public name for the error
        self.kit, self.session = kit, session
        self.layout = VelocityLayout() if is_velocity(kit) else Layout(kit)
        self.qos = session.qos(kit.setting("durability"))
        self.publisher: Any = None
        self._matched: Callable[[], int] = lambda: 0

    def subscribe(self, on_message: Callable[[bytes], None]) -> None:
        topic = f"{self.session.prefix}/{self.kit.receiving_topic()}"
        subscription = self.session.node.create_subscription(
            self.layout.message_type, topic, on_message, self.qos, raw=True
        )
        self._matched = publisher_count(self.session, subscription, topic)

    def advertise(self) -> None:
        topic = f"{self.session.prefix}/{self.kit.sending_topic()}"
        self.publisher = self.session.node.create_publisher(
            self.layout.message_type, topic, self.qos
        )
        self._matched = self.publisher.get_subscription_count

    def publish(self, serialized: bytes) -> None:
        """Publish a serialized message. Raise SendFailed if the RMW rejects it."""
        try:
            self.publisher.publish(serialized)
        except self._rejected as error:
            raise SendFailed(str(error)) from error

    def matched(self) -> int:
        return min(1, self._matched())

    @property
    def is_reliable(self) -> bool:
        return bool(self.kit.setting("reliability") == "reliable")
