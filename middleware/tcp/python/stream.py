"""A connection that carries frames; README.md describes the bytes and the delays."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable
from struct import Struct

from wattwire_kit import Kit, MiddlewareFailed, SendFailed

HEAD = Struct("<IBQ")
MESSAGE, REQUEST, REPLY, ATTACH = range(4)
PAYLOAD_BYTES_MAX = 67_108_864
READ_BYTES = 65_536
QUICKACK = {"default": None, "on": 1, "off": 0}

Frame = tuple[int, int, bytes]


def prepare(kit: Kit, opened: socket.socket) -> socket.socket:
    """Configure a socket before it connects or listens; buffer sizes apply to the handshake."""
    for name, option in (
        ("receive_buffer_bytes", socket.SO_RCVBUF),
        ("send_buffer_bytes", socket.SO_SNDBUF),
    ):
        if kit.setting(name):
            opened.setsockopt(socket.SOL_SOCKET, option, kit.setting(name))
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, kit.setting("tcp_nodelay"))
    return opened


class Stream:
    """A connection. Each read takes all available bytes, so a small frame needs one call."""

    def __init__(self, kit: Kit, opened: socket.socket) -> None:
        self.socket = opened
        self.open = True
        self.peer = ("", 0)  # of an accepted connection: its other end
        opened.setblocking(False)
        self._kit = kit
        self._two_writes = kit.setting("writes") == 2
        self._quickack = QUICKACK[kit.setting("tcp_quickack")]
        self._last_kind = ATTACH if kit.setting("connections") == 2 else REPLY
        self._timeout_ns: int = kit.spec["timeout_ns"]
        self._buffer = bytearray(HEAD.size + READ_BYTES)
        self._begin = self._end = 0
        self._acknowledge()

    def fileno(self) -> int:
        return self.socket.fileno()

    def close(self) -> None:
        if self.open:
            self.open = False
            self.socket.close()

    # --- sending ---------------------------------------------------------------------------

    def send(
        self,
        kind: int,
        number: int,
        payload: bytes | bytearray,
        idle: Callable[[float], object] | None = None,
    ) -> None:
        """Pass a frame to the kernel.

        While the kernel's buffer is full, this calls `idle(timeout_s)`, because two sides could
        otherwise block each other. Raise SendFailed if the send takes longer than timeout_ns or the
        peer has closed the connection; a partly sent frame then breaks the stream.
        """
        if not self.open:
            raise SendFailed("the connection is closed")
        deadline_ns = self._kit.now() + self._timeout_ns
        head = HEAD.pack(len(payload), kind, number)
        try:
            if self._two_writes:
                self._write([memoryview(head)], deadline_ns, idle)
                if payload:
                    self._write([memoryview(payload)], deadline_ns, idle)
            else:
                self._write([memoryview(head), memoryview(payload)], deadline_ns, idle)
        except (OSError, SendFailed) as error:
            self.close()
            raise SendFailed(str(error)) from error

    def _write(
        self,
        parts: list[memoryview],
        deadline_ns: int,
        idle: Callable[[float], object] | None,
    ) -> None:
        while True:
            try:
                taken = self.socket.sendmsg(parts)
            except BlockingIOError:
                taken = 0
                self._wait_room(deadline_ns, idle)
            while parts and taken >= len(parts[0]):
                taken -= len(parts.pop(0))
            if not parts:
                return
            parts[0] = parts[0][taken:]

    def _wait_room(self, deadline_ns: int, idle: Callable[[float], object] | None) -> None:
        left_s = (deadline_ns - self._kit.now()) / 1e9
        if left_s <= 0:
            raise SendFailed("the peer's buffer stayed full for timeout_ns")
        if idle is None:
            select.select((), (self.socket,), (), left_s)
            return
        idle(0.0)
        select.select((), (self.socket,), (), min(left_s, 0.0002))

    # --- receiving -------------------------------------------------------------------------

    def take(self) -> Frame | None:
        """Return the next complete frame (kind, number, payload) that was read, or None."""
        have = self._end - self._begin
        if have < HEAD.size:
            return None
        length, kind, number = HEAD.unpack_from(self._buffer, self._begin)
        if kind > self._last_kind or length > PAYLOAD_BYTES_MAX:
            self.close()
            return None
        whole = HEAD.size + length
        if have < whole:
            self._make_room(whole)
            return None
        at = self._begin + HEAD.size
        self._begin += whole
        payload = bytes(memoryview(self._buffer)[at : at + length])
        if self._begin == self._end:
            self._begin = self._end = 0
        return kind, number, payload

    def read(self) -> None:
        """Read the available bytes once; the end of the stream or an error closes it."""
        if self._end == len(self._buffer):
            self._make_room(self._end - self._begin + READ_BYTES)
        if self._quickack == 0:
            self._acknowledge()  # the kernel acknowledges in the read unless the option is off
        try:
            count = self.socket.recv_into(memoryview(self._buffer)[self._end :])
        except BlockingIOError:
            return
        except OSError:
            count = 0
        if count == 0:
            self.close()
            return
        self._end += count
        self._acknowledge()

    def receive(self, timeout_s: float) -> Frame | None:
        """Return the next frame, or None if it is incomplete at the timeout or the stream's end.

        A timeout of 0 reads the available bytes once.
        """
        deadline_ns = self._kit.now() + int(timeout_s * 1e9)
        left_s = timeout_s
        while self.open:
            frame = self.take()
            if frame is not None:
                return frame
            # The timeout of select has a resolution of 1 µs, that of a socket 1 ms.
            if left_s < 0 or not select.select((self,), (), (), left_s)[0]:
                return None
            self.read()
            left_s = (deadline_ns - self._kit.now()) / 1e9
        return None

    def _make_room(self, bytes_needed: int) -> None:
        """Move unread bytes to the beginning of the buffer, and enlarge it if necessary."""
        unread = self._buffer[self._begin : self._end]
        if bytes_needed > len(self._buffer):
            self._buffer = bytearray(bytes_needed + READ_BYTES)
        self._buffer[: len(unread)] = unread
        self._begin, self._end = 0, len(unread)

    def _acknowledge(self) -> None:
        if self._quickack is not None:
            # Linux resets TCP_QUICKACK by itself (tcp(7)), so it is set after every read.
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, self._quickack)


def connect(kit: Kit, endpoint: str) -> Stream:
    """Connect to HOST:PORT within ready_timeout_ms."""
    host, _, port = endpoint.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise MiddlewareFailed(f"peers.endpoints: found {endpoint!r}; allowed: HOST:PORT")
    opened = prepare(kit, socket.socket(socket.AF_INET, socket.SOCK_STREAM))
    opened.settimeout(kit.spec["ready_timeout_ms"] / 1e3)
    try:
        opened.connect((host, int(port)))
    except OSError as error:
        raise MiddlewareFailed(f"connect {endpoint}: {error}") from error
    return Stream(kit, opened)
