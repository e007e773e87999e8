"""Relay of a pipeline: it sends each frame, unchanged, on its stream to the next node."""

from links import Listener, connect_successor, ready
from stream import Frame, Stream
from wattwire_kit import Kit, SendFailed


def relay(kit: Kit) -> None:
    listener = Listener(kit)
    begin_ns = kit.now()
    successor = connect_successor(kit)

    def forward(_stream: Stream, frame: Frame) -> None:
        kind, number, payload = frame
        message = kit.relay(payload)
        if message is None:
            return
        try:
            successor.send(kind, number, payload)
        except SendFailed:
            kit.relay_failed(message)
        else:
            kit.relayed(message)

    def poll(timeout_s: float) -> None:
        listener.poll(timeout_s, forward)

    kit.await_peers(lambda: 1 + listener.accepted, poll)
    ready(kit, successor.socket, 1 + listener.accepted, kit.now() - begin_ns)
    kit.poll(poll)
    successor.close()
    listener.close()
