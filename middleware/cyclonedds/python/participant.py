"""A participant: its domain, configuration, QoS and wait set, and READY."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from importlib.metadata import version
from typing import Any
from xml.sax.saxutils import quoteattr

# Ignore the shell's configuration and load the wheel's own library.
for name in [name for name in os.environ if name.startswith("CYCLONEDDS_")]:
    del os.environ[name]

from cyclonedds.core import (  # noqa: E402
    DDSException,
    InstanceState,
    Policy,
    Qos,
    ReadCondition,
    SampleState,
    ViewState,
    WaitSet,
)
from cyclonedds.domain import Domain, DomainParticipant  # noqa: E402
from cyclonedds.pub import DataWriter  # noqa: E402
from cyclonedds.sub import DataReader  # noqa: E402
from cyclonedds.topic import Topic  # noqa: E402
from interface import has_joined, stay_on  # noqa: E402
from wattwire_kit import Kit, MiddlewareFailed, SendFailed  # noqa: E402

# One interface, multicast as set, and the run's own tag, which hides participants with other tags.
CONFIGURATION = """<CycloneDDS><Domain Id="any">
<General><Interfaces><NetworkInterface name={interface}/></Interfaces>
<AllowMulticast>{multicast}</AllowMulticast></General>
<Discovery><Tag>{tag}</Tag><ParticipantIndex>auto</ParticipantIndex>
<MaxAutoParticipantIndex>99</MaxAutoParticipantIndex>
<Peers>{peers}</Peers></Discovery>
</Domain></CycloneDDS>"""
BLOCKING_NS_MAX = 100_000_000  # DDS's default of max_blocking_time
TAKE_MAX = 32
# Includes messages of writers that have ended, whose instances are no longer alive.
UNREAD = SampleState.NotRead | ViewState.Any | InstanceState.Any


class Participant:
    """An open participant; raises MiddlewareFailed if Cyclone DDS does not start."""

    def __init__(self, kit: Kit) -> None:
        self.kit = kit
        self.domain = domain_of(kit)
        self.prefix = f"wattwire_{kit.spec['run']}"
        interface = kit.setting("interface") or kit.spec["host.interface"]
        peers = [f"<Peer Address={quoteattr(peer)}/>" for peer in kit.spec["peers.addresses"]]
        configuration = CONFIGURATION.format(
            interface=quoteattr(interface),
            multicast=str(kit.setting("multicast")).lower(),
            tag=kit.spec["run"],
            peers="".join(peers),
        )
        try:
            self._domain = Domain(self.domain, configuration)  # exists while it is referenced
            self.participant = DomainParticipant(self.domain)
        except DDSException as error:
            raise MiddlewareFailed(
                f"no participant in domain {self.domain} on {interface}: {error}"
            ) from error
        stay_on(interface)
        self._interface = interface
        self.created_ns = kit.now()
        self._waitset = WaitSet(self.participant)

    def _qos(self) -> Qos:
        setting = self.kit.setting
        return Qos(
            Policy.Reliability.Reliable(BLOCKING_NS_MAX)
            if setting("reliability") == "reliable"
            else Policy.Reliability.BestEffort,
            Policy.History.KeepAll
            if setting("history") == "keep_all"
            else Policy.History.KeepLast(setting("depth")),
        )

    def _topic(self, name: str, kind: Any) -> Any:
        return Topic(self.participant, f"{self.prefix}_{name}", kind)

    def writer(self, name: str, kind: Any) -> Any:
        return DataWriter(self.participant, self._topic(name, kind), qos=self._qos())

    def reader(self, name: str, kind: Any) -> Any:
        reader = DataReader(self.participant, self._topic(name, kind), qos=self._qos())
        self._condition = ReadCondition(reader, UNREAD)
        self._waitset.attach(self._condition)
        return reader

    def take(self, reader: Any, timeout_s: float) -> list[Any]:
        """Wait for messages, and take the available ones."""
        self._waitset.wait(max(1, int(timeout_s * 1e9)))
        taken = reader.take(TAKE_MAX, condition=self._condition)
        return [message for message in taken if message.sample_info.valid_data]

    def await_matched(self, writer: Any = None, reader: Any = None) -> int:
        """Wait until the writer and the reader, if given, match peers.count peers.

        A relay has predecessors and one successor, and 0 peers until the successor is matched.
        """
        is_relay = self.kit.spec["role"] == "relay"

        def matched() -> int:
            subscriptions = [_length(writer.get_matched_subscriptions)] if writer else []
            publications = [_length(reader.get_matched_publications)] if reader else []
            if is_relay:
                return 1 + publications[0] if subscriptions[0] else 0
            return min(subscriptions + publications)

        self.kit.await_peers(matched)
        return matched()

    def ready(self, matched: int, entity: Any) -> None:
        qos = entity.get_qos()
        reliability, history = qos[Policy.Reliability], qos[Policy.History]
        reliable = isinstance(reliability, Policy.Reliability.Reliable)
        keeps_all = history == Policy.History.KeepAll
        overload = "drop_oldest"
        if keeps_all:
            overload = "block" if reliable else "drop_newest"
        depth = {} if keeps_all else {"depth": history.depth}
        self.kit.ready(
            matched=matched,
            discovery_ns=self.kit.now() - self.created_ns,
            library=("cyclonedds", version("cyclonedds"), "wheel"),
            effective={
                **depth,
                "reliability": "reliable" if reliable else "best_effort",
                "history": "keep_all" if keeps_all else "keep_last",
                "interface": self._interface,
                "domain": entity.get_domain_id(),
                "transport": "udp/ipv4",
                "multicast": self.kit.setting("multicast") and has_joined(self._interface),
            },
            guarantee=(
                "reliable" if reliable and keeps_all else "best_effort",
                "per_sender",
                overload,
            ),
        )


def write(writer: Any, message: Any) -> None:
    try:
        writer.write(message)
    except DDSException as error:  # a timeout without the readers' acknowledgements
        raise SendFailed(str(error)) from error


def domain_of(kit: Kit) -> int:
    """Return the spec's domain, or 1 … 100 from the run token (FNV-1a in all languages)."""
    if kit.setting("domain"):
        return int(kit.setting("domain"))
    state = 0x811C9DC5
    for byte in kit.spec["run"].encode():
        state = ((state ^ byte) * 0x01000193) % 2**32
    return 1 + state % 100


def _length(list_matched: Callable[[], list[int]]) -> int:
    """Return the number of matched peers.

    The library reads the number first and the names later, and raises IndexError if another peer
    is matched in between.
    """
    while True:
        with contextlib.suppress(IndexError):
            return len(list_matched())
