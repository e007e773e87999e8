"""The node's specification: which keys there are and what they may hold (C-02, C-03)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

ROLES = {
    "topic": ("publisher", "subscriber"),
    "service": ("client", "server"),
    "action": ("action_client", "action_server"),
    "pingpong": ("ping", "pong"),
}
# Role codes of the sample file's header (C-24).
ROLE_CODES = (
    *("publisher", "subscriber", "server", "client"),
    *("action_server", "action_client", "ping", "pong"),
)
SENDERS = ("publisher", "client", "action_client", "ping")

CONTRACT = 2
_TEXTS = (
    *("run", "cell", "pattern", "role", "loop", "pacing", "payload.encoding", "payload.literal"),
    *("reply", "reply.literal", "verify", "tls.authority", "tls.certificate", "tls.key"),
)
_NUMBERS = (
    *("contract", "node", "index", "peers.count", "period_ns", "phase_ns", "duration_ns", "count"),
    *("warmup_ns", "overrun_ns", "timeout_ns", "outstanding_max", "quiet_ms", "linger_ms"),
    *("ready_timeout_ms", "spin_ns", "payload.bytes", "payload.seed", "action.feedback"),
    "record.capacity",
)
# A rule is bool, str, a tuple of allowed strings, a range of integers, or a list of one rule
# (each element obeys it). What values the keys may hold is the harness's to check (C-02).
_INT64 = range(-(2**63), 2**63)
KEYS: dict[str, Any] = {
    **dict.fromkeys(_TEXTS, str),
    **dict.fromkeys(_NUMBERS, _INT64),
    "peers.nodes": [_INT64],
    "peers.endpoints": [str],
}


class MiddlewareFailed(Exception):
    """The middleware cannot do its part now (exit 4)."""


class Unsupported(Exception):
    """The cell does not have what the specification asks for (exit 3)."""


class BadSpec(Exception):
    """A key of the specification is missing, unknown or out of its range (exit 2)."""

    def __init__(self, key: str, found: object, allowed: str) -> None:
        super().__init__(f"spec: {key}: found {found!r}; allowed: {allowed}")
        self.key = key


def _describe(rule: Any) -> str:
    if isinstance(rule, list):
        return f"a list, each: {_describe(rule[0])}"
    if isinstance(rule, range):
        return "an integer" if rule == _INT64 else f"an integer, {rule.start} to {rule.stop - 1}"
    if isinstance(rule, tuple):
        return "one of " + ", ".join(rule)
    return "true or false" if rule is bool else "a string"


def _obeys(value: object, rule: Any) -> bool:
    if isinstance(rule, list):
        return isinstance(value, list) and all(_obeys(item, rule[0]) for item in value)
    if isinstance(rule, range):
        return type(value) is int and value in rule
    if isinstance(rule, tuple):
        return isinstance(value, str) and value in rule
    # A lone surrogate is no character, and nothing that is sent could carry it.
    return type(value) is rule and (rule is not str or value.isascii() or _is_text(value))


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_spec(path: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Reads and checks a specification; `settings` maps the cell's setting names to rules."""
    try:
        with open(path, "rb") as file:
            return parse_spec(file.read(), path, settings)
    except OSError as error:
        raise BadSpec("--spec", path, f"a readable JSON file ({error})") from error


def parse_spec(text: bytes, where: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Checks the text of a specification; `where` is what an error says that it is of."""
    try:
        found = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadSpec("--spec", where, f"a JSON text ({error})") from error
    if not isinstance(found, dict):
        raise BadSpec("--spec", where, "a flat JSON object")
    rules = {**KEYS, **{f"settings.{name}": rule for name, rule in settings.items()}}
    known = ", ".join(settings)
    for key, value in found.items():
        if key.startswith("settings.") and key not in rules:
            raise BadSpec(key, value, f"nothing: no such setting; known: {known}")
    for key, rule in rules.items():
        if key not in found:
            raise BadSpec(key, None, _describe(rule))
        if not _obeys(found[key], rule):
            raise BadSpec(key, found[key], _describe(rule))
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


RoleTable = Mapping[str, "str | Callable[..., None]"]
