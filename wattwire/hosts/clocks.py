"""Measure the relation of a host's clock to the controller's by exchanges of four timestamps.

The controller notes when it sends and receives, and the host notes when it receives and replies
(RFC 5905, section 8). `stats.clock_lines` computes the relation of a run from all its exchanges:
many before and after the run, and a few each second during it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import socket
import struct
import threading
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from wattwire.model.errors import AgentLostError
from wattwire.model.hosts.clocks import RATE_MAX, ClockRelation, Knot
from wattwire.rig.agent import AgentError

if TYPE_CHECKING:
    from wattwire import stats

EXCHANGES = 64
"""Exchanges before a run, and after it."""
PERIOD_S = 0.25
"""Time between exchanges during a run."""
RATE_CHANGE_MAX = 2e-6
"""Largest change of a clock's rate in a run for which a band has room unless the exchanges show
that the change was smaller. Crystals change by less than 1 ppm per 10 K.
"""
END_S = 5.0
"""Time in which the last exchange during a run ends, unless its agent is frozen."""
LISTEN_EXCHANGES, LISTEN_S = 1000, 3600.0
"""Exchanges and seconds after which the agent's responder ends."""
UDP_TIMEOUT_S = 0.25
UDP_LOST_MAX, UDP_SILENT_MAX = 8, 3
"""Numbers of lost datagrams, and of lost datagrams without any reply, after which the exchanges use
the agent's pipe instead.
"""
MAGIC = b"WWCLOCK1"
DATAGRAM = struct.Struct("<8sQqq")
PIPE, DATAGRAMS = "pipe", "datagrams"
Times = tuple[int, int, int, int]
"""Times (ns) of an exchange: sent by the controller, received and replied by the host, received by
the controller.
"""


class Agent(Protocol):
    """The part of an AgentClient that exchanges need."""

    hello: dict[str, Any]

    def request(self, operation: str, **arguments: Any) -> dict[str, Any]: ...


def own_clock() -> str:
    """Return the identity of the controller's clock."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    namespace = ""
    with contextlib.suppress(OSError):  # a kernel without time namespaces
        namespace = os.readlink("/proc/self/ns/time")
    return f"{boot} {namespace}"


def clock_of(agent: Agent) -> str:
    """Return the identity of the clock that an agent reads: its boot and its time namespace."""
    return f"{agent.hello['boot_id']} {agent.hello['time_namespace']}"


class ClockComparison:
    """The exchanges of one run with the agent of a host, and the relation of its clock from them.

    A host with the controller's clock needs no exchange. `address` is an address of the host that
    the controller may reach by UDP; "" stands for none.
    """

    def __init__(self, agent: Agent, address: str = "") -> None:
        self._agent, self._address = agent, address
        self._clock = clock_of(agent)
        self.is_needed = self._clock != own_clock()
        self.exchanges: list[Times] = []
        self.way = ""
        self._counts: list[int] = []
        """Number of exchanges of each call of `exchange`: datagrams may be lost."""

    def exchange(self, count: int = EXCHANGES) -> None:
        """Add `count` exchanges, by UDP where it reaches the address, else by the agent's pipe."""
        if not self.is_needed:
            return
        added = self._exchanged(count)
        self.exchanges += added
        self._counts.append(len(added))

    def _exchanged(self, count: int) -> list[Times]:
        if self._address:
            with contextlib.suppress(AgentError, OSError):
                added = list(_udp_exchanges(self._agent, self._address, count))
                self.way = DATAGRAMS
                return added
        self._address, self.way = "", PIPE
        return [_pipe_exchange(self._agent) for _ in range(count)]

    @contextlib.contextmanager
    def continued(self, period_s: float = PERIOD_S) -> Iterator[None]:
        """Add an exchange each period while the context lasts, on a thread."""
        if not self.is_needed:
            yield
            return
        ended = threading.Event()
        thread = threading.Thread(
            target=self._continue, args=(ended, period_s), name="clock-exchanges", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(END_S)

    def _continue(self, ended: threading.Event, period_s: float) -> None:
        with contextlib.suppress(AgentLostError, AgentError):  # the run notices a lost agent
            while not ended.wait(period_s):
                with contextlib.suppress(OSError), contextlib.closing(self._unending()) as series:
                    for times in series:
                        if ended.is_set():  # exchanges after the run may have begun
                            return
                        self.exchanges.append(times)
                        if ended.wait(period_s):
                            return

    def _unending(self) -> Generator[Times, None, None]:
        """Yield exchanges for a long time, on the way of the first ones."""
        if self._address:
            yield from _udp_exchanges(self._agent, self._address, LISTEN_EXCHANGES)
            return
        while True:
            yield _pipe_exchange(self._agent)

    def relation(self, is_complete: bool = True) -> ClockRelation:
        """Return the relation from all exchanges so far.

        Without exchanges before and after the run, it has no rate.
        """
        if not self.exchanges:
            return ClockRelation(self._clock)
        import numpy as np  # noqa: PLC0415 - slow

        from wattwire import stats  # noqa: PLC0415 - slow

        exchanges = np.array(self.exchanges, dtype=np.int64)
        round_trips_ns = (exchanges[:, 3] - exchanges[:, 0]) - (exchanges[:, 2] - exchanges[:, 1])
        relate = functools.partial(
            ClockRelation,
            self._clock,
            way=self.way,
            count=len(exchanges),
            round_trip_ns=int(round_trips_ns.min()),
        )
        if not is_complete or len(self._counts) < 2:
            return relate(_knots(stats.clock_offset(exchanges, RATE_MAX)))
        before, after = self._counts[0], self._counts[-1]
        during_ns = round_trips_ns[before:-after]
        if len(during_ns):
            relate = functools.partial(relate, run_round_trip_ns=round(np.median(during_ns)))
        margins = (before - 1, after - 1)
        lines = stats.clock_lines(exchanges, RATE_MAX, RATE_CHANGE_MAX, margins)
        if isinstance(lines, stats.ClockStep):
            ends = (exchanges[:before], exchanges[-after:])
            knots = [_knots(stats.clock_offset(end, RATE_MAX)) for end in ends]
            return relate((*knots[0], *knots[1]), step_ns=lines.step_ns)
        return relate(
            _knots(lines),
            unseen_ppm=None if lines.unseen_rate is None else lines.unseen_rate * 1e6,
            departure_ns=lines.departure_ns,
        )


def _knots(lines: stats.ClockLines) -> tuple[Knot, ...]:
    return tuple(map(Knot, lines.times_ns, lines.offsets_ns, lines.bands_ns))


def _pipe_exchange(agent: Agent) -> Times:
    sent_ns = time.monotonic_ns()
    (reading,) = agent.request("clock", count=1)["triples"]
    received_ns = time.monotonic_ns()
    return sent_ns, reading["monotonic_ns"], reading["monotonic_after_ns"], received_ns


def _udp_exchanges(agent: Agent, address: str, count: int) -> Generator[Times, None, None]:
    """Yield `count` exchanges. Raise TimeoutError if too many datagrams are lost."""
    port = agent.request(
        "clock_listen", address=address, exchanges=LISTEN_EXCHANGES, seconds=LISTEN_S
    )["port"]
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as client:
            client.settimeout(UDP_TIMEOUT_S)
            client.connect((address, port))
            lost = 0
            for number in range(count):
                try:
                    yield _udp_exchange(client, number)
                except TimeoutError:
                    lost += 1
                    silent = lost == number + 1
                    if lost >= (UDP_SILENT_MAX if silent else UDP_LOST_MAX):
                        raise
    finally:
        agent.request("clock_close")


def _udp_exchange(client: socket.socket, number: int) -> Times:
    sent_ns = time.monotonic_ns()
    client.send(DATAGRAM.pack(MAGIC, number, 0, 0))
    while True:
        datagram = client.recv(DATAGRAM.size + 1)
        received_ns = time.monotonic_ns()
        if len(datagram) != DATAGRAM.size:
            continue
        magic, answered, arrived_ns, replied_ns = DATAGRAM.unpack(datagram)
        if magic == MAGIC and answered == number:  # otherwise, it is a late reply
            return sent_ns, arrived_ns, replied_ns, received_ns
