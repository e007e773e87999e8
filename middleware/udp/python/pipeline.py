"""Relay of a pipeline: it sends each datagram, unchanged, to the next node."""

from sockets import listen, open_sender, ready, receive, successor_address
from wattwire_kit import Kit


def relay(kit: Kit) -> None:
    opened = listen(kit)
    address = successor_address(kit)
    sender = open_sender(kit)
    ready(kit, opened)

    def poll(timeout_s: float) -> None:
        arrival = receive(opened, timeout_s)
        if arrival is None:
            return
        message = kit.relay(arrival[0])
        if message is None:
            return
        try:
            sender.sendto(arrival[0], address)
        except OSError:
            kit.relay_failed(message)
        else:
            kit.relayed(message)

    kit.poll(poll)
    sender.close()
    opened.close()
