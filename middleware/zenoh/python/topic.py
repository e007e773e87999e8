"""Topic pattern, source and sink: one key expression, its payload is the message."""

from __future__ import annotations

import time
from typing import Any

import zenoh
from messages import decoder, encoder
from session import Session, with_session
from wattwire_kit import Kit, SendFailed


@with_session(listens=False, connects=True)
def publish(kit: Kit, session: Session) -> None:
    topic = kit.sending_topic()
    publisher = declare_publisher(kit, session, topic)
    encode = encoder(kit)

    def send(buffer: Any) -> None:
        try:
            publisher.put(encode(buffer))
        except zenoh.ZError as error:
            raise SendFailed(str(error)) from error

    matched = session.await_peers(
        publisher_of(topic), subscriber_of(topic), lambda: publisher.matching_status.matching
    )
    session.ready(matched, publisher.congestion_control, reliability_of(publisher))
    kit.send_all(send)
    if kit.spec["pattern"] == "pipeline":
        # Relays send references to this process's shared memory, which ends with the process.
        time.sleep(kit.spec["quiet_ms"] / 1000)


def declare_publisher(kit: Kit, session: Session, topic: str) -> zenoh.Publisher:
    return session.zenoh.declare_publisher(
        f"{session.prefix}/{topic}",
        congestion_control=session.congestion(zenoh.CongestionControl.DROP),
        express=kit.setting("express"),
        reliability=getattr(zenoh.Reliability, kit.setting("reliability").upper()),
    )


def reliability_of(publisher: zenoh.Publisher) -> str:
    return str(publisher.reliability).rpartition(".")[2].lower()


def publisher_of(topic: str) -> str:
    """Return the role in the liveliness tokens of the nodes that send on a topic or channel."""
    return "publisher" if topic == "topic" else f"{topic}_publisher"


def subscriber_of(topic: str) -> str:
    """Return the role in the liveliness tokens of the nodes that receive on a topic or channel."""
    return "subscriber" if topic == "topic" else f"{topic}_subscriber"


@with_session(listens=True, connects=False)
def subscribe(kit: Kit, session: Session) -> None:
    decode = decoder(kit)

    def on_sample(sample: zenoh.Sample) -> None:
        kit.received(decode(sample.payload))

    topic = kit.receiving_topic()
    session.keep(session.zenoh.declare_subscriber(f"{session.prefix}/{topic}", on_sample))
    matched = session.await_peers(subscriber_of(topic), publisher_of(topic))
    congestion = session.congestion(zenoh.CongestionControl.DROP)
    session.ready(matched, congestion, kit.setting("reliability"))
    kit.wait()
