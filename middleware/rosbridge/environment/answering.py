"""The pong of the clients in Python."""

from __future__ import annotations

from typing import Any

from session import Session
from wattwire_kit import Kit


def pong(kit: Kit) -> None:
    session = Session(kit)

    def on_request(request: Any) -> None:
        reply = kit.serve(request)
        if reply is None:
            return
        session.publish(reply)
        kit.served()

    # A ping that subscribes anew for each reply (`wait = poll`) receives only a latched one.
    session.publish_on("reply", latch=kit.setting("wait") == "poll")
    session.subscribe("request", on_request)
    session.ready(session.await_connected())
    kit.poll(session.poll)
    session.close()
