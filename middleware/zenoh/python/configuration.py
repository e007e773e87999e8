"""The configuration of a session; all other options have Zenoh's defaults."""

from __future__ import annotations

import json
import socket
from typing import Any

import zenoh
from wattwire_kit import BadSpec, Kit

SHARED_BYTES_MIN = "transport/shared_memory/transport_optimization/message_size_threshold"


def configuration(kit: Kit, listen: list[str], connect: list[str]) -> zenoh.Config:
    config = zenoh.Config()
    is_shared = kit.spec["payload.bytes"] >= json.loads(config.get_json(SHARED_BYTES_MIN))
    for key, value in {
        "mode": "client" if is_routed(kit) else "peer",
        "listen/endpoints": listen,
        "connect/endpoints": connect,
        "connect/timeout_ms": kit.spec["ready_timeout_ms"],
        "connect/exit_on_failure": True,
        "scouting/multicast/enabled": kit.setting("scouting"),
        "scouting/multicast/interface": kit.spec["host.interface"],
        "scouting/gossip/enabled": kit.setting("scouting"),
        "transport/shared_memory/enabled": kit.setting("shared_memory"),
        # Allocate buffers before READY (C-07) instead of at the first message that needs them.
        "transport/shared_memory/mode": "init" if is_shared else "lazy",
        "transport/link/tx/queue/batching/enabled": kit.setting("batching"),
    }.items():
        config.insert_json5(key, json.dumps(value))
    if is_secured(kit):
        config.insert_json5("transport/link/tls", json.dumps(credentials(kit)))
    return config


def is_secured(kit: Kit) -> bool:
    """Return whether links use TLS, in which both sides show a certificate (C-43)."""
    return bool(kit.setting("security") == "on")


def protocol(kit: Kit) -> str:
    """Return the protocol in endpoints. Zenoh secures TCP by TLS, and UDP not at all."""
    transport: str = kit.setting("transport")
    if not is_secured(kit):
        return transport
    if transport != "tcp":
        raise BadSpec("settings.transport", transport, "tcp with security = on")
    return "tls"


def credentials(kit: Kit) -> dict[str, Any]:
    """Return the table of TLS; a node without a certificate shows none when it connects."""
    certificate, key = kit.spec["tls.certificate"], kit.spec["tls.key"]
    table: dict[str, Any] = {"root_ca_certificate": kit.spec["tls.authority"]}
    if certificate:
        table["enable_mtls"] = True
        for side in ("listen", "connect"):
            table |= {f"{side}_certificate": certificate, f"{side}_private_key": key}
    return table


def is_routed(kit: Kit) -> bool:
    """Return whether all nodes are clients of a router, which is then their only endpoint."""
    return bool(kit.setting("via") == "router")


def free_port(host: str, transport: str) -> int:
    kind = socket.SOCK_DGRAM if transport == "udp" else socket.SOCK_STREAM
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])
