"""Flatten keys such as `settings.NAME`, so that TOML's dotted and quoted spellings are equivalent.

TOML parses an unquoted `settings.NAME = …` as a nested table, but a factor's name is the whole key.
Therefore, every table whose keys are factors is flattened when a study is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from wattwire.model.errors import UsageError

NESTED = ("settings", "outer_settings")
_TABLES = (("factors",), ("fixed",), ("answers", "baseline"))
"""Paths of the tables whose keys are factors."""
_LISTS = (
    (("exclude", "treatments"), ()),
    (("include", "treatments"), ()),
    (("limit",), ("where",)),
    (("paper_path",), ("where",)),
    (("figure",), ("where",)),
)
"""Paths of lists of such tables, or of tables that contain such a table at the second path."""


def with_flat_settings(document: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the study document with nested settings replaced by keys `settings.NAME`.

    The tables of its presets are included.
    Raises UsageError for a table that has a setting in both spellings.
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
    presets = flat.get("presets")
    if isinstance(presets, Mapping):
        flat["presets"] = {
            name: with_flat_settings(preset, f"{where}: presets.{name}")
            if isinstance(preset, Mapping)
            else preset
            for name, preset in presets.items()
        }
    return flat


def _replace(
    document: dict[str, Any], path: tuple[str, ...], change: Callable[[Any, str], Any], where: str
) -> None:
    """Replace the value at `path` by the result of `change`. Tables on the path are copied."""
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
    """Return the list with the table at `path` in each item flattened."""
    if not isinstance(items, list):
        return items
    return [_inside(item, path, f"{place} {number}") for number, item in enumerate(items, 1)]


def _inside(item: Any, path: tuple[str, ...], place: str) -> Any:
    """Return `item` with its table at `path` flattened. An empty path refers to `item`."""
    if not isinstance(item, Mapping):
        return item
    if not path:
        return _flat(item, place)
    changed = dict(item)
    _replace(changed, path, _flat, place)
    return changed


def _flat(table: Any, place: str) -> Any:
    """Return the table with its nested tables of settings replaced by their keys.

    Raises UsageError for a setting in both spellings.
    """
    if not isinstance(table, Mapping):
        return table
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if key not in NESTED or not isinstance(value, Mapping):
            flat[key] = value
            continue
        for name, level in value.items():
            full = f"{key}.{name}"
            if full in table:
                raise UsageError(
                    f'{place}: found {full} twice, as {full} and as "{full}", which are the same '
                    "key; delete one of them"
                )
            flat[full] = level
    return flat
