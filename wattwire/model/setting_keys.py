"""Keys `settings.NAME`: TOML's dotted and quoted spelling are one key of a study.

TOML reads an unquoted `settings.NAME = …` as a table inside a table. A factor's name is the whole
of it, so every table of a study whose keys are factors is flattened when the study is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from wattwire.model.errors import UsageError

SETTINGS = "settings"
_TABLES = (("factors",), ("fixed",), ("answers", "baseline"))
"""Tables whose keys are factors."""
_LISTS = (
    (("exclude", "treatments"), ()),
    (("include", "treatments"), ()),
    (("limit",), ("where",)),
    (("paper_path",), ("where",)),
)
"""Lists of such tables, or of tables that have such a table at the second path."""


def with_flat_settings(document: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return a study document whose settings have the key `settings.NAME` in every table.

    Raises UsageError where a table has a setting in both spellings.
    """
    flat: dict[str, Any] = dict(document)
    for path in _TABLES:
        _replace(flat, path, _flat, where)
    for path, inner in _LISTS:
        _replace(flat, path, partial(_each, inner), where)
    variants = flat.get("variants")
    if isinstance(variants, Mapping):
        flat["variants"] = {
            name: _inside(table, ("levels",), f"{where}: variants.{name}")
            for name, table in variants.items()
        }
    return flat


def settings_last(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a frozen study with the inner table of settings at the end of its factors.

    Campaigns from before the flattening were planned in that order, and the order of factors is
    the order of treatments.
    """
    factors = document.get("factors")
    if not isinstance(factors, Mapping) or not isinstance(factors.get(SETTINGS), Mapping):
        return dict(document)
    others = {key: levels for key, levels in factors.items() if key != SETTINGS}
    return {**document, "factors": {**others, SETTINGS: factors[SETTINGS]}}


def _replace(
    document: dict[str, Any], path: tuple[str, ...], change: Callable[[Any, str], Any], where: str
) -> None:
    """Replace what lies at `path` by its changed copy; tables on the way are copied."""
    *above, last = path
    table = document
    for key in above:
        if not isinstance(table.get(key), Mapping):
            return
        table[key] = dict(table[key])
        table = table[key]
    if last in table:
        table[last] = change(table[last], f"{where}: {'.'.join(path)}")


def _each(path: tuple[str, ...], items: Any, place: str) -> Any:
    if not isinstance(items, list):
        return items
    return [_inside(item, path, f"{place} {number}") for number, item in enumerate(items, 1)]


def _inside(item: Any, path: tuple[str, ...], place: str) -> Any:
    """Return the table with the table at `path` in it flattened; itself with an empty path."""
    if not isinstance(item, Mapping):
        return item
    if not path:
        return _flat(item, place)
    changed = dict(item)
    _replace(changed, path, _flat, place)
    return changed


def _flat(table: Any, place: str) -> Any:
    """Return the table with its inner table `settings` laid out in its place."""
    if not isinstance(table, Mapping) or not isinstance(table.get(SETTINGS), Mapping):
        return table
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if key != SETTINGS:
            flat[key] = value
            continue
        for name, level in value.items():
            full = f"{SETTINGS}.{name}"
            if full in table:
                raise UsageError(
                    f'{place}: {full} is given twice, as {full} and as "{full}", which are the '
                    "same key. Delete one of the two."
                )
            flat[full] = level
    return flat
