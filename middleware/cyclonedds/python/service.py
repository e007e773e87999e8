"""Service and pingpong patterns: a topic for requests and a topic for replies, matched by number.

Every client reads all replies and drops the replies to other clients, as usual over DDS.
"""

from __future__ import annotations

from typing import Any

from messages import CALLS, Call, decoder, encoder
from participant import Participant, write
from wattwire_kit import Kit, SendFailed


def serve(kit: Kit) -> None:
    participant = Participant(kit)
    kind = CALLS[kit.encoding]
    encode, decode = encoder(kit), decoder(kit)
    replies = participant.writer("reply", kind)
    requests = participant.reader("request", kind)
    participant.ready(participant.await_matched(replies, requests), requests)

    answer, served = kit.serve, kit.served

    def poll(timeout_s: float) -> None:
        for request in participant.take(requests, timeout_s):
            reply = answer(decode(request.body))
            if reply is None:
                continue
            try:
                write(replies, kind(request.call, encode(reply)))
            except SendFailed:
                continue
            served()

    kit.poll(poll)


def call(kit: Kit) -> None:
    participant = Participant(kit)
    kind = CALLS[kit.encoding]
    encode, decode = encoder(kit), decoder(kit)
    requests = participant.writer("request", kind)
    replies = participant.reader("reply", kind)
    client = kit.spec["node"]
    number = 0

    def send(buffer: Any) -> int:
        nonlocal number
        number += 1
        write(requests, kind(Call(client, number), encode(buffer)))
        return number

    def call_once(buffer: Any, timeout_s: float) -> Any:
        deadline_ns = kit.now() + int(timeout_s * 1e9)
        awaited = send(buffer)
        while (left_ns := deadline_ns - kit.now()) > 0:
            for reply in participant.take(replies, left_ns / 1e9):
                if reply.call.number == awaited and reply.call.client == client:
                    return decode(reply.body)
        return None

    slots: dict[int, Any] = {}

    def begin(slot: Any, buffer: Any) -> None:
        slots[send(buffer)] = slot

    def poll(timeout_s: float) -> None:
        for reply in participant.take(replies, timeout_s):
            if reply.call.client == client and reply.call.number in slots:
                kit.complete(slots.pop(reply.call.number), decode(reply.body))

    participant.ready(participant.await_matched(requests, replies), requests)
    if kit.spec["loop"] == "open" and kit.spec["outstanding_max"] > 1:
        kit.drive(begin, poll)
    else:
        kit.call_all(call_once)
