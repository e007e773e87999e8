"""A bridge process: serialized messages of ROS 2 to the other host, or from it to ROS 2."""

from __future__ import annotations

from typing import Any

from ros_end import RosEnd
from session import Session, package_version, with_session
from wattwire_kit import Kit, SendFailed, run
from zenoh_end import OuterEnd


@with_session
def forward(kit: Kit, session: Session) -> None:
    """Forward each message of one direction, and record it as a relay does (C-37)."""
    ros, is_entry = RosEnd(kit, session), kit.setting("bridge_end") == "entry"
    outer = OuterEnd(kit, is_entry, ros.is_reliable)
    receiving: Any = ros if is_entry else outer
    sending: Any = outer if is_entry else ros
    payload_of = ros.layout.payload

    def on_message(serialized: bytes) -> None:
        message = kit.relay(payload_of(serialized))
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
    kit.poll(lambda timeout_s: (session.spin_once(timeout_s), outer.check()))
    outer.close()
    if not is_entry:
        _drain(kit, ros.publisher)


def _ready(kit: Kit, session: Session, ros: RosEnd, outer: OuterEnd, matched: int) -> None:
    granted = session.requested_qos()
    kit.ready(
        matched=matched,
        discovery_ns=kit.now() - session.created_ns,
        library=("rclpy", package_version("rclpy"), f"rcl {package_version('rcl')}"),
        effective={
            "bridge_end": kit.setting("bridge_end"),
            "payload_offset_bytes": ros.layout.begin,
            "rmw": session.rmw,
            "transports": session.transports,
            "discovery": kit.setting("discovery"),
            **outer.effective(),
            **granted,
        },
        guarantee=("best_effort", "per_sender", "drop_oldest"),
    )


def _drain(kit: Kit, publisher: Any) -> None:
    """Keep the publisher until its messages are acknowledged."""
    from topic import drain

    drain(kit, publisher)


if __name__ == "__main__":
    run(
        roles={"relay": forward},
        settings={
            "reliability": str,
            "history": str,
            "depth": int,
            "durability": str,
            "rmw": str,
            "rmw_profile": str,
            "transports": str,
            "domain": int,
            "discovery": str,
            "late_feedback": str,
            "executor": str,
            "array": str,
            "bridge_end": str,
        },
        capabilities=("encoding.bytes", "encoding.text", "loop.open", "literal"),
    )
