"""Relay of a pipeline: it publishes each message, as it arrived, from the callback."""

from __future__ import annotations

from typing import Any

from interfaces import message_type, payload_reader
from session import Session, with_session
from topic import drain, publish_message, publisher_count
from wattwire_kit import Kit, SendFailed


@with_session
def relay(kit: Kit, session: Session) -> None:
    kind, payload_of = message_type(kit), payload_reader(kit)
    qos = session.qos(kit.setting("durability"))
    next_topic = f"{session.prefix}/{kit.sending_topic()}"
    topic = f"{session.prefix}/{kit.receiving_topic()}"
    publisher = session.node.create_publisher(kind, next_topic, qos)

    def on_message(arrived: Any) -> None:
        message = kit.relay(payload_of(arrived))
        if message is None:
            return
        try:
            publish_message(publisher, arrived)
        except SendFailed:
            kit.relay_failed(message)
        else:
            kit.relayed(message)

    subscription = session.node.create_subscription(kind, topic, on_message, qos)
    publishers = publisher_count(session, subscription, topic)

    def matched() -> int:
        return 1 + publishers() if publisher.get_subscription_count() else 0

    kit.await_peers(matched, session.spin_once)
    session.ready(matched(), session.granted_qos(next_topic, publishers=True))
    session.spin_until_end()
    drain(kit, publisher)
