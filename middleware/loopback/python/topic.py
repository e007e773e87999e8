"""Publisher and subscriber: one datagram per message and subscriber."""

import time

from link import MESSAGE, Link, Payload, drive_native
from wattwire_kit import Kit, Slot


def publish(kit: Kit) -> None:
    link = Link(kit)
    link.open(listening=False)
    began_ns = kit.now()
    peers = link.peers()
    link.ready(matched=len(peers), discovery_ns=kit.now() - began_ns)
    counter = -1

    def send(buffer: Payload) -> None:
        nonlocal counter
        counter += 1
        transmit(counter, buffer)

    def transmit(number: int, buffer: Payload) -> None:
        for _ in range(link.copies(number)):
            for peer in peers:
                link.send(MESSAGE, number, buffer, peer)

    def begin(slot: Slot, buffer: Payload) -> None:
        transmit(slot.seq & 0xFFFF_FFFF_FFFF, buffer)
        kit.complete(slot)

    if kit.spec["pacing"] == "native":
        drive_native(kit, begin, time.sleep)
    else:
        kit.send_all(send)
    link.close()


def subscribe(kit: Kit) -> None:
    link = Link(kit)
    link.open(listening=True)
    link.ready(matched=None)

    def poll(timeout_s: float) -> None:
        message = link.receive(timeout_s)
        if message is not None:
            kit.received(message[2])
            link.count_message()

    kit.poll(poll)
    link.close()
