"""A bare pair of Cyclone DDS topics: `pong DOMAIN` or `ping DOMAIN BYTES COUNT`, on loopback.

Ping prints the median round trip in ns; pong answers until it is ended.
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
from cyclonedds.idl.types import byte, sequence, uint64
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic

CONFIGURATION = """<CycloneDDS><Domain Id="any">
<General><Interfaces><NetworkInterface name="lo"/></Interfaces>
<AllowMulticast>false</AllowMulticast></General>
<Discovery><Peers><Peer Address="127.0.0.1"/></Peers>
<ParticipantIndex>auto</ParticipantIndex></Discovery></Domain></CycloneDDS>"""
SECOND_NS = 1_000_000_000


@dataclass
@final
class Message(IdlStruct, typename="bare.Message"):
    number: uint64
    data: sequence[byte]


class Side:
    """A writer, a reader and what waits for it; open on return, both matched."""

    def __init__(self, domain: int, own: str, other: str) -> None:
        qos = Qos(Policy.Reliability.Reliable(SECOND_NS), Policy.History.KeepAll)
        self._domain = Domain(domain, CONFIGURATION)
        participant = DomainParticipant(domain)
        self.writer = DataWriter(participant, Topic(participant, own, Message), qos=qos)
        self._reader = DataReader(participant, Topic(participant, other, Message), qos=qos)
        self._unread = ReadCondition(
            self._reader, SampleState.NotRead | ViewState.Any | Instance.Any
        )
        self._waiting = WaitSet(participant)
        self._waiting.attach(self._unread)

    def matched(self) -> bool:
        return bool(
            self.writer.get_matched_subscriptions() and self._reader.get_matched_publications()
        )

    def take(self) -> list[Message]:
        self._waiting.wait(SECOND_NS)
        return self._reader.take(32, condition=self._unread)


def pong(domain: int) -> None:
    side = Side(domain, "bare_reply", "bare_request")
    print("ready", flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    while True:
        # A writer that has gone leaves a sample without data.
        for message in filter(lambda sample: isinstance(sample, Message), side.take()):
            side.writer.write(Message(message.number, message.data))


def ping(domain: int, length: int, count: int) -> None:
    side = Side(domain, "bare_request", "bare_reply")
    while not side.matched():
        time.sleep(0.01)
    payload, times = bytes(length), []
    for number in range(count):
        begin_ns = time.monotonic_ns()
        side.writer.write(Message(number, payload))
        while not any(reply.number == number for reply in side.take()):
            pass
        times.append(time.monotonic_ns() - begin_ns)
    print(sorted(times)[count // 2])


if __name__ == "__main__":
    role, *rest = sys.argv[1:]
    {"pong": pong, "ping": ping}[role](*map(int, rest))
