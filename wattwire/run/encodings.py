"""Find the treatments whose payload or pattern an encoding cannot carry."""

from __future__ import annotations

from wattwire.model.deployment import PATTERNS, Pattern
from wattwire.model.treatment import Treatment

RECORD_BYTES_MIN = 96
POINT_BYTES = 16


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
