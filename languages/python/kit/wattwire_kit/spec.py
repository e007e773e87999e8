"""Reader of a node's spec, which checks keys, types and the declaration (C-02, C-03)."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Collection, Mapping
from typing import Any

from .constants import CONTRACT, KEYS, MEMBER_KEYS, PART_KEYS, PIPELINE_KEYS, SENDERS

SETTING, ALLOWED = "settings.", "declared.allowed."
"""Prefixes of the keys with a setting's value and with its supported values."""
PARTS, PART = "parts", "part."
"""Key with the number of a member's parts, and prefix of the keys of each part (C-41)."""
PARTS_MAX = 10_000
"""Largest number of parts of a member."""
ONE_WAY = ("topic", "pipeline")
"""The patterns without replies."""
POINT_BYTES = 16
POINT_FIELDS = (("x", 0), ("y", 4), ("z", 8), ("intensity", 12))
"""The fields of a point with their offsets in bytes; each is a float of 32 bits (C-39)."""
_WORDS = {bool: "true or false", str: "a string", int: "an integer of 64 bits"}


class MiddlewareFailed(Exception):
    """The middleware failed (exit 4)."""


class Unsupported(Exception):
    """The cell does not support the spec (exit 3)."""


class BadSpec(Exception):
    """A key of the spec is missing or unknown, or has a wrong type (exit 2)."""

    def __init__(self, key: str, found: object, allowed: str) -> None:
        super().__init__(f"spec: {key}: found {found!r}; allowed: {allowed}")
        self.key = key


def _describe(kind: Any) -> str:
    return f"a list of items, each {_WORDS[kind[0]]}" if isinstance(kind, list) else _WORDS[kind]


def _is_of(value: object, kind: Any) -> bool:
    if isinstance(kind, list):
        return isinstance(value, list) and all(_is_of(item, kind[0]) for item in value)
    if type(value) is not kind:  # excludes true as an integer
        return False
    if kind is int:
        return -(2**63) <= value < 2**63
    # A lone surrogate is not a character and cannot be sent.
    return kind is bool or value.isascii() or _is_text(value)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object's keys and values. Raise ValueError if a key occurs twice."""
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a key occurs twice")
    return values


def read_spec(path: str) -> dict[str, Any]:
    """Read and check a spec."""
    try:
        with open(path, "rb") as file:
            return parse_spec(file.read(), path)
    except OSError as error:
        raise BadSpec("--spec", path, f"a readable JSON file ({error})") from error


def parse_spec(text: bytes, where: str) -> dict[str, Any]:
    """Check the text of a spec; error messages name `where` as its place."""
    try:
        spec = json.loads(text.decode("utf-8"), object_pairs_hook=_without_repetition)
    except (ValueError, RecursionError) as error:
        raise BadSpec("--spec", where, f"a JSON text ({error})") from error
    if not isinstance(spec, dict):
        raise BadSpec("--spec", where, "a flat JSON object")
    if spec.get("contract") != CONTRACT:
        raise BadSpec("contract", spec.get("contract"), str(CONTRACT))
    _check_types(spec, KEYS)
    further = PIPELINE_KEYS if spec["pattern"] == "pipeline" else {}
    settings = setting_types(spec)
    kinds = {**further, **{f"{SETTING}{name}": kind for name, kind in settings.items()}}
    if spec["role"] == "member":
        _check_types(spec, MEMBER_KEYS)
        if not 1 <= spec[PARTS] <= PARTS_MAX:
            raise BadSpec(PARTS, spec[PARTS], f"1 to {PARTS_MAX}")
        of_part = {**PART_KEYS, **kinds}
        kinds = {
            **kinds,
            **MEMBER_KEYS,
            **{
                f"{PART}{number}.{key}": kind
                for number in range(spec[PARTS])
                for key, kind in of_part.items()
            },
        }
    levels = {f"{ALLOWED}{name}": [kind] for name, kind in settings.items()}
    for key, value in spec.items():
        if key not in KEYS and key not in kinds and key not in levels:
            known = ", ".join(settings)
            raise BadSpec(key, value, f"only known keys; the settings are {known}")
    _check_types(spec, {**kinds, **{key: kind for key, kind in levels.items() if key in spec}})
    for key, addresses in (
        ("host.address", [spec["host.address"]]),
        ("peers.addresses", spec["peers.addresses"]),
    ):
        for address in addresses:
            if not _is_ipv4(address):
                raise BadSpec(key, address, "an IPv4 address")
    return spec


def part_specs(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the spec of each part of a member, as if it were a node of its own (C-41)."""
    common = {k: v for k, v in spec.items() if k != PARTS and not k.startswith(PART)}
    specs = []
    for number in range(spec.get(PARTS, 0)):
        prefix = f"{PART}{number}."
        own = {k.removeprefix(prefix): v for k, v in spec.items() if k.startswith(prefix)}
        specs.append({**common, **own})
    return specs


def setting_types(spec: Mapping[str, Any]) -> dict[str, type]:
    """Return the declared settings with their types."""
    types = (("string", str), ("integer", int), ("boolean", bool))
    return {name: kind for word, kind in types for name in spec[f"declared.{word}_settings"]}


def _check_types(spec: Mapping[str, Any], kinds: Mapping[str, Any]) -> None:
    for key, kind in kinds.items():
        if key not in spec:
            raise BadSpec(key, None, _describe(kind))
        if not _is_of(spec[key], kind):
            raise BadSpec(key, spec[key], _describe(kind))


def _is_ipv4(address: str) -> bool:
    try:
        socket.inet_pton(socket.AF_INET, address)
    except (OSError, ValueError):  # not an address, or not a C string
        return False
    return True


def check_declaration(spec: Mapping[str, Any], roles: Collection[str]) -> None:
    """Raise Unsupported if the spec requests something that is not declared (C-03).

    `roles` are those for which the cell has a function.
    """
    known = [name for name in spec["declared.roles"] if name in roles]
    if spec["role"] not in known:
        raise Unsupported(f"role {spec['role']}; this cell has {', '.join(known)}")
    for each in (spec, *part_specs(spec)):
        _check_values(each)


def _check_values(spec: Mapping[str, Any]) -> None:
    """Raise Unsupported if a value of the spec of a node, or of a part, is not declared."""
    capabilities = spec["declared.capabilities"]
    for name in _required_capabilities(spec):
        if name not in capabilities:
            raise Unsupported(f"{name}; this cell has {', '.join(capabilities)}")
    if spec["payload.encoding"] == "pointcloud":
        _check_point_cloud(spec)
    _check_size(spec)
    for name in setting_types(spec):
        value, allowed = spec[f"{SETTING}{name}"], spec.get(f"{ALLOWED}{name}")
        if allowed is not None and value not in allowed:
            supported = ", ".join(map(repr, allowed))
            raise Unsupported(f"{name} = {value!r}; supported: {supported}")


def _required_capabilities(spec: Mapping[str, Any]) -> list[str]:
    required = [f"encoding.{spec['payload.encoding']}", f"loop.{spec['loop']}"]
    if spec["role"] in SENDERS:
        required.append(f"pacing.{spec['pacing']}")
    if spec["pattern"] not in ONE_WAY:
        required.append(f"reply.{spec['reply']}")
    if spec["payload.literal"]:
        required.append("literal")
    if spec["role"] in ("client", "ping") and spec["loop"] == "open":
        required += ["async_client"] if spec["outstanding_max"] > 1 else []
    return required


def _check_size(spec: Mapping[str, Any]) -> None:
    size, encoding = spec["payload.bytes"], spec["payload.encoding"]
    size_max = spec[f"declared.{'record' if encoding == 'record' else 'payload'}_bytes_max"]
    if size > size_max:
        raise Unsupported(f"payload.bytes {size}; this cell carries at most {size_max}")
    size_min = spec["declared.payload_bytes_min"] * {"bytes": 1, "text": 2}.get(encoding, 0)
    if size < size_min and not spec["payload.literal"]:
        raise Unsupported(f"payload.bytes {size}; this cell carries at least {size_min}")


def _check_point_cloud(spec: Mapping[str, Any]) -> None:
    """Raise Unsupported for a spec that no point cloud can meet (C-39)."""
    if spec["pattern"] not in ONE_WAY:
        raise Unsupported(
            f"pattern {spec['pattern']} with encoding.pointcloud; allowed: {', '.join(ONE_WAY)}"
        )
    if spec["payload.literal"]:
        raise Unsupported("payload.literal with encoding.pointcloud; allowed: an empty literal")
    size = spec["payload.bytes"]
    if size < POINT_BYTES or size % POINT_BYTES:
        raise Unsupported(
            f"payload.bytes {size} with encoding.pointcloud; allowed: multiples of {POINT_BYTES}, "
            f"from {POINT_BYTES}, the bytes of one point; choose one, or use another encoding"
        )


Role = str | Callable[..., None]
"""A role's function, or its module and name as "module:function"."""
