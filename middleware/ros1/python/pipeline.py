"""Relay of a pipeline: it publishes each payload, unchanged, from the callback."""

from __future__ import annotations

from typing import Any

from session import Session
from wattwire_kit import Kit, SendFailed


def relay(kit: Kit) -> None:
    session = Session(kit)

    def on_message(arrived: Any) -> None:
        message = kit.relay(arrived.data)
        if message is None:
            return
        try:
            session.publish(arrived.data)
        except SendFailed:
            kit.relay_failed(message)
        else:
            kit.relayed(message)

    session.publish_on(kit.sending_topic())
    session.subscribe(kit.receiving_topic(), on_message)
    session.ready(session.await_matched())
    kit.wait()
    session.close()
