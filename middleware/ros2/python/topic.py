"""Topic pattern, source and sink: one ROS topic of the encoding's message type."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from interfaces import message_filler, message_type, new_message, payload_reader
from session import Session, with_session
from wattwire_kit import Kit, SendFailed


@with_session
def publish(kit: Kit, session: Session) -> None:
    topic = f"{session.prefix}/{kit.sending_topic()}"
    qos = session.qos(kit.setting("durability"))
    publisher = session.node.create_publisher(message_type(kit), topic, qos)
    message = new_message(kit)
    fill = message_filler(kit)
    kit.await_peers(publisher.get_subscription_count, session.spin_once)
    granted = session.granted_qos(topic, publishers=True)
    session.ready(publisher.get_subscription_count(), granted)

    def send(buffer: bytearray) -> None:
        fill(message, buffer)
        publish_message(publisher, message)

    def send_slot(slot: Any, buffer: bytearray) -> None:
        try:
            send(buffer)
        except SendFailed:
            kit.fail(slot)
        else:
            kit.complete(slot)

    if kit.spec["pacing"] == "native":
        session.drive(send_slot)
    else:
        kit.send_all(send)
    drain(kit, publisher)


def publish_message(publisher: Any, message: Any) -> None:
    """Publish a message; raise SendFailed if the RMW rejects it, such as a full keep_all history.

    rclpy has no public name for the error.
    """
    from rclpy.impl.implementation_singleton import rclpy_implementation

    try:
        publisher.publish(message)
    except rclpy_implementation.RCLError as error:
        raise SendFailed(str(error)) from error


def drain(kit: Kit, publisher: Any) -> None:
    """Keep the publisher until its messages are sent; without its endpoint they would be lost.

    Reliable QoS waits for acknowledgements. Best effort has none, so this waits for `quiet_ms`.
    """
    from rclpy.duration import Duration

    if kit.setting("reliability") == "reliable":
        publisher.wait_for_all_acked(Duration(seconds=kit.spec["linger_ms"] / 1000))
    else:
        time.sleep(kit.spec["quiet_ms"] / 1000)


@with_session
def subscribe(kit: Kit, session: Session) -> None:
    topic = f"{session.prefix}/{kit.receiving_topic()}"
    payload_of = payload_reader(kit)

    def on_message(message: Any) -> None:
        kit.received(payload_of(message))

    qos = session.qos(kit.setting("durability"))
    subscription = session.node.create_subscription(message_type(kit), topic, on_message, qos)
    matched = publisher_count(session, subscription, topic)
    kit.await_peers(matched, session.spin_once)
    session.ready(matched(), session.granted_qos(topic, publishers=False))
    session.spin_until_end()


def publisher_count(session: Session, subscription: Any, topic: str) -> Callable[[], int]:
    """Return a function that returns the number of publishers of a subscription."""
    if hasattr(subscription, "get_publisher_count"):
        return subscription.get_publisher_count
    # rclpy before Jazzy reports only the graph.
    return lambda: session.node.count_publishers(topic)
