"""Pingpong over two topics. `wait` selects how ping waits for the reply."""

from __future__ import annotations

import queue
from typing import Any

import rospy
from session import Session
from wattwire_kit import Kit, MiddlewareFailed, Unsupported

RATE_HZ = 100


def pong(kit: Kit) -> None:
    session = Session(kit)

    def on_request(request: Any) -> None:
        reply = kit.serve(request.data)
        if reply is None:
            return
        session.publish(reply)
        kit.served()

    # wait_for_message subscribes anew for each reply, and only a latched one reaches it in time.
    session.publish_on("reply", latch=kit.setting("wait") == "poll")
    session.subscribe("request", on_request)
    session.ready(session.await_matched())
    kit.wait()
    session.close()


class Waiting:
    """Waits for the reply to the open call, in one of three ways."""

    def __init__(self, kit: Kit, session: Session) -> None:
        self._kit = kit
        self._session = session
        self._replies: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.reply = getattr(self, f"_by_{kit.setting('wait')}")
        if kit.setting("wait") != "poll":
            session.subscribe("reply", lambda message: self._replies.put(message.data))
        elif not kit.carries_seq or kit.spec["reply"] == "literal":
            raise Unsupported(
                "settings.wait = 'poll' with replies without a sequence: a latched reply to an "
                "earlier call looks the same; use 'callback' or 'rate'"
            )

    def _by_callback(self, left_s: float) -> Any:
        """Wait until the callback has queued a reply; return None at the timeout."""
        try:
            return self._replies.get(timeout=left_s)
        except queue.Empty:
            return None

    def _by_rate(self, left_s: float) -> Any:
        """Look for a reply every 10 ms, as loops with rospy.Rate(100) do."""
        deadline_ns = self._kit.now() + int(left_s * 1e9)
        rate = rospy.Rate(RATE_HZ)
        while self._replies.empty():
            if self._kit.now() > deadline_ns:
                return None
            rate.sleep()
        return self._replies.get()

    def _by_poll(self, left_s: float) -> Any:
        """Use wait_for_message, which subscribes and then looks every 10 ms."""
        session = self._session
        try:
            return rospy.wait_for_message(session.name("reply"), session.type, left_s).data
        except rospy.ROSException:
            return None
        except OSError as error:
            raise MiddlewareFailed(f"the master was lost: {error}") from error


def ping(kit: Kit) -> None:
    session = Session(kit)
    session.publish_on("request")
    waiting = Waiting(kit, session)

    def call(buffer: bytearray, timeout_s: float) -> Any:
        deadline_ns = kit.now() + int(timeout_s * 1e9)
        session.publish(buffer)
        while (left_ns := deadline_ns - kit.now()) > 0:
            reply = waiting.reply(left_ns / 1e9)
            # A std_msgs message has no call number: only the payload identifies the call.
            if reply is not None and kit.is_reply(reply):
                return reply
        return None

    session.await_matched()
    kit.probe(call)
    session.ready(kit.now() - session.begin_ns)
    kit.call_all(call)
    session.close()
