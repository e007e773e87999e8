"""The node's specification: which keys there are and what they may hold (C-02, C-03)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .constants import CONTRACT, KEYS, SENDERS

_WORDS = {bool: "true or false", str: "a string", int: "an integer of 64 bits"}


class MiddlewareFailed(Exception):
    """The middleware cannot do its part now (exit 4)."""


class Unsupported(Exception):
    """The cell does not have what the specification asks for (exit 3)."""


class BadSpec(Exception):
    """A key of the specification is missing, unknown or of another type (exit 2)."""

    def __init__(self, key: str, found: object, allowed: str) -> None:
        super().__init__(f"spec: {key}: found {found!r}; allowed: {allowed}")
        self.key = key


def _describe(kind: Any) -> str:
    return f"a list, each: {_WORDS[kind[0]]}" if isinstance(kind, list) else _WORDS[kind]


def _is_of(value: object, kind: Any) -> bool:
    if isinstance(kind, list):
        return isinstance(value, list) and all(_is_of(item, kind[0]) for item in value)
    if type(value) is not kind:  # true is no integer
        return False
    if kind is int:
        return -(2**63) <= value < 2**63
    # A lone surrogate is no character, and nothing that is sent could carry it.
    return kind is bool or value.isascii() or _is_text(value)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object's keys and values. Raises ValueError where a key occurs twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def read_spec(path: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Reads and checks a specification; `settings` maps the cell's setting names to kinds."""
    try:
        with open(path, "rb") as file:
            return parse_spec(file.read(), path, settings)
    except OSError as error:
        raise BadSpec("--spec", path, f"a readable JSON file ({error})") from error


def parse_spec(text: bytes, where: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Checks the text of a specification; `where` is what an error says that it is of."""
    try:
        found = json.loads(text.decode("utf-8"), object_pairs_hook=_without_repetition)
    except (ValueError, RecursionError) as error:
        raise BadSpec("--spec", where, f"a JSON text ({error})") from error
    if not isinstance(found, dict):
        raise BadSpec("--spec", where, "a flat JSON object")
    kinds = {**KEYS, **{f"settings.{name}": kind for name, kind in settings.items()}}
    known = ", ".join(settings)
    for key, value in found.items():
        if key not in kinds:
            raise BadSpec(key, value, f"nothing: no such key; known settings: {known}")
    for key, kind in kinds.items():
        if key not in found:
            raise BadSpec(key, None, _describe(kind))
        if not _is_of(found[key], kind):
            raise BadSpec(key, found[key], _describe(kind))
    if found["contract"] != CONTRACT:
        raise BadSpec("contract", found["contract"], str(CONTRACT))
    return found


def check_capabilities(
    spec: Mapping[str, Any],
    roles: Mapping[str, object],
    capabilities: Sequence[str],
    payload_bytes_max: int | None,
    record_bytes_max: int | None = None,
) -> None:
    """Raises Unsupported where the cell lacks what the specification asks for (C-03)."""
    if spec["role"] not in roles:
        raise Unsupported(f"role {spec['role']}; this cell has {', '.join(roles)}")
    wanted = [f"encoding.{spec['payload.encoding']}", f"loop.{spec['loop']}"]
    if spec["role"] in SENDERS:
        wanted.append(f"pacing.{spec['pacing']}")
    if spec["pattern"] != "topic":
        wanted.append(f"reply.{spec['reply']}")
    if spec["payload.literal"]:
        wanted.append("literal")
    if spec["role"] in ("client", "ping") and spec["loop"] == "open":
        wanted += ["async_client"] if spec["outstanding_max"] > 1 else []
    for name in wanted:
        if name not in capabilities:
            raise Unsupported(f"{name}; this cell has {', '.join(capabilities)}")
    found, most = spec["payload.bytes"], payload_bytes_max
    if spec["payload.encoding"] == "record" and record_bytes_max is not None:
        most = record_bytes_max
    if most is not None and found > most:
        raise Unsupported(f"payload.bytes {found}; this cell carries at most {most}")


def check_settings(spec: Mapping[str, Any], allowed: Mapping[str, Sequence[Any]]) -> None:
    """Raises Unsupported for a value that the cell's manifest leaves out (C-03)."""
    for name, values in allowed.items():
        if spec[f"settings.{name}"] not in values:
            have = ", ".join(map(repr, values))
            raise Unsupported(f"{name} = {spec[f'settings.{name}']!r}; this cell has {have}")


RoleTable = Mapping[str, "str | Callable[..., None]"]
