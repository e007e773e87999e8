"""Topic pattern, source and sink: the payload is the data of a std_msgs message."""

from __future__ import annotations

from typing import Any

from session import Session
from wattwire_kit import Kit


def publish(kit: Kit) -> None:
    session = Session(kit)
    session.publish_on(kit.sending_topic())
    session.ready(session.await_matched())
    kit.send_all(session.publish)
    session.close()


def subscribe(kit: Kit) -> None:
    session = Session(kit)

    def on_message(message: Any) -> None:
        kit.received(message.data)

    session.subscribe(kit.receiving_topic(), on_message)
    session.ready(session.await_matched())
    kit.wait()
