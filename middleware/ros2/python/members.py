"""Member of a topology: a ROS node with several publishers and subscriptions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from interfaces import (
    check_message,
    message_filler,
    message_type,
    new_message,
    payload_reader,
)
from session import Session, with_session
from topic import publish_message, publisher_count
from wattwire_kit import Kit


@with_session
def member(kit: Kit, session: Session) -> None:
    topics = {part: f"/wattwire_{part.spec['run']}/{part.sending_topic()}" for part in kit.parts}
    for part in kit.parts:
        check_message(part)
    publishers = {part: _publisher(session, part, topics[part]) for part in kit.publishers}
    counts: dict[Kit, Callable[[], int]] = {
        part: publisher.get_subscription_count for part, publisher in publishers.items()
    }
    for part in kit.subscribers:
        counts[part] = _subscribe(session, part, topics[part])

    def matched() -> int:
        return sum(min(count(), part.spec["peers.count"]) for part, count in counts.items())

    kit.await_peers(matched, session.spin_once)
    granted = {
        part: session.granted_qos(topics[part], part in publishers, part) for part in kit.parts
    }
    entries = [part.entry(counts[part](), granted[part]) for part in kit.parts]
    session.ready(
        sum(entry["matched"] for entry in entries), _weakest(list(granted.values())), entries
    )
    messages = {part: (new_message(part), message_filler(part)) for part in publishers}

    def send(part: Kit, buffer: bytearray) -> None:
        message, fill = messages[part]
        fill(message, buffer)
        publish_message(publishers[part], message)

    kit.drive_parts(send, session.spin_once)
    _drain(kit, publishers)


def _drain(kit: Kit, publishers: dict[Kit, Any]) -> None:
    """Wait for the acknowledgements of all reliable publishers, together at most `linger_ms`.

    Best effort has none. Its messages were sent while the member received for `quiet_ms`.
    """
    from rclpy.duration import Duration

    deadline_ns = kit.now() + kit.spec["linger_ms"] * 1_000_000
    for part, publisher in publishers.items():
        if part.setting("reliability") == "reliable":
            left_ns = max(0, deadline_ns - kit.now())
            publisher.wait_for_all_acked(Duration(nanoseconds=left_ns))


def _publisher(session: Session, part: Kit, topic: str) -> Any:
    qos = session.qos(part.setting("durability"), part)
    return session.node.create_publisher(message_type(part), topic, qos)


def _subscribe(session: Session, part: Kit, topic: str) -> Callable[[], int]:
    """Subscribe to a topic; return the function that counts its publishers."""
    payload_of = payload_reader(part)

    def on_message(part: Kit, message: Any) -> None:
        part.received(payload_of(message))

    qos = session.qos(part.setting("durability"), part)
    subscription = session.node.create_subscription(
        message_type(part), topic, partial(on_message, part), qos
    )
    return publisher_count(session, subscription, topic)


def _weakest(granted: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the QoS of a member, each policy of which is the weakest of its parts."""

    def weakest(policy: str, strongest: str) -> str:
        others = [qos[policy] for qos in granted if qos[policy] != strongest]
        return others[0] if others else strongest

    return {
        "reliability": weakest("reliability", "reliable"),
        "history": weakest("history", "keep_all"),
        "depth": min(qos["depth"] for qos in granted),
        "durability": weakest("durability", "transient_local"),
    }
