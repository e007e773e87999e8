"""Valid specs for every role, and specs with one invalid key."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Any

from .cell import CellUnderTest
from .roles import PATTERNS, RELAY_ROLES, SENDING_ROLES

MILLISECOND_NS = 1_000_000
READY_TIMEOUT_MS = 20_000
HOST_ADDRESS = "127.0.0.1"
SEED = 0x0012_3456_789A_BCDE
# The two bytes of a node number differ and are not zero, so that swapped bytes are detected.
SENDER_NODE, RECEIVER_NODE, RELAY_NODE = 0x0203, 0x0405, 0x0607

PAYLOAD_BYTES_MAX = 67_108_864
"""The contract's longest payload, in bytes."""
DECLARED = "declared."
"""Prefix of the keys with what the manifests declare (C-03)."""
SETTING = "settings."
UNKNOWN_SETTING = "settings.colour"
SETTING_TYPES = {"string": str, "integer": int, "boolean": bool}

ENCODINGS = ("bytes", "text", "record", "pointcloud")
WIRE_ENCODINGS = ("bytes", "text", "record")
"""The encodings that a peer without a kit can send, because its messages are only a payload."""


def encodings_of(pattern: str) -> list[str]:
    """Return the encodings of a pattern; patterns with replies have no point clouds (C-39)."""
    return [name for name in ENCODINGS if name != "pointcloud" or PATTERNS[pattern].is_one_way]


_tokens = itertools.count()


def new_token() -> str:
    """Return a run token that is unique on this host."""
    return f"check{os.getpid():x}x{next(_tokens):x}"


def base_spec(cell: CellUnderTest, pattern: str, role: str, **changes: Any) -> dict[str, Any]:
    """Return the complete spec of one node; keys in `changes` have `__` instead of the dot."""
    encodings = [n for n in encodings_of(pattern) if f"encoding.{n}" in cell.capabilities]
    roles, place = PATTERNS[pattern], cell.places[0]
    has_open_loop = roles.is_one_way or "loop.open" in cell.capabilities
    spec: dict[str, Any] = {
        "contract": 3, "run": "check0", "cell": cell.name, "pattern": pattern, "role": role,
        "node": first_node(role), "index": 0, "host.address": place.address,
        "host.interface": place.interface,
        "peers.nodes": [RECEIVER_NODE if role in SENDING_ROLES else SENDER_NODE],
        "peers.count": 1, "peers.endpoints": [], "peers.addresses": [place.address],
        "loop": "open" if has_open_loop else "closed",
        "count": 0 if has_open_loop else 30, "count_beyond": 0, "phase_ns": 0,
        "period_ns": 0, "duration_ns": 0, "warmup_ns": 0, "overrun_ns": 5_000 * MILLISECOND_NS,
        "timeout_ns": 5_000 * MILLISECOND_NS, "outstanding_max": 1, "quiet_ms": 150,
        "linger_ms": 3_000, "ready_timeout_ms": READY_TIMEOUT_MS,
        "pacing": "kit" if "pacing.kit" in cell.capabilities else "native", "spin_ns": 0,
        "payload.bytes": 64, "payload.encoding": (encodings or ["bytes"])[0],
        "payload.seed": SEED, "payload.literal": "", "reply": first_reply(cell),
        "reply.literal": "", "verify": "full", "action.feedback": 2, "record.capacity": 10_000,
        "tls.authority": "", "tls.certificate": "", "tls.key": "",
        "security.governance": "", "security.permissions": "",
    }  # fmt: skip
    if spec["payload.encoding"] == "record":
        spec["payload.bytes"] = 128
    if pattern == "action" or "async_client" in cell.capabilities:
        spec["outstanding_max"] = 4
    if roles.is_chain:
        spec.update({"hop": roles.hop(role, 0, 1), "peers.count": roles.neighbours(role)})
    if has_open_loop:
        spec.update(gentle(pattern, 40, 5))
    spec.update(declared(cell))
    spec.update({f"settings.{name}": value for name, value in cell.settings.items()})
    spec.update({name.replace("__", "."): value for name, value in changes.items()})
    return spec


def declared(cell: CellUnderTest) -> dict[str, Any]:
    """Return the keys `declared.*`, which are equal in all specs of the cell (C-03)."""
    members = ["member"] if "members" in cell.capabilities else []
    values: dict[str, Any] = {
        "roles": [*(role for name in cell.patterns for role in PATTERNS[name].roles), *members],
        "capabilities": list(cell.capabilities),
        "payload_bytes_min": cell.payload_bytes_min,
        "payload_bytes_max": _bytes_max(cell, "bytes"),
        "record_bytes_max": _bytes_max(cell, "record"),
    }
    for kind, python_type in SETTING_TYPES.items():
        names = [name for name, value in cell.settings.items() if type(value) is python_type]
        values[f"{kind}_settings"] = names
    values.update({f"allowed.{name}": list(levels) for name, levels in cell.allowed.items()})
    return {f"{DECLARED}{name}": value for name, value in values.items()}


def _bytes_max(cell: CellUnderTest, encoding: str) -> int:
    longest = cell.bytes_max(encoding)
    return PAYLOAD_BYTES_MAX if longest is None else longest


def first_node(role: str) -> int:
    """Return the node number of the first node of a role."""
    if role in SENDING_ROLES:
        return SENDER_NODE
    return RELAY_NODE if role in RELAY_ROLES else RECEIVER_NODE


def overlap(spec: dict[str, Any]) -> int:
    """Return `outstanding_max`, or 1 if replies do not identify their calls (C-33).

    Without such an identity, only some middleware can match a reply with its call.
    """
    unit = 2 if spec["payload.encoding"] == "text" else 1
    anonymous = spec["payload.bytes"] < 8 * unit or spec["payload.literal"]
    if spec["pattern"] != "action" and (anonymous or spec["reply"] == "literal"):
        return 1
    return int(spec["outstanding_max"])


def first_reply(cell: CellUnderTest) -> str:
    """Return the first kind of reply that the cell declares, or "echo" if it declares none."""
    for kind in ("echo", "ack", "literal"):
        if f"reply.{kind}" in cell.capabilities:
            return kind
    return "echo"


def closed_loop(count: int) -> dict[str, Any]:
    return {"loop": "closed", "count": count, "period_ns": 0, "duration_ns": 0}


def gentle(pattern: str, count: int, period_ms: int) -> dict[str, Any]:
    """Return an open loop that is slow enough for actions and for chains.

    Each goal takes at least 5 messages. In a chain, four nodes or more handle each message.
    """
    if pattern == "action":
        return open_loop(count // 2, 3 * period_ms)
    if PATTERNS[pattern].is_chain:
        return open_loop(count, 2 * period_ms)
    return open_loop(count, period_ms)


def open_loop(count: int, period_ms: int) -> dict[str, Any]:
    period_ns = period_ms * MILLISECOND_NS
    return {"loop": "open", "count": 0, "period_ns": period_ns, "duration_ns": count * period_ns}


def stranger_pace(number: int, **changes: Any) -> dict[str, Any]:
    """Return the schedule of one of four senders to the same receiver, with changes to its spec.

    The senders take turns, so that a receiver that waits for the CPU does not overflow its queue.
    """
    phase = {"phase_ns": number * 15 * MILLISECOND_NS}
    return open_loop(20, 60) | phase | {k.replace("__", "."): v for k, v in changes.items()}


def scheduled(spec: dict[str, Any]) -> int:
    """Return the number of messages that C-10 or C-11 requires."""
    if spec["loop"] == "closed":
        return int(spec["count"])
    return max(0, -int((spec["phase_ns"] - spec["duration_ns"]) // spec["period_ns"]))


def _wrong_type(value: Any) -> Any:
    return 7 if isinstance(value, str) else "7"


def bad_specs(good: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (change, key, spec) for specs that a node must reject (C-02)."""
    for key in good:
        if key.startswith(f"{DECLARED}allowed."):
            continue
        yield "missing", key, {name: value for name, value in good.items() if name != key}
        yield "wrongly typed", key, {**good, key: _wrong_type(good[key])}
    yield "version 2", "contract", {**good, "contract": 2}
    yield "true instead of an integer", "node", {**good, "node": True}
    yield "unknown", UNKNOWN_SETTING, {**good, UNKNOWN_SETTING: "blue"}
    settings = [key for key in good if key.startswith(SETTING)]
    for key in settings[:1]:
        yield "undeclared", key, _without_declaration(good, key.removeprefix(SETTING))


def setting_names(spec: dict[str, Any]) -> list[str]:
    """Return the names of the declared settings."""
    return [name for kind in SETTING_TYPES for name in spec[f"{DECLARED}{kind}_settings"]]


def _without_declaration(spec: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a spec whose declaration lacks a setting."""
    lists = [f"{DECLARED}{kind}_settings" for kind in SETTING_TYPES]
    changes = {key: [other for other in spec[key] if other != name] for key in lists}
    changed = {**spec, **changes}
    changed.pop(f"{DECLARED}allowed.{name}", None)
    return changed
