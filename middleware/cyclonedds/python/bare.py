"""A bare pair of Cyclone DDS topics: `pong` or `ping DOMAIN BYTES COUNT`, on loopback.

Request and reply are nested as in the interface definition of the cells, so the library serialises
the same types. Pong prints its domain and answers until it is killed; ping prints the median round
trip in ns.
"""

import os
import sys
import threading
import time
from dataclasses import dataclass

from cyclonedds.core import InstanceState as Instance
from cyclonedds.core import Policy, Qos, ReadCondition, SampleState, ViewState, WaitSet
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.annotations import final
from cyclonedds.idl.types import byte, sequence, uint32, uint64
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic

CONFIGURATION = """<CycloneDDS><Domain Id="any">
<General><Interfaces><NetworkInterface name="lo"/></Interfaces>
<AllowMulticast>false</AllowMulticast></General>
<Discovery><Peers><Peer Address="127.0.0.1"/></Peers>
<ParticipantIndex>auto</ParticipantIndex></Discovery></Domain></CycloneDDS>"""
BLOCKING_NS = 100_000_000
TIMEOUT_NS = 2_000_000_000
CLIENT = 2


@dataclass
@final
class Bytes(IdlStruct, typename="bare.Bytes"):
    data: sequence[byte]


@dataclass
@final
class Call(IdlStruct, typename="bare.Call"):
    client: uint32
    number: uint64


@dataclass
@final
class BytesCall(IdlStruct, typename="bare.BytesCall"):
    call: Call
    body: Bytes


class Side:
    """A writer, a reader and its wait set."""

    def __init__(self, domain: int, own: str, other: str) -> None:
        qos = Qos(Policy.Reliability.Reliable(BLOCKING_NS), Policy.History.KeepAll)
        self._domain = Domain(domain, CONFIGURATION)
        participant = DomainParticipant(domain)
        self.writer = DataWriter(participant, Topic(participant, own, BytesCall), qos=qos)
        self._reader = DataReader(participant, Topic(participant, other, BytesCall), qos=qos)
        self._unread = ReadCondition(
            self._reader, SampleState.NotRead | ViewState.Any | Instance.Any
        )
        self._waiting = WaitSet(participant)
        self._waiting.attach(self._unread)

    def take(self, timeout_ns: int) -> list[BytesCall]:
        self._waiting.wait(timeout_ns)
        taken = self._reader.take(32, condition=self._unread)
        # A writer that has ended leaves a sample without data.
        return [sample for sample in taken if sample.sample_info.valid_data]


def free_domain() -> int:
    """Return a domain that no cell and, in all probability, no other bare server uses."""
    return 101 + os.getpid() % 100


def pong() -> None:
    domain = free_domain()
    side = Side(domain, "bare_reply", "bare_request")
    print(domain, flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    while True:
        for request in side.take(TIMEOUT_NS):
            side.writer.write(BytesCall(request.call, Bytes(bytes(request.body.data))))


def answered(side: Side, number: int, payload: bytes, timeout_ns: int) -> bool:
    """Return whether the reply to this call arrived in time."""
    deadline_ns = time.monotonic_ns() + timeout_ns
    side.writer.write(BytesCall(Call(CLIENT, number), Bytes(payload)))
    while (left_ns := deadline_ns - time.monotonic_ns()) > 0:
        for reply in side.take(left_ns):
            if reply.call.client == CLIENT and reply.call.number == number:
                return bytes(reply.body.data) == payload
    return False


def ping(domain: int, length: int, count: int) -> None:
    side = Side(domain, "bare_request", "bare_reply")
    payload, times = bytes(length), []
    # The other side does not answer until it has discovered this side.
    for number in range(200):
        if answered(side, number, payload, TIMEOUT_NS // 20):
            break
    else:
        sys.exit("no reply to the first call")
    for number in range(1000, 1000 + count):
        begin_ns = time.monotonic_ns()
        if not answered(side, number, payload, TIMEOUT_NS):
            sys.exit(f"no reply to call {number - 1000} in {TIMEOUT_NS / 1e9:g} s")
        times.append(time.monotonic_ns() - begin_ns)
    print(sorted(times)[count // 2])


if __name__ == "__main__":
    role, *rest = sys.argv[1:]
    {"pong": pong, "ping": ping}[role](*map(int, rest))
