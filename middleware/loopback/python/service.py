"""Client and server, ping and pong: the frame's number matches a reply to its call."""

from link import REPLY, REQUEST, Link, Payload, drive_native, send_patiently
from wattwire_kit import Kit, Slot


def client(kit: Kit) -> None:
    link = Link(kit)
    link.open(listening=False)
    server_address = link.peers()[0]
    calls = 0

    def call(buffer: Payload, timeout_s: float) -> Payload | None:
        nonlocal calls
        counter, calls = calls, calls + 1
        deadline_ns = kit.now() + int(timeout_s * 1e9)
        for _ in range(link.copies(counter)):
            link.send(REQUEST, counter, buffer, server_address)
        while (left_ns := deadline_ns - kit.now()) > 0:
            reply = link.receive(left_ns / 1e9)
            if reply is not None and reply[:2] == (REPLY, counter):
                return reply[2]
        return None

    waiting: dict[int, Slot] = {}

    def begin(slot: Slot, buffer: Payload) -> None:
        counter = slot.seq & 0xFFFF_FFFF_FFFF
        waiting[counter] = slot
        for _ in range(link.copies(counter)):
            send_patiently(link, (REQUEST, counter, buffer, server_address), poll)

    def poll(timeout_s: float) -> None:
        reply = link.receive(timeout_s)
        if reply is not None and (slot := waiting.pop(reply[1], None)) is not None:
            kit.complete(slot, reply[2])

    link.ready(matched=1)
    if kit.spec["pacing"] == "native" and kit.spec["loop"] == "open":
        drive_native(kit, begin, poll)
    elif kit.spec["outstanding_max"] > 1 and kit.spec["loop"] == "open":
        kit.drive(begin, poll)
    else:
        kit.call_all(call)
    link.close()


def server(kit: Kit) -> None:
    link = Link(kit)
    link.open(listening=True)
    link.ready(matched=None)

    def poll(timeout_s: float) -> None:
        request = link.receive(timeout_s)
        if request is None:
            return
        _, number, data, sender = request
        reply = kit.serve(data)
        link.count_message()
        if reply is not None:
            try:
                link.send(REPLY, number, reply, sender)
                kit.served()
            except OSError:
                pass  # the client has ended; only its own record remains

    kit.poll(poll)
    link.close()
