"""Pingpong over two topics of the bridge."""

from __future__ import annotations

from collections import deque
from typing import Any

from answering import pong
from session import Session
from wattwire_kit import Kit

__all__ = ["ping", "pong"]


def ping(kit: Kit) -> None:
    session = Session(kit)
    replies: deque[Any] = deque()

    def call(buffer: bytearray, timeout_s: float) -> Any:
        deadline_ns = kit.now() + int(timeout_s * 1e9)
        session.publish(buffer)
        while (left_ns := deadline_ns - kit.now()) > 0:
            session.poll(left_ns / 1e9)
            # A std_msgs message has no call number: only the payload identifies the call.
            while replies:
                reply = replies.popleft()
                if kit.is_reply(reply):
                    return reply
        return None

    session.publish_on("request")
    session.subscribe("reply", replies.append)
    session.await_connected()
    kit.probe(call)
    session.ready(kit.now() - session.begin_ns)
    kit.call_all(call)
    session.close()
