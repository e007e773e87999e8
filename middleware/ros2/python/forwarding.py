"""A bridge process: serialized messages of ROS 2 to the other host, or from it to ROS 2.

The program of a bridge calls `main` with its end of the middleware between the hosts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from serialized import RosEnd
from session import Session, client_library, with_session
from topic import drain
from wattwire_kit import Kit, SendFailed, run


def forward(kit: Kit, session: Session, outer_end: Callable[[Kit, bool, bool], Any]) -> None:
    """Forward each message of one direction, and record it as a relay does (C-37)."""
    ros, is_entry = RosEnd(kit, session), kit.setting("bridge_end") == "entry"
    outer = outer_end(kit, is_entry, ros.is_reliable)
    receiving: Any = ros if is_entry else outer
    sending: Any = outer if is_entry else ros
    relay = ros.layout.relay(kit)

    def on_message(serialized: bytes) -> None:
        message = relay(serialized)
        if message is None:
            return
        try:
            sending.publish(serialized)
        except SendFailed:
            kit.relay_failed(message)
        else:
            kit.relayed(message)

    sending.advertise()
    receiving.subscribe(on_message)

    def matched() -> int:
        return int(ros.matched() + outer.matched())

    kit.await_peers(matched, session.spin_once)
    _ready(kit, session, ros, outer, matched())
    outer.watch(session.interrupt)
    session.spin_until_end()
    outer.check()  # the interruption may be a loss
    outer.close()
    if not is_entry:
        drain(kit, ros.publisher)


def _ready(kit: Kit, session: Session, ros: RosEnd, outer: Any, matched: int) -> None:
    granted = session.requested_qos()
    kit.ready(
        matched=matched,
        discovery_ns=kit.now() - session.created_ns,
        library=client_library(session.rmw),
        effective={
            "payload_offset_bytes": ros.layout.payload_offset_bytes,
            "rmw": session.rmw,
            "transports": session.transports,
            **outer.effective(),
            **granted,
        },
        guarantee=("best_effort", "per_sender", "drop_oldest"),
    )


def main(outer_end: Callable[[Kit, bool, bool], Any]) -> None:
    """Run the bridge process. `outer_end(kit, is_entry, is_reliable)` returns its other end."""

    @with_session
    def relay(kit: Kit, session: Session) -> None:
        forward(kit, session, outer_end)

    run(relay=relay)
