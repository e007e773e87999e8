"""Topic pattern: one key expression, its payload is the message."""

from __future__ import annotations

from typing import Any

import zenoh
from messages import decoder, encoder
from session import Session, with_session
from wattwire_kit import Kit, SendFailed


@with_session(listens=False)
def publish(kit: Kit, session: Session) -> None:
    publisher = session.zenoh.declare_publisher(
        f"{session.prefix}/topic",
        congestion_control=session.congestion(zenoh.CongestionControl.DROP),
        express=kit.setting("express"),
        reliability=getattr(zenoh.Reliability, kit.setting("reliability").upper()),
    )

    encode = encoder(kit)

    def send(buffer: Any) -> None:
        try:
            publisher.put(encode(buffer))
        except zenoh.ZError as error:
            raise SendFailed(str(error)) from error

    matched = session.await_peers(
        "publisher", "subscriber", lambda: publisher.matching_status.matching
    )
    reliability = str(publisher.reliability).rpartition(".")[2].lower()
    session.ready(matched, publisher.congestion_control, reliability)
    kit.send_all(send)


@with_session(listens=True)
def subscribe(kit: Kit, session: Session) -> None:
    decode = decoder(kit)

    def on_sample(sample: zenoh.Sample) -> None:
        kit.received(decode(sample.payload))

    session.keep(session.zenoh.declare_subscriber(f"{session.prefix}/topic", on_sample))
    matched = session.await_peers("subscriber", "publisher")
    congestion = session.congestion(zenoh.CongestionControl.DROP)
    session.ready(matched, congestion, kit.setting("reliability"))
    kit.wait()
