"""Parse `[[paper_path]]` tables, which request further comparisons with the paper's method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from wattwire.model.errors import UsageError, nearest, unknown
from wattwire.model.fields import given, listed_tables, names, needed, read_table
from wattwire.model.treatment import Level


@dataclass(frozen=True)
class Walk:
    """Groups of runs by the levels of `by`, among the runs that `where` selects.

    `where` maps factors to permitted levels. An empty table selects every run.
    """

    response: str = needed('a name, as "power_w"')
    by: tuple[str, ...] = names(
        "a list of factors, such as ['language']", needed=True, word="factor"
    )
    where: dict[str, tuple[Level, ...]] = given("{factor = level}", {})


def parse_walks(
    items: Any,
    factors: Mapping[str, tuple[Level, ...]],
    fixed: Mapping[str, Level],
    check_level: Callable[[str, Any, str], Level],
    where: str,
) -> tuple[Walk, ...]:
    """Parse and validate every `[[paper_path]]`.

    A factor may be varied or fixed, because a preset can fix a factor of the study. Raises
    UsageError with the position, the value and the allowed values.
    """
    tables = listed_tables(items, "paper_path", where)
    known_levels = {**{name: (level,) for name, level in fixed.items()}, **factors}
    return tuple(_walk(item, known_levels, check_level, place) for place, item in tables)


def _walk(
    item: Mapping[str, Any],
    known_levels: Mapping[str, tuple[Level, ...]],
    check_level: Callable[[str, Any, str], Level],
    place: str,
) -> Walk:
    walk = read_table(Walk, item, place, {"factor": known_levels})
    levels_by_factor = {
        name: _levels(name, level, known_levels, check_level, f"{place}: where")
        for name, level in walk.where.items()
    }
    return replace(walk, where=levels_by_factor)


def _levels(
    name: str,
    value: Any,
    known_levels: Mapping[str, tuple[Level, ...]],
    check_level: Callable[[str, Any, str], Level],
    place: str,
) -> tuple[Level, ...]:
    """Return the validated levels of a factor in `where`, given as a level or a list.

    Raises UsageError for an unknown factor or level, and for an empty list.
    """
    if name not in known_levels:
        raise unknown(place, "factor", name, known_levels)
    levels = value if isinstance(value, list) else [value]
    if not levels:
        raise UsageError(f"{place}.{name}: the list is empty; allowed: one level or more")
    checked = []
    for level in levels:
        valid = check_level(name, level, f"{place}.{name}")
        if valid not in known_levels[name]:
            allowed = ", ".join(map(repr, known_levels[name]))
            close = nearest(str(valid), [str(level) for level in known_levels[name]])
            raise UsageError(
                f"{place}.{name}: found {valid!r}; allowed: {allowed}.{close} A preset without "
                "this level can set paper_path = []."
            )
        checked.append(valid)
    return tuple(checked)
