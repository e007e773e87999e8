"""Member of a topology: a socket for each of its publishers and subscribers."""

import select
import socket
import time

from link import MESSAGE, Link, Payload
from wattwire_kit import Kit


def member(kit: Kit) -> None:
    links = {part: Link(part) for part in kit.parts}
    for link in links.values():
        link.fault("before_ready")
    began_ns = kit.now()
    addresses = {part: _await_peers(part) for part in kit.publishers}
    granted = links[kit.parts[0]].granted()
    entries = [
        part.entry(len(addresses[part]) if part in addresses else None, granted[1])
        for part in kit.parts
    ]
    counts = [entry["matched"] for entry in entries]
    matched = None if None in counts else sum(counts)
    kit.ready(matched, *granted, discovery_ns=kit.now() - began_ns, parts=entries)
    subscribers = {links[part].socket: part for part in kit.subscribers}
    counters = dict.fromkeys(addresses, -1)

    def send(part: Kit, buffer: Payload) -> None:
        link = links[part]
        counters[part] += 1
        for _ in range(link.copies(counters[part])):
            for address in addresses[part]:
                link.send(MESSAGE, counters[part], buffer, address)

    def poll(timeout_s: float) -> None:
        for readable in select.select(subscribers, (), (), timeout_s)[0]:
            part = subscribers[readable]
            message = links[part].receive(0)
            if message is not None:
                part.received(message[2])
                links[part].count_message()

    kit.drive_parts(send, poll)
    for link in links.values():
        link.close()


def _await_peers(part: Kit) -> list[str]:
    """Return the addresses of a publisher's subscribers when all of them are bound.

    Members know these names, because each of them may need all others before it is READY.
    """
    addresses = [f"\0wattwire-{part.spec['run']}-{node}" for node in part.spec["peers.nodes"]]
    part.await_peers(lambda: sum(map(_is_bound, addresses)), time.sleep)
    return addresses


def _is_bound(address: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as trial:
        try:
            trial.connect(address)
        except OSError:
            return False
    return True
