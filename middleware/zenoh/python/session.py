"""A Zenoh session: its configuration, its peers, READY, and its end."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import zenoh
from configuration import (
    SHARED_BYTES_MIN,
    configuration,
    free_port,
    is_routed,
    is_secured,
    protocol,
)
from segments import remove_own
from wattwire_kit import BadSpec, Kit, MiddlewareFailed

LISTEN_ATTEMPTS = 5
ENDPOINT = re.compile(r"(tcp|udp|tls)/[^/]+:\d{1,5}")
REFUSALS = "off,zenoh_link_tls=warn"
"""Zenoh tells the node that connects nothing but a timeout; the log of the other node has why."""
WHY = "; if a certificate was refused, the log of the process that listens says why"
NOT_TOLD = "not told by the library"


class Session:
    """An open session. The constructor raises MiddlewareFailed if a peer cannot be reached."""

    def __init__(self, kit: Kit, listens: bool, connects: bool) -> None:
        self.kit = kit
        self.prefix = f"wattwire/{kit.spec['run']}"
        self.created_ns = kit.now()
        self._tokens: set[str] = set()
        self._kept: list[Any] = []  # declarations exist while they are referenced
        is_client = is_routed(kit)
        if is_secured(kit):
            zenoh.init_log_from_env_or(REFUSALS)
        endpoints = self._endpoints() if connects or is_client else []
        self.zenoh = (
            self._listen(endpoints) if listens and not is_client else self._connect(endpoints)
        )

    def _open(self, listen: list[str], connect: list[str]) -> Any:
        self._config = configuration(self.kit, listen, connect)
        return zenoh.open(self._config)

    def _endpoints(self) -> list[str]:
        endpoints: list[str] = self.kit.spec["peers.endpoints"]
        for endpoint in endpoints or [""]:
            if not ENDPOINT.fullmatch(endpoint):
                raise BadSpec("peers.endpoints", endpoints, "PROTOCOL/HOST:PORT, of tcp, udp, tls")
        # A node that is not secured speaks plainly, also to a peer that is.
        return [f"{protocol(self.kit)}/{each.partition('/')[2]}" for each in endpoints]

    def _listen(self, connect: list[str]) -> Any:
        """Listen on a free port; Zenoh does not report the port that it takes for 0.

        The session of a relay also connects to `connect`, for at most ready_timeout_ms.
        """
        host, transport = self.kit.spec["host.address"], protocol(self.kit)
        deadline_ns = self.kit.now() + self.kit.spec["ready_timeout_ms"] * 1_000_000
        reason = ""
        for _ in range(LISTEN_ATTEMPTS):
            endpoint = f"{transport}/{host}:{free_port(host, transport)}"
            try:
                session = self._open([endpoint], connect)
            except zenoh.ZError as error:  # another program may have taken the port
                reason = f"listen on {endpoint}: {error}"
                if self.kit.now() > deadline_ns:
                    break
                continue
            self.kit.listening([endpoint])
            return session
        raise MiddlewareFailed(reason)

    def _connect(self, endpoints: list[str]) -> Any:
        try:
            return self._open([], endpoints)
        except zenoh.ZError as error:
            why = WHY if is_secured(self.kit) else ""
            raise MiddlewareFailed(f"connect to {', '.join(endpoints)}: {error}{why}") from error

    # --- matching -----------------------------------------------------------------------------

    def keep(self, declared: Any) -> Any:
        self._kept.append(declared)
        return declared

    def congestion(self, default: zenoh.CongestionControl) -> zenoh.CongestionControl:
        """Return the setting's value; `default` is Zenoh's default for this kind of message."""
        value = self.kit.setting("congestion_control")
        return default if value == "default" else getattr(zenoh.CongestionControl, value.upper())

    def await_peers(self, own: str, others: str, matched: Any = lambda: True) -> int:
        """Wait for `matched()` and peers.count tokens of `others`; return the number of tokens."""
        self.announce(own, others)
        self.kit.await_peers(lambda: len(self._tokens) if matched() else 0)
        return len(self._tokens)

    def announce(self, own: str, others: str) -> None:
        """Declare a token of the role `own`, and collect the tokens of the role `others`.

        A node declares its liveliness token after its endpoint, and peers receive both in this
        order. A node that sees a token therefore knows the peer's endpoint.
        """
        live = self.zenoh.liveliness()
        self.keep(live.declare_token(f"{self.prefix}/live/{own}/{self.kit.spec['node']}"))
        self.keep(
            live.declare_subscriber(
                f"{self.prefix}/live/{others}/*",
                lambda token: self._tokens.add(str(token.key_expr)),
                history=True,
            )
        )

    def ready(self, matched: int, congestion: zenoh.CongestionControl, reliability: str) -> None:
        links = self.zenoh.info.links()
        blocks = congestion == zenoh.CongestionControl.BLOCK
        used = links[0].dst.partition("/")[0] if links else protocol(self.kit)
        transport = "tcp" if used == "tls" else used
        config = self._config
        effective = {
            "via": "router" if routers(self.zenoh) else "direct",
            "transport": transport,
            "congestion_control": "block" if blocks else "drop",
            "reliability": reliability,
            "batching": json.loads(config.get_json("transport/link/tx/queue/batching/enabled")),
            "shared_memory": any(t.is_shm for t in self.zenoh.info.transports()),
            "shared_memory_bytes_min": json.loads(config.get_json(SHARED_BYTES_MIN)),
            "scouting": json.loads(config.get_json("scouting/multicast/enabled")),
            "mode": json.loads(config.get_json("mode")),
            "links": len(links),
            "security": "on" if used == "tls" else "off",
        }
        if used == "tls":
            effective |= dict.fromkeys(("security_protocol", "security_cipher"), NOT_TOLD)
        reliable = transport == "tcp" and blocks
        self.kit.ready(
            matched=matched,
            discovery_ns=self.kit.now() - self.created_ns,
            library=("eclipse-zenoh", version("eclipse-zenoh"), "wheel"),
            effective=effective,
            guarantee=(
                "reliable" if reliable else "best_effort",
                "per_sender",
                "block" if blocks else "drop_newest",
            ),
        )

    def close(self) -> None:
        self.zenoh.close()
        remove_own()


def routers(session: zenoh.Session) -> int:
    """Return the number of routers to which a session is connected."""
    return sum(t.whatami == zenoh.WhatAmI.ROUTER for t in session.info.transports())


def with_session(
    listens: bool,
    connects: bool,
) -> Callable[[Callable[[Kit, Session], None]], Callable[[Kit], None]]:
    """Run a role with a session that is always closed, because shared memory outlives a process."""

    def decorate(role: Callable[[Kit, Session], None]) -> Callable[[Kit], None]:
        def run(kit: Kit) -> None:
            session = Session(kit, listens, connects)
            try:
                role(kit, session)
            finally:
                session.close()

        return run

    return decorate
