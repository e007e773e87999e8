"""Measure the relation of a host's clock to the controller's by exchanges of four timestamps.

The controller notes when it sends and receives, and the host notes when it receives and replies.
The exchange with the shortest round trip determines the offset, with an error of at most half of
that round trip, for any asymmetry of the path. Reference: RFC 5905, section 8.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from wattwire.model.hosts.clocks import ClockRelation, Exchange
from wattwire.rig.agent import AgentError

EXCHANGES = 64
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


def relate(agent: Agent, address: str = "") -> ClockRelation:
    """Return the relation of an agent's clock before a run.

    A host with the controller's clock needs no exchange. `address` is an address of the host that
    the controller may reach by UDP; "" stands for none.
    """
    clock = clock_of(agent)
    return ClockRelation(clock, None if clock == own_clock() else exchange(agent, address))


def relate_again(relation: ClockRelation, agent: Agent, address: str = "") -> ClockRelation:
    """Return the relation with a second exchange, after the run."""
    return replace(relation, after=exchange(agent, address)) if relation.before else relation


def exchange(agent: Agent, address: str = "", count: int = EXCHANGES) -> Exchange:
    """Return the best of `count` exchanges, by UDP where it reaches `address`, else by the pipe."""
    if address:
        with contextlib.suppress(AgentError, OSError):
            return best_of(list(_udp_exchanges(agent, address, count)), DATAGRAMS)
    return best_of([_pipe_exchange(agent) for _ in range(count)], PIPE)


def best_of(exchanges: list[Times], way: str) -> Exchange:
    """Return the exchange with the shortest round trip."""
    sent_ns, arrived_ns, replied_ns, received_ns = min(exchanges, key=_round_trip_ns)
    return Exchange(
        (sent_ns + received_ns) // 2,
        (arrived_ns + replied_ns) // 2,
        _round_trip_ns((sent_ns, arrived_ns, replied_ns, received_ns)),
        len(exchanges),
        way,
    )


def _round_trip_ns(times: Times) -> int:
    sent_ns, arrived_ns, replied_ns, received_ns = times
    return (received_ns - sent_ns) - (replied_ns - arrived_ns)


def _pipe_exchange(agent: Agent) -> Times:
    sent_ns = time.monotonic_ns()
    (reading,) = agent.request("clock", count=1)["triples"]
    received_ns = time.monotonic_ns()
    return sent_ns, reading["monotonic_ns"], reading["monotonic_after_ns"], received_ns


def _udp_exchanges(agent: Agent, address: str, count: int) -> Iterator[Times]:
    """Yield `count` exchanges. Raise TimeoutError if too many datagrams are lost."""
    port = agent.request("clock_listen", address=address)["port"]
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
