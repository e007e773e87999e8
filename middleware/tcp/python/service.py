"""Client and server, ping and pong: the frame's number matches a reply to its call."""

from time import sleep

from links import Listener, connect_server, ready
from stream import ATTACH, REPLY, REQUEST, Frame, Stream
from wattwire_kit import Kit, SendFailed, Slot


def client(kit: Kit) -> None:
    stream, replies = connect_server(kit)
    calls = 0

    def call(buffer: bytearray, timeout_s: float) -> bytes | None:
        nonlocal calls
        number, calls = calls, calls + 1
        deadline_ns = kit.now() + int(timeout_s * 1e9)
        stream.send(REQUEST, number, buffer)
        while replies.open and (left_ns := deadline_ns - kit.now()) > 0:
            reply = replies.receive(left_ns / 1e9)
            if reply is not None and reply[:2] == (REPLY, number):
                return reply[2]
        if not replies.open:
            raise SendFailed("the server closed the connection")
        return None

    waiting: dict[int, Slot] = {}

    def begin(slot: Slot, buffer: bytearray) -> None:
        nonlocal calls
        number, calls = calls, calls + 1
        waiting[number] = slot
        stream.send(REQUEST, number, buffer, poll)

    def poll(timeout_s: float) -> None:
        reply = replies.receive(timeout_s)
        if not replies.open:
            sleep(timeout_s)  # keeps the caller's loop from spinning
        if reply is not None and (slot := waiting.pop(reply[1], None)) is not None:
            kit.complete(slot, reply[2])

    ready(kit, stream.socket, 1, kit.probe(call))
    if kit.spec["outstanding_max"] > 1 and kit.spec["loop"] == "open":
        kit.drive(begin, poll)
    else:
        kit.call_all(call)
    stream.close()
    replies.close()


def server(kit: Kit) -> None:
    listener = Listener(kit)
    connections: int = kit.setting("connections")
    reply_streams: dict[tuple[str, int], Stream] = {}

    def attach(stream: Stream, port: int) -> None:
        """Let the replies to the requests from this port of the peer use `stream`."""
        reply_streams[stream.peer[0], port] = stream
        stream.send(ATTACH, port, b"")

    def answer(stream: Stream, frame: Frame) -> None:
        if frame[0] == ATTACH:
            attach(stream, frame[1])
            return
        target = stream if connections == 1 else reply_streams.get(stream.peer)
        reply = kit.serve(frame[2])
        if reply is None or target is None:
            return
        try:
            target.send(REPLY, frame[1], reply)
            kit.served()
        except SendFailed:
            pass  # the client has ended; only its own record remains

    def poll(timeout_s: float) -> None:
        listener.poll(timeout_s, answer)

    def matched() -> int:
        return listener.accepted // connections

    discovery_ns = kit.await_peers(matched, poll)
    ready(kit, listener.socket, matched(), discovery_ns)
    kit.poll(poll)
    listener.close()
