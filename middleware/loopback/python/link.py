"""The part that all roles share: the socket, the frame, the planted faults, the timer."""

from __future__ import annotations

import os
import platform
import select
import signal
import socket
import time
from collections.abc import Callable
from struct import Struct

from wattwire_kit import BadSpec, Kit, MiddlewareFailed, Record, SendFailed, Slot

Payload = bytes | bytearray | Record

# A frame consists of kind, call number and payload.
HEAD = Struct("<BQ")
MESSAGE, REQUEST, REPLY, GOAL, ACCEPT, FEEDBACK, RESULT = range(7)
GUARANTEE = ("reliable", "per_sender", "block")
FAULT_MESSAGE = 4
FRAME_BYTES_MAX = 262_144


class Link:
    """A bound socket with an abstract name, so a killed node leaves no file."""

    def __init__(self, kit: Kit) -> None:
        self.kit = kit
        self.name = f"wattwire-{kit.spec['run']}-{kit.spec['node']}"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        # The longest message must fit; the kernel limits the size to net.core.wmem_max.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 212_992)
        # A peer that stops reading must not block the window forever (C-12).
        self.timeout_ns: int = kit.spec["timeout_ns"]
        self.socket.settimeout(self.timeout_ns / 1e9)
        try:
            self.socket.bind("\0" + self.name)
        except OSError as error:
            raise MiddlewareFailed(f"bind @{self.name}: {error}") from error
        self._messages = 0
        has_fault = kit.setting("fault_role") in ("any", kit.spec["role"])
        # Read once: the number of look-ups in the window must not depend on the messages sent.
        self._die_at = kit.setting("die_at") if has_fault else ""
        self._hang_at = kit.setting("hang_at") if has_fault else ""
        self._records = kit.encoding == "record"
        self._drops = _counters(kit)
        self._drop_every: int = kit.setting("drop_every")
        self._duplicate_every: int = kit.setting("duplicate_every")
        self._delay_s = kit.setting("delay_us") / 1e6

    def peers(self, count: int | None = None) -> list[str]:
        """Return the addresses of the endpoints. Raise MiddlewareFailed if one is unbound.

        There must be at least `count` endpoints; the default is peers.count.
        """
        addresses = []
        for endpoint in self.kit.spec["peers.endpoints"]:
            address = "\0" + endpoint.removeprefix("@")
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as trial:
                try:
                    trial.connect(address)
                except OSError as error:
                    raise MiddlewareFailed(f"connect {endpoint}: {error}") from error
            addresses.append(address)
        count = self.kit.spec["peers.count"] if count is None else count
        if len(addresses) < count:
            raise MiddlewareFailed(f"found {len(addresses)} endpoints, expected {count}")
        return addresses

    def open(self, listening: bool) -> None:
        if listening:
            self.kit.listening([f"@{self.name}"])
        self.fault("before_ready")

    def ready(self, matched: int | None, discovery_ns: int | None = None) -> None:
        self.kit.ready(matched, *self.granted(), discovery_ns)

    def granted(self) -> tuple[tuple[str, str, str], dict[str, object], tuple[str, str, str]]:
        """Return the library, the values in force and the guarantee of READY."""
        granted = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
        effective = {"transport": "unix datagram", "send_buffer_bytes": granted}
        planted = self._drops or self._drop_every
        guarantee = ("best_effort", *GUARANTEE[1:]) if planted else GUARANTEE
        library = ("AF_UNIX", platform.release(), platform.python_version())
        return library, effective, guarantee

    def fault(self, stage: str) -> None:
        """Kill or hang the node if the settings request it for this stage."""
        if self._die_at == stage:
            os.kill(os.getpid(), signal.SIGKILL)
        while self._hang_at == stage:
            time.sleep(3600)

    def count_message(self) -> None:
        self._messages += 1
        if self._messages == FAULT_MESSAGE:
            self.fault("window")

    def copies(self, counter: int) -> int:
        """Return how often a sender sends this counter, by the planted faults."""
        self.count_message()
        if self._delay_s:
            time.sleep(self._delay_s)
        every = self._drop_every
        if counter in self._drops or (every and counter % every == every - 1):
            return 0
        every = self._duplicate_every
        return 2 if every and counter % every == every - 1 else 1

    def send(self, kind: int, number: int, payload: Payload, address: str) -> None:
        body = payload.to_json() if isinstance(payload, Record) else payload
        self.socket.sendmsg((HEAD.pack(kind, number), body), (), 0, address)

    def receive(self, timeout_s: float) -> tuple[int, int, Payload, str] | None:
        """Return (kind, number, payload, sender), or None at the timeout."""
        # The timeout of select has a resolution of 1 µs, that of a socket 1 ms.
        if not select.select((self.socket,), (), (), timeout_s)[0]:
            return None
        data, address = self.socket.recvfrom(FRAME_BYTES_MAX)
        kind, number = HEAD.unpack_from(data)
        sender = address.decode() if isinstance(address, bytes) else address
        body = data[HEAD.size :]
        return kind, number, Record.from_json(body) if self._records else body, sender

    def receive_frame(self, timeout_s: float) -> bytes | None:
        """Return a whole frame, which a relay sends unchanged, or None at the timeout."""
        readable = select.select((self.socket,), (), (), timeout_s)[0]
        return self.socket.recv(FRAME_BYTES_MAX) if readable else None

    def payload_of(self, frame: bytes) -> Payload:
        body = frame[HEAD.size :]
        return Record.from_json(body) if self._records else body

    def number_of(self, frame: bytes) -> int:
        """Return the call number of a frame; a publisher's frame has the message's counter."""
        number: int = HEAD.unpack_from(frame)[1]
        return number

    def send_frame(self, frame: bytes, address: str) -> None:
        self.socket.sendto(frame, address)

    def close(self) -> None:
        self.fault("drain")
        self.socket.close()


def _counters(kit: Kit) -> frozenset[int]:
    listed = kit.setting("drop_counters")
    try:
        return frozenset(int(item) for item in listed.split(",") if item.strip())
    except ValueError:
        key = "settings.drop_counters"
        raise BadSpec(key, listed, "integers separated by commas") from None


def send_patiently(
    link: Link, message: tuple[int, int, Payload, str], poll: Callable[[float], object]
) -> None:
    """Send without blocking, because two sides could block each other with full queues."""
    deadline_ns = link.kit.now() + link.timeout_ns
    while True:
        link.socket.setblocking(False)
        try:
            return link.send(*message)
        except BlockingIOError:
            if link.kit.now() > deadline_ns:
                raise SendFailed("the peer's queue stayed full") from None
        finally:
            link.socket.settimeout(link.timeout_ns / 1e9)
        poll(0.0002)


def drive_native(
    kit: Kit, begin: Callable[[Slot, Payload], object], poll: Callable[[float], object]
) -> None:
    """Run this middleware's own periodic timer; a late tick does not shift later ticks."""
    kit.wait_timer_birth()
    period_ns = kit.period_ns
    tick_ns = kit.now() + period_ns
    while not kit.finished():
        left_ns = tick_ns - kit.now()
        if left_ns > 0:
            poll(min(left_ns / 1e9, 0.1))
            continue
        tick_ns += (1 + -left_ns // period_ns) * period_ns
        slot = kit.tick()
        if slot is not None:
            try:
                begin(slot, kit.begin(slot))
            except (SendFailed, OSError):
                kit.fail(slot)
    kit.end_schedule(poll)
