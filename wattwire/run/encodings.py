"""Find the treatments whose payload or pattern an encoding or a reply does not permit."""

from __future__ import annotations

from wattwire.model.deployment import PATTERNS, Pattern
from wattwire.model.treatment import Treatment

RECORD_BYTES_MIN = 96
POINT_BYTES = 16
FRAME_BYTES = 40
"""Header, key and trailer of a payload whose blocks the server encrypts (C-40)."""
BLOCK_BYTES = 16


def encoding_gap(treatment: Treatment, pattern: Pattern) -> str | None:
    """Return the reason if an encoding cannot carry a treatment's payload, else None."""
    encoding = treatment["payload_encoding"]
    payload_bytes = int(treatment["payload_bytes"])
    if encoding == "record":
        if payload_bytes < RECORD_BYTES_MIN:
            return f"a record has at least {RECORD_BYTES_MIN} bytes (C-32)"
        if treatment["literal"]:
            return "a record carries no literal (C-32)"
    if encoding == "pointcloud":
        return _point_cloud_gap(payload_bytes, str(treatment["literal"]), pattern)
    return None


def reply_gap(treatment: Treatment, pattern: Pattern) -> str | None:
    """Return the reason if no server can give a treatment's reply, else None."""
    if treatment["reply"] != "encrypt":
        return None
    level = "with reply = encrypt"
    if pattern.name != "service":
        return (
            f"pattern = {pattern.name} {level}; allowed: service (C-40). Use this pattern, or "
            "another reply"
        )
    encoding = treatment["payload_encoding"]
    if encoding != "bytes" or treatment["literal"]:
        return (
            f"payload_encoding = {encoding}, literal = {treatment['literal']!r} {level}; allowed: "
            "bytes and an empty literal (C-40). Use these, or another reply"
        )
    payload_bytes = int(treatment["payload_bytes"])
    blocks, rest = divmod(payload_bytes - FRAME_BYTES, BLOCK_BYTES)
    if blocks >= 0 and not rest:
        return None
    nearest = [FRAME_BYTES + BLOCK_BYTES * max(0, count) for count in (blocks, blocks + 1)]
    return (
        f"payload_bytes = {payload_bytes} {level} is no whole number of blocks; allowed: 40 + 16 k "
        f"bytes, for k blocks (C-40). Use {' or '.join(map(str, dict.fromkeys(nearest)))}"
    )


def _point_cloud_gap(payload_bytes: int, literal: str, pattern: Pattern) -> str | None:
    level = "with payload_encoding = pointcloud"
    if pattern.result:
        one_way = ", ".join(name for name, known in PATTERNS.items() if not known.result)
        return (
            f"pattern = {pattern.name} {level}; allowed: {one_way}, because no service of this "
            "type exists (C-39). Use one of these patterns, or another encoding"
        )
    if literal:
        return (
            f"literal = {literal!r} {level}; allowed: an empty literal (C-39). Remove the literal"
        )
    points, rest = divmod(payload_bytes, POINT_BYTES)
    if points and not rest:
        return None
    nearest = [count * POINT_BYTES for count in (points, points + 1) if count]
    return (
        f"payload_bytes = {payload_bytes} {level} is no whole number of points; allowed: multiples "
        f"of {POINT_BYTES}, from {POINT_BYTES} (C-39). Use {' or '.join(map(str, nearest))}"
    )
