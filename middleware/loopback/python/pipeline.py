"""Relay of a pipeline: it sends the frames that arrive, unchanged, to the next node.

Source and sink of a pipeline are the publisher and the subscriber of topic.py.
"""

from link import Link
from wattwire_kit import Kit


def relay(kit: Kit) -> None:
    link = Link(kit)
    link.open(listening=True)
    began_ns = kit.now()
    successor = link.peers(1)[0]
    link.ready(matched=None, discovery_ns=kit.now() - began_ns)

    def poll(timeout_s: float) -> None:
        frame = link.receive_frame(timeout_s)
        if frame is None:
            return
        message = kit.relay(link.payload_of(frame))
        if message is None:
            return
        try:
            for _ in range(link.copies(link.number_of(frame))):
                link.send_frame(frame, successor)
        except OSError:
            kit.relay_failed(message)
        else:
            kit.relayed(message)

    kit.poll(poll)
    link.close()
