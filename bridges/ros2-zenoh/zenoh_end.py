"""The Zenoh end of a bridge: two peers, of which the exit listens, or two clients of a router."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import zenoh
from wattwire_kit import BadSpec, Kit, MiddlewareFailed, SendFailed

LISTEN_ATTEMPTS = 5


class OuterEnd:
    """A session with the bridge process on the other host.

    A reliable ROS topic blocks while the link's queue is full; a best-effort topic drops.
    """

    def __init__(self, kit: Kit, is_entry: bool, is_reliable: bool) -> None:
        self.kit = kit
        self._kept: list[Any] = []  # declarations exist while they are referenced
        self._tokens: set[str] = set()
        congestion = zenoh.CongestionControl
        self._congestion = congestion.BLOCK if is_reliable else congestion.DROP
        self._publisher: zenoh.Publisher | None = None
        self._mode = "client" if kit.setting("outer_via") == "router" else "peer"
        self._protocol = "tls" if kit.setting("outer_security") == "on" else "tcp"
        connects = is_entry or self._mode == "client"
        self.zenoh = self._connect() if connects else self._listen()

    def _open(self, listen: list[str], connect: list[str]) -> zenoh.Session:
        config = zenoh.Config()
        for key, value in {
            "mode": self._mode,
            "listen/endpoints": listen,
            "connect/endpoints": connect,
            "connect/timeout_ms": self.kit.spec["ready_timeout_ms"],
            "connect/exit_on_failure": True,
            "scouting/multicast/enabled": False,
            "scouting/gossip/enabled": False,
            "transport/shared_memory/enabled": False,  # the other end is on another host
        }.items():
            config.insert_json5(key, json.dumps(value))
        if self._protocol == "tls":
            config.insert_json5("transport/link/tls", json.dumps(self._credentials()))
        return zenoh.open(config)

    def _credentials(self) -> dict[str, Any]:
        """Return the table of TLS, in which both sides show a certificate of the run (C-43)."""
        certificate, key = self.kit.spec["tls.certificate"], self.kit.spec["tls.key"]
        authority = self.kit.spec["tls.authority"]
        table: dict[str, Any] = {"root_ca_certificate": authority, "enable_mtls": True}
        for side in ("listen", "connect"):
            table |= {f"{side}_certificate": certificate, f"{side}_private_key": key}
        return table

    def _connect(self) -> zenoh.Session:
        endpoints = self.kit.spec["peers.endpoints"]
        if not endpoints:
            raise BadSpec(
                "peers.endpoints", endpoints, "the router or the other end, as tcp/HOST:PORT"
            )
        try:
            return self._open([], endpoints)
        except zenoh.ZError as error:
            raise MiddlewareFailed(f"connect to {', '.join(endpoints)}: {error}") from error

    def _listen(self) -> zenoh.Session:
        host, reason = self.kit.spec["host.address"], ""
        for _ in range(LISTEN_ATTEMPTS):
            endpoint = f"{self._protocol}/{host}:{_free_port(host)}"
            try:
                session = self._open([endpoint], [])
            except zenoh.ZError as error:  # another program may have taken the port
                reason = f"listen on {endpoint}: {error}"
                continue
            self.kit.listening([endpoint])
            return session
        raise MiddlewareFailed(reason)

    def _key(self, topic: str) -> str:
        return f"wattwire/{self.kit.spec['run']}/{topic}"

    def advertise(self) -> None:
        topic = self.kit.sending_topic()
        self._publisher = self.zenoh.declare_publisher(
            self._key(topic), congestion_control=self._congestion
        )
        token = self.zenoh.liveliness().declare_token(self._key(f"live/{topic}"))
        self._kept.append(token)

    def subscribe(self, on_message: Callable[[bytes], None]) -> None:
        topic = self.kit.receiving_topic()

        def on_sample(sample: zenoh.Sample) -> None:
            on_message(sample.payload.to_bytes())

        self._kept.append(self.zenoh.declare_subscriber(self._key(topic), on_sample))
        # The entry declares its token after its publisher; this end receives both in this order.
        self._kept.append(
            self.zenoh.liveliness().declare_subscriber(
                self._key(f"live/{topic}"),
                lambda token: self._tokens.add(str(token.key_expr)),
                history=True,
            )
        )

    def publish(self, serialized: bytes) -> None:
        assert self._publisher is not None
        try:
            self._publisher.put(serialized)
        except zenoh.ZError as error:
            raise SendFailed(str(error)) from error

    def matched(self) -> int:
        if self._publisher is not None:
            return int(self._publisher.matching_status.matching)
        return len(self._tokens)

    def effective(self) -> dict[str, Any]:
        return {
            "outer": "zenoh",
            "outer_library": f"eclipse-zenoh {version('eclipse-zenoh')}",
            "outer_congestion_control": str(self._congestion).rpartition(".")[2].lower(),
        }

    def watch(self, interrupt: Callable[[], object]) -> None:
        """Do nothing: Zenoh reconnects by itself, and its losses are those of the hop."""

    def check(self) -> None:
        """Do nothing; see `watch`."""

    def close(self) -> None:
        self.zenoh.close()


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])
