"""Check that the baselines of a study are levels of its factors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wattwire.model.errors import UsageError, unknown


def check_baselines(document: Mapping[str, Any], where: str) -> None:
    """Check that every baseline names a factor of the study and a level of that factor.

    `document` includes its presets, because a baseline may be a level that only one preset has.
    Raises UsageError that gives the place, the value and the allowed values.
    """
    levels_by_factor: dict[str, list[Any]] = {}
    for _, table in _tables(document):
        for place in ("factors", "fixed"):
            for factor, levels in _mapping(table.get(place)).items():
                levels_by_factor.setdefault(factor, []).extend(
                    levels if isinstance(levels, list) else [levels]
                )
    for place, table in _tables(document):
        baselines = _mapping(_mapping(table.get("answers")).get("baseline"))
        for factor, level in baselines.items():
            baseline_place = f"{where}: {place}answers.baseline"
            if factor not in levels_by_factor:
                raise unknown(baseline_place, "factor", factor, levels_by_factor)
            if not any(_same(level, known_level) for known_level in levels_by_factor[factor]):
                allowed = ", ".join(dict.fromkeys(map(repr, levels_by_factor[factor])))
                raise UsageError(
                    f"{baseline_place}.{factor}: found {level!r}; allowed: one of {allowed}"
                )


def _tables(document: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the prefix of a place and its table: the study itself, then each preset."""
    yield "", document
    for name, preset in _mapping(document.get("presets")).items():
        yield f"presets.{name}: ", _mapping(preset)


def _mapping(table: Any) -> Mapping[str, Any]:
    """Return `table`, or an empty table for any other type, which other checks refuse."""
    return table if isinstance(table, Mapping) else {}


def _same(level: Any, known_level: Any) -> bool:
    """Return whether two levels are equal and both or neither are booleans (True == 1)."""
    return bool(level == known_level) and isinstance(level, bool) == isinstance(known_level, bool)
