"""Topic pattern, source and sink: one DDS topic of the encoding's type."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from messages import MESSAGES, decoder, encoder
from participant import DDSException, Participant, write
from wattwire_kit import Kit


def publish(kit: Kit) -> None:
    participant = Participant(kit)
    writer = participant.writer(kit.sending_topic(), MESSAGES[kit.encoding])
    participant.ready(participant.await_matched(writer=writer), writer)
    encode = encoder(kit)
    kit.send_all(lambda buffer: write(writer, encode(buffer)))
    drain(kit, writer)


def drain(kit: Kit, writer: Any) -> None:
    """Keep the writer until its messages are acknowledged; without it they would be lost.

    Best effort has no acknowledgements, so this waits for `quiet_ms` instead.
    """
    if kit.setting("reliability") == "best_effort":
        time.sleep(kit.spec["quiet_ms"] / 1000)
        return
    # At a timeout, cyclonedds 11 raises AttributeError because of a wrong name in its code.
    with suppress(AttributeError, DDSException):
        writer.wait_for_acks(kit.spec["linger_ms"] * 1_000_000)


def subscribe(kit: Kit) -> None:
    participant = Participant(kit)
    reader = participant.reader(kit.receiving_topic(), MESSAGES[kit.encoding])
    participant.ready(participant.await_matched(reader=reader), reader)

    decode = decoder(kit)

    def poll(timeout_s: float) -> None:
        for message in participant.take(reader, timeout_s):
            kit.received(decode(message))

    kit.poll(poll)
