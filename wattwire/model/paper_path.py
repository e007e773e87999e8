"""`[[paper_path]]`: more walks of the paper's way than the study's questions ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from wattwire.model.errors import UsageError, nearest, unknown
from wattwire.model.treatment import Level

WALK_KEYS = ("response", "by", "where")


@dataclass(frozen=True)
class Walk:
    """Groups of runs by the levels of `by`, among the runs that `where` keeps.

    `where` maps factors to the levels a run may have; empty, every run is kept.
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
    """Check every `[[paper_path]]`. Raises UsageError naming place, found and allowed.

    A factor may be one that is varied or, since presets hold some, one that is fixed.
    """
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        raise UsageError(f"{where}: paper_path: found {items!r}; allowed: tables [[paper_path]]")
    known = {**{name: (level,) for name, level in fixed.items()}, **factors}
    return tuple(
        _walk(item, factors, known, check_level, f"{where}: paper_path {number}")
        for number, item in enumerate(items, 1)
    )


def _walk(
    item: Mapping[str, Any],
    factors: Mapping[str, tuple[Level, ...]],
    known: Mapping[str, tuple[Level, ...]],
    check_level: Callable[[str, Any, str], Level],
    place: str,
) -> Walk:
    for key in item:
        if key not in WALK_KEYS:
            raise unknown(place, "key", key, WALK_KEYS)
    response, by = item.get("response"), item.get("by")
    if not isinstance(response, str) or not response:
        found = "nothing" if response is None else repr(response)
        raise UsageError(f'{place}: response: found {found}; allowed: a name, as "power_w"')
    if not isinstance(by, list) or not by or not all(isinstance(name, str) for name in by):
        found = "nothing" if by is None else repr(by)
        raise UsageError(
            f"{place}: by: found {found}; allowed: a list of factors, as "
            f"{list(factors)[:1] or ['language']!r}"
        )
    for name in by:
        if name not in known:
            raise unknown(f"{place}: by", "factor", name, factors)
    if len(set(by)) != len(by):
        raise UsageError(f"{place}: by: a factor stands twice in {by!r}; name it once")
    table = item.get("where", {})
    if not isinstance(table, Mapping):
        raise UsageError(f"{place}: where: found {table!r}; allowed: {{factor = level}}")
    kept = {
        name: _levels(name, level, known, check_level, f"{place}: where")
        for name, level in table.items()
    }
    return Walk(response, tuple(by), kept)


def _levels(
    name: str,
    given: Any,
    known: Mapping[str, tuple[Level, ...]],
    check_level: Callable[[str, Any, str], Level],
    place: str,
) -> tuple[Level, ...]:
    if name not in known:
        raise unknown(place, "factor", name, known)
    levels = given if isinstance(given, list) else [given]
    if not levels:
        raise UsageError(f"{place}.{name}: the list is empty; allowed: a level, or several")
    checked = []
    for level in levels:
        one = check_level(name, level, f"{place}.{name}")
        if one not in known[name]:
            allowed = ", ".join(map(repr, known[name]))
            close = nearest(str(one), [str(level) for level in known[name]])
            raise UsageError(
                f"{place}.{name}: found {one!r}; allowed: {allowed}.{close} A preset that leaves "
                "a level out can set paper_path = [] for itself."
            )
        checked.append(one)
    return tuple(checked)
