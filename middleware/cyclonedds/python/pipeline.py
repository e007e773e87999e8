"""Relay of a pipeline: it writes each message that it takes, as the reader returned it."""

from __future__ import annotations

from messages import MESSAGES, decoder
from participant import Participant, write
from topic import drain
from wattwire_kit import Kit, SendFailed


def relay(kit: Kit) -> None:
    participant = Participant(kit)
    kind = MESSAGES[kit.encoding]
    writer = participant.writer(kit.sending_topic(), kind)
    reader = participant.reader(kit.receiving_topic(), kind)
    participant.ready(participant.await_matched(writer, reader), writer)
    decode = decoder(kit)

    def poll(timeout_s: float) -> None:
        for arrived in participant.take(reader, timeout_s):
            message = kit.relay(decode(arrived))
            if message is None:
                continue
            try:
                write(writer, arrived)
            except SendFailed:
                kit.relay_failed(message)
            else:
                kit.relayed(message)

    kit.poll(poll)
    drain(kit, writer)
