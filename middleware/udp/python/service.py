"""Client and server, ping and pong: a request and its reply are one datagram each."""

from sockets import listen, open_socket, peer_addresses, ready, receive
from wattwire_kit import Kit


def client(kit: Kit) -> None:
    address = peer_addresses(kit)[0]
    opened = open_socket(kit)

    def call(buffer: bytearray, timeout_s: float) -> bytes | None:
        nonlocal opened
        deadline_ns = kit.now() + int(timeout_s * 1e9)
        opened.sendto(buffer, address)
        while (left_ns := deadline_ns - kit.now()) > 0:
            message = receive(opened, left_ns / 1e9)
            if message is not None and kit.is_reply(message[0]):
                return message[0]
        if not kit.carries_seq or kit.spec["reply"] == "literal":
            # Nothing in such a reply tells it from a late one: those go to the old port.
            opened.close()
            opened = open_socket(kit)
        return None

    ready(kit, opened, kit.probe(call))
    kit.call_all(call)
    opened.close()


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
