"""The factors of a study, and the levels that they can have."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from wattwire.model.cores import CORES
from wattwire.model.cores import checked as checked_cores
from wattwire.model.deployment import PATTERNS
from wattwire.model.errors import UsageError, unknown
from wattwire.model.fields import WORDS
from wattwire.model.flows import FLOWS
from wattwire.model.treatment import Level, is_setting

LEVEL_TYPES: dict[str, type] = {
    "middleware": str, "language": str, "cell": str, "pattern": str,
    "interval_s": float, "rate_hz": float, "clients": int,
    "payload_bytes": int, "payload_encoding": str, "loop": str, "pacing": str,
    "verify": str, "reply": str, "literal": str, "count": int, "timeout_ms": int,
    "outstanding_max": int, "action_feedback": int, "variant": str, "server_language": str,
    "nodes": int, "cpu_latency_us": int, "network": str, "placement": str, FLOWS: str,
    "bridge": str, "server_cell": str, CORES: str,
}  # fmt: skip
"""Names of factors and fixed levels → their types. The manifest validates `settings.NAME`."""

ALLOWED_LEVELS: dict[str, Collection[str]] = {
    "pattern": PATTERNS,
    "payload_encoding": ("bytes", "text", "record", "pointcloud"),
    "loop": ("open", "closed"),
    "pacing": ("kit", "native"),
    "verify": ("header", "full"),
    "reply": ("echo", "ack", "literal", "encrypt"),
}
MINIMUM_LEVELS: dict[str, float] = {
    "interval_s": 1e-6, "rate_hz": 1e-3, "clients": 1, "payload_bytes": 0,
    "count": 1, "timeout_ms": 1, "outstanding_max": 1, "action_feedback": 0, "nodes": 3,
    "cpu_latency_us": 0,
}  # fmt: skip
MAXIMUM_LEVELS: dict[str, float] = {
    "interval_s": 3600.0, "rate_hz": 1e6, "clients": 1000, "payload_bytes": 67_108_864,
    "count": 10_000_000, "timeout_ms": 3_600_000, "outstanding_max": 100_000,
    "action_feedback": 10_000, "nodes": 64, "cpu_latency_us": 2_000_000_000,
}  # fmt: skip
DEFAULT_LEVELS: dict[str, Level] = {
    "clients": 1, "payload_bytes": 64, "payload_encoding": "bytes", "loop": "open",
    "pacing": "kit", "verify": "header", "reply": "echo", "literal": "", "count": 1000,
    "timeout_ms": 1000, "outstanding_max": 1, "action_feedback": 3,
}  # fmt: skip
DEFAULT_COUNTS: dict[str, Level] = {"nodes": 3}
"""Default levels of factors that determine the number of nodes in some patterns only."""
DEFAULT_RATE_HZ = 10.0
"""Default rate of a study without a rate or an interval."""
RIG_FACTORS = ("network", "placement")
"""Factors whose levels are names of the rig."""


def check_level(key: str, level: Any, where: str) -> Level:
    """Validate the type and range of a level, and return it.

    Raises UsageError for an invalid level.
    """
    if is_setting(key):
        if isinstance(level, (str, int, float, bool)):
            return level
        raise UsageError(f"{where}: found {level!r}; allowed: a string, a number or a boolean")
    if key not in LEVEL_TYPES:
        raise unknown(where, "factor", key, [*LEVEL_TYPES, "settings.NAME", "outer_settings.NAME"])
    if key == CORES:
        return checked_cores(level, where)
    kind = LEVEL_TYPES[key]
    numeric = isinstance(level, (int, float)) and not isinstance(level, bool)
    if kind is float and numeric and math.isfinite(level):
        level = float(level)
    elif kind is float or not isinstance(level, kind) or isinstance(level, bool):
        raise UsageError(f"{where}: found {level!r}; allowed: {WORDS[kind]}")
    if key in ALLOWED_LEVELS and level not in ALLOWED_LEVELS[key]:
        raise unknown(where, "level", str(level), ALLOWED_LEVELS[key])
    if key in MINIMUM_LEVELS and level < MINIMUM_LEVELS[key]:
        raise UsageError(f"{where}: found {level!r}; allowed: {MINIMUM_LEVELS[key]:,} or more")
    if key in MAXIMUM_LEVELS and level > MAXIMUM_LEVELS[key]:
        raise UsageError(f"{where}: found {level!r}; allowed: {MAXIMUM_LEVELS[key]:,} or less")
    return level


def may_vary(name: object) -> bool:
    """Return whether `name` can be the name of a factor."""
    return isinstance(name, str) and (name in LEVEL_TYPES or is_setting(name))
