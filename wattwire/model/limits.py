"""Parse `[[limit]]` tables, which set the maximum or the minimum acceptable value of a response."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wattwire.model.errors import UsageError, nearest, unknown
from wattwire.model.fields import given, listed_tables, needed, number, read_table
from wattwire.model.treatment import Level
from wattwire.model.variants import FACTOR as VARIANT


@dataclass(frozen=True)
class Limit:
    """Bounds of a response, in the unit of its column, for the treatments that `where` selects.

    `where` maps factors to required levels. An empty table selects every treatment.
    """

    response: str = needed('a column, as "latency_p99_us"')
    max: float | None = number("a number", math.isfinite)
    min: float | None = number("a number", math.isfinite)
    where: dict[str, Level] = given("{factor = level}", {})

    def concerns(self, levels: Mapping[str, Any]) -> bool:
        """Return whether the limit applies to a treatment with these levels."""
        return all(levels.get(key) == level for key, level in self.where.items())


def parse_limits(
    items: Any, factors: Mapping[str, tuple[Level, ...]], where: str
) -> tuple[Limit, ...]:
    """Parse and validate every `[[limit]]`.

    Raises UsageError with the position, the value and the allowed values.
    """
    tables = listed_tables(items, "limit", where)
    return tuple(_parse_limit(item, factors, place) for place, item in tables)


def _parse_limit(
    item: Mapping[str, Any], factors: Mapping[str, tuple[Level, ...]], place: str
) -> Limit:
    limit = read_table(Limit, item, place)
    high, low, response = limit.max, limit.min, limit.response
    if high is None and low is None:
        raise UsageError(f"{place}: {response}: max and min are missing; set at least one of them")
    if high is not None and low is not None and low > high:
        raise UsageError(
            f"{place}: {response}: min {low:g} is above max {high:g}; no value satisfies both"
        )
    check_where(limit.where, factors, place)
    return limit


def check_where(
    table: Mapping[str, Level], factors: Mapping[str, tuple[Level, ...]], place: str
) -> None:
    """Raise UsageError for a factor or a level in `where` that the study does not have."""
    for key, level in table.items():
        if key == VARIANT and key not in factors:
            raise UsageError(
                f"{place}: where.{key}: this study has no variants. Add two, for example "
                "with --variant base= --variant head=FOLDER."
            )
        if key not in factors:
            raise unknown(f"{place}: where", "factor", key, factors)
        if level not in factors[key]:
            allowed = ", ".join(map(repr, factors[key]))
            close = nearest(str(level), [str(known_level) for known_level in factors[key]])
            raise UsageError(f"{place}: where.{key}: found {level!r}; allowed: {allowed}.{close}")
