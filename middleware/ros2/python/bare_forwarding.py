"""A bare loop between ROS 2 and another library: the peer of a bridge in `python -m bench bridges`.

A bridge's folder contains its end of the other library (`bare.py`). The node, its executor, the
message type and the QoS are those of the bridge, and each message is handed over on the same
thread. The kit starts and ends the process; none of its code handles a message, so the loop
neither reads, checks nor records it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from interfaces import message_type
from session import Session, client_library, with_session
from topic import publisher_count
from wattwire_kit import Kit, run


class OuterLibrary(Protocol):
    """The end of the library between the hosts."""

    send: Callable[[bytes], Any]
    """Of an entry: the library's own call that sends a message."""

    def subscribe(self, on_message: Callable[[bytes], Any]) -> None:
        """Call `on_message` for each message, on a thread of the library."""

    def matched(self) -> int:
        """Return 1 if the other end receives what this end sends, or if this end only receives."""

    def close(self) -> None:
        """End the connection."""


def forward(kit: Kit, session: Session, outer_library: Callable[[Kit, bool], OuterLibrary]) -> None:
    """Connect both libraries by their callbacks until the kit ends the window."""
    is_entry = kit.setting("bridge_end") == "entry"
    outer, node = outer_library(kit, is_entry), session.node
    qos = session.qos(kit.setting("durability"))
    if is_entry:
        topic = f"{session.prefix}/{kit.receiving_topic()}"

        # rclpy inspects a callback for each message, and Python's functions are the fastest.
        def on_message(serialized: bytes) -> None:
            outer.send(serialized)

        end = node.create_subscription(message_type(kit), topic, on_message, qos, raw=True)
        matched = publisher_count(session, end, topic)
    else:
        topic = f"{session.prefix}/{kit.sending_topic()}"
        end = node.create_publisher(message_type(kit), topic, qos)
        matched = end.get_subscription_count
        outer.subscribe(end.publish)

    def both_matched() -> int:
        return min(1, matched()) + outer.matched()

    kit.await_peers(both_matched, session.spin_once)
    kit.ready(
        matched=both_matched(),
        discovery_ns=kit.now() - session.created_ns,
        library=client_library(session.rmw),
        effective={"transports": session.transports},
        guarantee=("best_effort", "per_sender", "drop_oldest"),
    )
    session.spin_until_end()
    outer.close()


def main(outer_library: Callable[[Kit, bool], OuterLibrary]) -> None:
    """Run the loop. `outer_library(kit, is_entry)` opens the connection to the other end."""

    @with_session
    def relay(kit: Kit, session: Session) -> None:
        forward(kit, session, outer_library)

    run(relay=relay)
