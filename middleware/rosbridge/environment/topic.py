"""Topic pattern of the clients in Python: the payload is the data of a std_msgs message."""

from __future__ import annotations

from session import Session
from wattwire_kit import Kit


def publish(kit: Kit) -> None:
    session = Session(kit)
    session.publish_on(kit.sending_topic())
    session.ready(session.await_connected())
    kit.send_all(session.publish)
    session.close()


def subscribe(kit: Kit) -> None:
    session = Session(kit)
    session.subscribe(kit.receiving_topic(), kit.received)
    session.ready(session.await_connected())
    kit.poll(session.poll)
    session.close()
