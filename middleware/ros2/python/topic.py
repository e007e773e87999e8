"""Topic pattern: std_msgs/String carries text, wattwire_interfaces/Bytes carries bytes."""

from __future__ import annotations

from array import array
from typing import Any

from session import Session
from wattwire_kit import Kit


def message_type(kit: Kit) -> Any:
    if kit.text:
        from std_msgs.msg import String

        return String
    from wattwire_interfaces.msg import Bytes

    return Bytes


def publish(kit: Kit) -> None:
    session = Session(kit)
    topic = f"{session.prefix}/topic"
    qos = session.qos(kit.setting("durability"))
    publisher = session.node.create_publisher(message_type(kit), topic, qos)
    message = message_type(kit)()
    discovery_ns = kit.await_peers(publisher.get_subscription_count, session.spin_once)
    granted = session.granted_qos(topic, publishers=True)
    session.ready(publisher.get_subscription_count(), discovery_ns, granted)

    def send(buffer: bytearray) -> None:
        message.data = buffer.decode("ascii") if kit.text else array("B", buffer)
        publisher.publish(message)

    def send_slot(slot: Any, buffer: bytearray) -> None:
        send(buffer)
        kit.complete(slot)

    if kit.spec["pacing"] == "native":
        session.drive(send_slot)
    else:
        kit.send_all(send)
    session.close()


def subscribe(kit: Kit) -> None:
    session = Session(kit)
    topic = f"{session.prefix}/topic"

    def on_message(message: Any) -> None:
        kit.received(message.data)

    qos = session.qos(kit.setting("durability"))
    subscription = session.node.create_subscription(message_type(kit), topic, on_message, qos)
    if hasattr(subscription, "get_publisher_count"):
        matched = subscription.get_publisher_count
    else:  # before Jazzy rclpy asks the graph only

        def matched() -> int:
            return session.node.count_publishers(topic)

    discovery_ns = kit.await_peers(matched, session.spin_once)
    session.ready(matched(), discovery_ns, session.granted_qos(topic, publishers=False))
    session.spin_until_end()
    session.close()
