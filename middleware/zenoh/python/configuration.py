"""The configuration of a session; all other options have Zenoh's defaults."""

from __future__ import annotations

import json
import socket

import zenoh
from wattwire_kit import Kit

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
    return config


def is_routed(kit: Kit) -> bool:
    """Return whether all nodes are clients of a router, which is then their only endpoint."""
    return bool(kit.setting("via") == "router")


def free_port(host: str, transport: str) -> int:
    kind = socket.SOCK_STREAM if transport == "tcp" else socket.SOCK_DGRAM
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])
