"""Define the factors of a study, and the levels that they can have."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from wattwire.model.cores import CORES
from wattwire.model.cores import checked as checked_cores
from wattwire.model.deployment import PATTERNS
from wattwire.model.errors import UsageError, unknown
from wattwire.model.fields import WORDS
from wattwire.model.flows import FLOWS, PAYLOAD_BYTES, RATE_HZ
from wattwire.model.treatment import Level, is_setting


@dataclass(frozen=True)
class LevelRule:
    """The levels of a factor: their type, range or words, and the level of a study without the key.

    The default is None for a factor without a common default.
    """

    kind: type
    minimum: float | None = None
    maximum: float | None = None
    words: Collection[str] = ()
    default: Level | None = None


LEVEL_RULES = {
    "middleware": LevelRule(str),
    "language": LevelRule(str),
    "cell": LevelRule(str),
    "pattern": LevelRule(str, words=PATTERNS),
    "interval_s": LevelRule(float, 1e-6, 3600.0),
    "rate_hz": LevelRule(float, *RATE_HZ),
    "clients": LevelRule(int, 1, 1000, default=1),
    "payload_bytes": LevelRule(int, 0, PAYLOAD_BYTES[1], default=64),
    "payload_encoding": LevelRule(
        str, words=("bytes", "text", "record", "pointcloud"), default="bytes"
    ),
    "loop": LevelRule(str, words=("open", "closed"), default="open"),
    "pacing": LevelRule(str, words=("kit", "native"), default="kit"),
    "verify": LevelRule(str, words=("header", "full"), default="header"),
    "reply": LevelRule(str, words=("echo", "ack", "literal", "encrypt"), default="echo"),
    "literal": LevelRule(str, default=""),
    "count": LevelRule(int, 1, 10_000_000, default=1000),
    "timeout_ms": LevelRule(int, 1, 3_600_000, default=1000),
    "outstanding_max": LevelRule(int, 1, 100_000, default=1),
    "action_feedback": LevelRule(int, 0, 10_000, default=3),
    "variant": LevelRule(str),
    "server_language": LevelRule(str),
    "nodes": LevelRule(int, 2, 64),
    "cpu_latency_us": LevelRule(int, 0, 2_000_000_000),
    "network": LevelRule(str),
    "placement": LevelRule(str),
    FLOWS: LevelRule(str),
    "bridge": LevelRule(str),
    "server_cell": LevelRule(str),
    CORES: LevelRule(str),
}
"""Name of a factor or a fixed level → its levels. The manifest validates `settings.NAME`."""
DEFAULT_LEVELS: dict[str, Level] = {
    name: rule.default for name, rule in LEVEL_RULES.items() if rule.default is not None
}
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
    if key not in LEVEL_RULES:
        raise unknown(where, "factor", key, [*LEVEL_RULES, "settings.NAME", "outer_settings.NAME"])
    if key == CORES:
        return checked_cores(level, where)
    rule = LEVEL_RULES[key]
    kind = rule.kind
    numeric = isinstance(level, (int, float)) and not isinstance(level, bool)
    if kind is float and numeric and math.isfinite(level):
        level = float(level)
    elif kind is float or not isinstance(level, kind) or isinstance(level, bool):
        raise UsageError(f"{where}: found {level!r}; allowed: {WORDS[kind]}")
    if rule.words and level not in rule.words:
        raise unknown(where, "level", str(level), rule.words)
    if rule.minimum is not None and level < rule.minimum:
        raise UsageError(f"{where}: found {level!r}; allowed: {rule.minimum:,} or more")
    if rule.maximum is not None and level > rule.maximum:
        raise UsageError(f"{where}: found {level!r}; allowed: {rule.maximum:,} or less")
    return level


def may_vary(name: object) -> bool:
    """Return whether `name` can be the name of a factor."""
    return isinstance(name, str) and (name in LEVEL_RULES or is_setting(name))
