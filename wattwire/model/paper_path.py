"""`[[paper_path]]`: comparisons by the paper's method beyond those of the study's questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from wattwire.model.errors import UsageError, nearest, unknown
from wattwire.model.treatment import Level

WALK_KEYS = ("response", "by", "where")


@dataclass(frozen=True)
class Walk:
    """Groups of runs by the levels of `by`, among the runs that `where` selects.

    `where` maps factors to the levels that a run may have; an empty table selects every run.
    """

    response: str
    by: tuple[str, ...]
    where: dict[str, tuple[Level, ...]] = field(default_factory=dict)


def parse_walks(
    items: Any,
    factors: Mapping[str, tuple[Level, ...]],
    fixed: Mapping[str, Level],
    check_level: Callable[[str, Any, str], Level],
    where: str,
) -> tuple[Walk, ...]:
    """Return every checked `[[paper_path]]`.

    A factor may be varied or fixed, because a preset can fix a factor of the study. Raises
    UsageError that gives the place, the value and the allowed values.
    """
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        raise UsageError(f"{where}: paper_path: found {items!r}; allowed: tables [[paper_path]]")
    known_levels = {**{name: (level,) for name, level in fixed.items()}, **factors}
    return tuple(
        _walk(item, factors, known_levels, check_level, f"{where}: paper_path {number}")
        for number, item in enumerate(items, 1)
    )


def _walk(
    item: Mapping[str, Any],
    factors: Mapping[str, tuple[Level, ...]],
    known_levels: Mapping[str, tuple[Level, ...]],
    check_level: Callable[[str, Any, str], Level],
    place: str,
) -> Walk:
    for key in item:
        if key not in WALK_KEYS:
            raise unknown(place, "key", key, WALK_KEYS)
    response, by = item.get("response"), item.get("by")
    if not isinstance(response, str) or not response:
        value_text = "nothing" if response is None else repr(response)
        raise UsageError(f'{place}: response: found {value_text}; allowed: a name, as "power_w"')
    if not isinstance(by, list) or not by or not all(isinstance(name, str) for name in by):
        value_text = "nothing" if by is None else repr(by)
        raise UsageError(
            f"{place}: by: found {value_text}; allowed: a list of factors, as "
            f"{list(factors)[:1] or ['language']!r}"
        )
    for name in by:
        if name not in known_levels:
            raise unknown(f"{place}: by", "factor", name, factors)
    if len(set(by)) != len(by):
        raise UsageError(f"{place}: by: a factor is given twice in {by!r}; name it once")
    table = item.get("where", {})
    if not isinstance(table, Mapping):
        raise UsageError(f"{place}: where: found {table!r}; allowed: {{factor = level}}")
    levels_by_factor = {
        name: _levels(name, level, known_levels, check_level, f"{place}: where")
        for name, level in table.items()
    }
    return Walk(response, tuple(by), levels_by_factor)


def _levels(
    name: str,
    value: Any,
    known_levels: Mapping[str, tuple[Level, ...]],
    check_level: Callable[[str, Any, str], Level],
    place: str,
) -> tuple[Level, ...]:
    """Return the checked levels that `where` gives for one factor, as a level or as a list."""
    if name not in known_levels:
        raise unknown(place, "factor", name, known_levels)
    levels = value if isinstance(value, list) else [value]
    if not levels:
        raise UsageError(f"{place}.{name}: the list is empty; allowed: a level, or several")
    checked = []
    for level in levels:
        valid = check_level(name, level, f"{place}.{name}")
        if valid not in known_levels[name]:
            allowed = ", ".join(map(repr, known_levels[name]))
            close = nearest(str(valid), [str(level) for level in known_levels[name]])
            raise UsageError(
                f"{place}.{name}: found {valid!r}; allowed: {allowed}.{close} A preset that leaves "
                "a level out can set paper_path = [] for itself."
            )
        checked.append(valid)
    return tuple(checked)
