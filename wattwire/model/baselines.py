"""Whether the baselines that a study names are levels that it knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wattwire.model.errors import UsageError, unknown


def check_baselines(document: Mapping[str, Any], where: str) -> None:
    """Refuse a baseline of no factor of the study, or at no level of that factor.

    `document` has its presets: a baseline may belong to a level that one of them alone has.
    Raises UsageError naming place, found and allowed.
    """
    known: dict[str, list[Any]] = {}
    for _, table in _tables(document):
        for place in ("factors", "fixed"):
            for factor, levels in _mapping(table.get(place)).items():
                known.setdefault(factor, []).extend(
                    levels if isinstance(levels, list) else [levels]
                )
    for place, table in _tables(document):
        baselines = _mapping(_mapping(table.get("answers")).get("baseline"))
        for factor, level in baselines.items():
            at = f"{where}: {place}answers.baseline"
            if factor not in known:
                raise unknown(at, "factor", factor, known)
            if not any(_same(level, one) for one in known[factor]):
                allowed = ", ".join(dict.fromkeys(map(repr, known[factor])))
                raise UsageError(f"{at}.{factor}: found {level!r}; allowed: one of {allowed}")


def _tables(document: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield "", document
    for name, preset in _mapping(document.get("presets")).items():
        yield f"presets.{name}: ", _mapping(preset)


def _mapping(table: Any) -> Mapping[str, Any]:
    """A table, or an empty one for what others refuse by its shape."""
    return table if isinstance(table, Mapping) else {}


def _same(level: Any, other: Any) -> bool:
    return bool(level == other) and isinstance(level, bool) == isinstance(other, bool)
