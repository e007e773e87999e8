"""Client and server, ping and pong: a request and its reply are one datagram each."""

import socket

from sockets import Address, listen, open_sender, peer_addresses, ready, receive
from wattwire_kit import Kit, Slot, Unsupported


def client(kit: Kit) -> None:
    address = peer_addresses(kit)[0]
    opened = open_sender(kit)

    def call(buffer: bytearray, timeout_s: float) -> bytes | None:
        nonlocal opened
        deadline_ns = kit.now() + int(timeout_s * 1e9)
        opened.sendto(buffer, address)
        while (left_ns := deadline_ns - kit.now()) > 0:
            message = receive(opened, left_ns / 1e9)
            if message is not None and kit.is_reply(message[0]):
                return message[0]
        if not kit.carries_seq or kit.spec["reply"] == "literal":
            # A reply without a sequence may be late; late replies go to the old port.
            opened.close()
            opened = open_sender(kit)
        return None

    overlapping = kit.spec["outstanding_max"] > 1 and kit.spec["loop"] == "open"
    if overlapping and (not kit.carries_seq or kit.spec["reply"] == "literal"):
        raise Unsupported("outstanding_max above 1 with replies that carry no sequence")
    ready(kit, opened, kit.probe(call))
    if overlapping:
        overlapping_calls(kit, opened, address)
    else:
        kit.call_all(call)
    opened.close()


def overlapping_calls(kit: Kit, opened: socket.socket, address: Address) -> None:
    """Make overlapping calls; only the sequence in a datagram identifies its call."""
    waiting: dict[bytes, Slot] = {}
    length = 16 if kit.text else 8

    def begin(slot: Slot, buffer: bytearray) -> None:
        waiting[bytes(buffer[:length])] = slot
        opened.sendto(buffer, address)

    def poll(timeout_s: float) -> None:
        message = receive(opened, timeout_s)
        slot = waiting.pop(message[0][:length], None) if message is not None else None
        if slot is not None and message is not None:
            kit.complete(slot, message[0])

    kit.drive(begin, poll)


def server(kit: Kit) -> None:
    opened = listen(kit)
    ready(kit, opened)

    def poll(timeout_s: float) -> None:
        message = receive(opened, timeout_s)
        if message is None:
            return
        reply = kit.serve(message[0])
        if reply is not None:
            opened.sendto(reply, message[1])
            kit.served()

    kit.poll(poll)
    opened.close()
