"""Publisher and subscriber: the publisher sends each message once to every subscriber."""

from links import Listener, connect_all, ready
from stream import MESSAGE, Frame, Stream
from wattwire_kit import Kit, SendFailed


def publish(kit: Kit) -> None:
    begin_ns = kit.now()
    streams = connect_all(kit)
    ready(kit, streams[0].socket, len(streams), kit.now() - begin_ns)

    def send(buffer: bytearray) -> None:
        failed = 0
        for stream in streams:
            try:
                stream.send(MESSAGE, 0, buffer)
            except SendFailed:
                failed += 1
        if failed:
            raise SendFailed(f"{failed} of {len(streams)} sends to subscribers failed")

    kit.send_all(send)
    for stream in streams:
        stream.close()


def subscribe(kit: Kit) -> None:
    listener = Listener(kit)

    def take(_stream: Stream, frame: Frame) -> None:
        kit.received(frame[2])

    def poll(timeout_s: float) -> None:
        listener.poll(timeout_s, take)

    discovery_ns = kit.await_peers(lambda: listener.accepted, poll)
    ready(kit, listener.socket, listener.accepted, discovery_ns)
    kit.poll(poll)
    listener.close()
