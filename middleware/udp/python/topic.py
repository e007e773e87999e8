"""Publisher and subscriber: the publisher sends each message to every subscriber's address."""

from sockets import listen, open_sender, peer_addresses, ready, receive
from wattwire_kit import Kit


def publish(kit: Kit) -> None:
    addresses = peer_addresses(kit)
    opened = open_sender(kit)
    ready(kit, opened)

    def send(buffer: bytearray) -> None:
        for address in addresses:
            opened.sendto(buffer, address)

    kit.send_all(send)
    opened.close()


def subscribe(kit: Kit) -> None:
    opened = listen(kit)
    ready(kit, opened)

    def poll(timeout_s: float) -> None:
        message = receive(opened, timeout_s)
        if message is not None:
            kit.received(message[0])

    kit.poll(poll)
    opened.close()
