"""`[[limit]]`: the largest and the smallest acceptable value of a response."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wattwire.model.errors import UsageError, nearest, unknown
from wattwire.model.treatment import Level
from wattwire.model.variants import FACTOR as VARIANT

LIMIT_KEYS = ("response", "max", "min", "where")


@dataclass(frozen=True)
class Limit:
    """Bounds of one response, in its column's unit, for the treatments that `where` selects.

    `where` maps factors to their required level; an empty table selects every treatment.
    """

    response: str
    max: float | None = None
    min: float | None = None
    where: dict[str, Level] = field(default_factory=dict)

    def concerns(self, levels: Mapping[str, Any]) -> bool:
        """Return whether the limit applies to a treatment with these levels."""
        return all(levels.get(key) == level for key, level in self.where.items())


def parse_limits(
    items: Any, factors: Mapping[str, tuple[Level, ...]], where: str
) -> tuple[Limit, ...]:
    """Return every checked `[[limit]]`.

    Raises UsageError that gives the place, the value and the allowed values.
    """
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        raise UsageError(f"{where}: limit: found {items!r}; allowed: tables [[limit]]")
    return tuple(
        _parse_limit(item, factors, f"{where}: limit {number}")
        for number, item in enumerate(items, 1)
    )


def _parse_limit(
    item: Mapping[str, Any], factors: Mapping[str, tuple[Level, ...]], place: str
) -> Limit:
    for key in item:
        if key not in LIMIT_KEYS:
            raise unknown(place, "key", key, LIMIT_KEYS)
    response = item.get("response")
    if not isinstance(response, str) or not response:
        value_text = "nothing" if response is None else repr(response)
        raise UsageError(
            f'{place}: response: found {value_text}; allowed: a column, as "latency_p99_us"'
        )
    bounds = {key: _bound(item, key, place) for key in ("max", "min")}
    high, low = bounds["max"], bounds["min"]
    if high is None and low is None:
        raise UsageError(f"{place}: {response}: neither max nor min; give at least one of them")
    if high is not None and low is not None and low > high:
        raise UsageError(f"{place}: {response}: min {low:g} is above max {high:g}; nothing fits")
    return Limit(response, high, low, _where(item.get("where", {}), factors, place))


def _bound(item: Mapping[str, Any], key: str, place: str) -> float | None:
    value = item.get(key)
    if value is None:
        return None
    numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not numeric or not abs(value) <= sys.float_info.max:
        raise UsageError(f"{place}: {key}: found {value!r}; allowed: a number")
    return float(value)


def _where(table: Any, factors: Mapping[str, tuple[Level, ...]], place: str) -> dict[str, Level]:
    if not isinstance(table, Mapping):
        raise UsageError(f"{place}: where: found {table!r}; allowed: {{factor = level}}")
    for key, level in table.items():
        if key == VARIANT and key not in factors:
            raise UsageError(
                f"{place}: where.{key}: this study has no variants; give two, as --variant base= "
                "--variant head=FOLDER"
            )
        if key not in factors:
            raise unknown(f"{place}: where", "factor", key, factors)
        if level not in factors[key]:
            allowed = ", ".join(map(repr, factors[key]))
            close = nearest(str(level), [str(known_level) for known_level in factors[key]])
            raise UsageError(f"{place}: where.{key}: found {level!r}; allowed: {allowed}.{close}")
    return dict(table)
