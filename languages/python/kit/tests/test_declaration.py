"""A node refuses what its spec requests and does not declare (C-03)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pairs import CAPABILITIES, settings, spec
from wattwire_kit.spec import BadSpec, Unsupported, check_declaration, parse_spec

ROLES = ("client", "server")
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "a role that is not declared": (
        {"declared.roles": ["server", "pong"]},
        "role client; this cell has server",
    ),
    "a role without a function": (
        {"role": "ping", "declared.roles": ["client", "ping"]},
        "role ping; this cell has client",
    ),
    "an encoding": (
        {"declared.capabilities": ["loop.open", "literal"]},
        "encoding.bytes; this cell has loop.open, literal",
    ),
    "a loop": ({"loop": "closed"}, "loop.closed; this cell has "),
    "a pacing": ({"pacing": "native"}, "pacing.native; this cell has "),
    "a reply": ({"reply": "encrypt"}, "reply.encrypt; this cell has "),
    "a literal": ({"payload.literal": "hello"}, "literal; this cell has "),
    "overlapping calls": ({"outstanding_max": 2}, "async_client; this cell has "),
    "a payload that is too long": (
        {"declared.payload_bytes_max": 63},
        "payload.bytes 64; this cell carries at most 63",
    ),
    "a record that is too long": (
        {"payload.encoding": "record", "payload.bytes": 112, "declared.record_bytes_max": 96},
        "payload.bytes 112; this cell carries at most 96",
    ),
    "a payload that is too short": (
        {"declared.payload_bytes_min": 65},
        "payload.bytes 64; this cell carries at least 65",
    ),
    "a text that is too short": (
        {"payload.encoding": "text", "declared.payload_bytes_min": 33},
        "payload.bytes 64; this cell carries at least 66",
    ),
    "a value of a setting": (
        {"declared.allowed.connections": [2, 3]},
        "connections = 1; supported: 2, 3",
    ),
}
HAS_ALL: dict[str, dict[str, Any]] = {
    "a plain call": {},
    "a payload of the declared size": {
        "declared.payload_bytes_min": 64,
        "declared.payload_bytes_max": 64,
    },
    "a record below the limits of others": {
        "payload.encoding": "record",
        "payload.bytes": 96,
        "declared.payload_bytes_min": 97,
        "declared.payload_bytes_max": 16,
    },
    "a short literal": {
        "payload.literal": "hello",
        "declared.payload_bytes_min": 65,
        "declared.capabilities": CAPABILITIES,
    },
    "a value that is listed": {"declared.allowed.connections": [2, 1]},
}
SMALL = ["encoding.bytes", "encoding.text", "encoding.record", "loop.open", "pacing.kit"]


def refusal(changes: dict[str, Any]) -> str:
    """Return the reason for which a client refuses a spec with `changes`, or ""."""
    values = spec("service", "client", 2, [1]) | settings("tcp")
    values |= {"declared.capabilities": [*SMALL, "reply.echo"], **changes}
    read = parse_spec(json.dumps(values).encode(), "spec.json")
    try:
        check_declaration(read, ROLES)
    except Unsupported as error:
        return str(error)
    return ""


@pytest.mark.parametrize("case", CASES)
def test_the_reason_names_what_is_not_declared_and_what_is(case: str) -> None:
    changes, reason = CASES[case]
    assert refusal(changes).startswith(reason)


@pytest.mark.parametrize("case", HAS_ALL)
def test_what_is_declared_is_accepted(case: str) -> None:
    assert refusal(HAS_ALL[case]) == ""


@pytest.mark.parametrize(
    "key", ["settings.colour", "declared.allowed.colour", "declared.colour", "colour"]
)
def test_an_unknown_key_is_refused_with_the_declared_settings(key: str) -> None:
    with pytest.raises(BadSpec) as caught:
        refusal({key: ["blue"]})
    assert caught.value.key == key
    names = [key.removeprefix("settings.") for key in settings("tcp") if key[0] == "s"]
    assert "tcp_nodelay" in names and all(name in str(caught.value) for name in names)


def test_the_supported_values_have_the_type_of_their_setting() -> None:
    with pytest.raises(BadSpec, match="declared.allowed.connections"):
        refusal({"declared.allowed.connections": ["1"]})
