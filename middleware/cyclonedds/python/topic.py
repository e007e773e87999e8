"""Topic pattern: one DDS topic of the encoding's type."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from messages import MESSAGES, decoder, encoder
from participant import DDSException, Participant, write
from wattwire_kit import Kit


def publish(kit: Kit) -> None:
    participant = Participant(kit)
    writer = participant.writer("topic", MESSAGES[kit.encoding])
    participant.ready(participant.await_matched(writer=writer), writer)
    encode = encoder(kit)
    kit.send_all(lambda buffer: write(writer, encode(buffer)))
    drain(kit, writer)


def drain(kit: Kit, writer: Any) -> None:
    """Keeps the writer until its messages are acknowledged: with it they would be gone.

    Of best effort nobody tells, and silence must do.
    """
    if kit.setting("reliability") == "best_effort":
        time.sleep(kit.spec["quiet_ms"] / 1000)
        return
    # Where the time is up cyclonedds 11 trips over its own name for that: an AttributeError.
    with suppress(AttributeError, DDSException):
        writer.wait_for_acks(kit.spec["linger_ms"] * 1_000_000)


def subscribe(kit: Kit) -> None:
    participant = Participant(kit)
    reader = participant.reader("topic", MESSAGES[kit.encoding])
    participant.ready(participant.await_matched(reader=reader), reader)

    decode = decoder(kit)

    def poll(timeout_s: float) -> None:
        for message in participant.take(reader, timeout_s):
            kit.received(decode(message))

    kit.poll(poll)
