"""Conversion of payloads to and from HTTP bodies (README.md of the middleware)."""

from __future__ import annotations

from typing import Any

from wattwire_kit import Kit, Record

TYPES = {
    "bytes": "application/octet-stream",
    "text": "text/plain; charset=utf-8",
    "record": "application/json",
}


def content_type(kit: Kit) -> str:
    return TYPES["text" if kit.spec["payload.literal"] else kit.encoding]


def encoded(payload: Any) -> bytes:
    return payload.to_json() if isinstance(payload, Record) else bytes(payload)


def decoded(kit: Kit, body: bytes) -> Any:
    """Return the payload, or UNREADABLE for a record that cannot be decoded."""
    return Record.from_json(body) if kit.encoding == "record" else body
