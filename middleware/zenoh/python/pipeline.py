"""Relay of a pipeline: it puts each payload, unchanged, from the callback."""

from __future__ import annotations

import zenoh
from messages import decoder
from session import Session, with_session
from topic import declare_publisher, publisher_of, reliability_of, subscriber_of
from wattwire_kit import Kit


@with_session(listens=True, connects=True)
def relay(kit: Kit, session: Session) -> None:
    topic, next_topic = kit.receiving_topic(), kit.sending_topic()
    publisher = declare_publisher(kit, session, next_topic)
    decode = decoder(kit)

    def on_sample(sample: zenoh.Sample) -> None:
        message = kit.relay(decode(sample.payload))
        if message is None:
            return
        try:
            publisher.put(sample.payload)
        except zenoh.ZError:
            kit.relay_failed(message)
        else:
            kit.relayed(message)

    session.keep(session.zenoh.declare_subscriber(f"{session.prefix}/{topic}", on_sample))
    session.announce(subscriber_of(topic), publisher_of(topic))
    matched = session.await_peers(
        publisher_of(next_topic),
        subscriber_of(next_topic),
        lambda: publisher.matching_status.matching,
    )
    session.ready(matched, publisher.congestion_control, reliability_of(publisher))
    kit.wait()
