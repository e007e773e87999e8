"""Merge the tables of a study, and parse them into dataclasses that declare the allowed values."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import Field, field, fields
from typing import Any, TypeVar

from wattwire.model.errors import UsageError, unknown

WORDS: dict[type, str] = {
    str: "a string", int: "an integer", float: "a finite number", bool: "true or false",
    tuple: "a list", dict: "a table",
}  # fmt: skip
"""Types of values in a study → their names in error messages."""
NO_WORDS: Mapping[str, Collection[str]] = {}
NO_SYNONYMS: Mapping[str, str] = {}
Table = TypeVar("Table")


def merge(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    """Merge `overlay` into a copy of `base`. Tables are merged, and other values are replaced."""
    merged = dict(copy.deepcopy(dict(base)))
    for key, value in overlay.items():
        if isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = merge(merged[key], value)
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def given(allowed: str, default: Any = "", **rules: Any) -> Any:
    """Declare a field. `allowed` describes its values in error messages.

    A value has the type of the default, or of the rule `kind`. The other rules are:

    - `needed` rejects empty values.
    - `allows` is a predicate of valid values.
    - `word` names the vocabulary of a text or of the names in a list.
    - `once` rejects repeated names.
    - `items` is the dataclass of the tables in a list.
    - `or_one` accepts a text instead of a list with this text.
    """
    if isinstance(default, dict):
        return field(default_factory=dict, metadata={"kind": dict, "allowed": allowed, **rules})
    return field(default=default, metadata={"allowed": allowed, **rules})


def needed(allowed: str, **rules: Any) -> Any:
    """Declare a required text."""
    return given(allowed, needed=True, **rules)


def names(allowed: str, default: tuple[str, ...] = (), **rules: Any) -> Any:
    """Declare a list of distinct names."""
    return given(allowed, default, once=True, **rules)


def number(allowed: str, allows: Callable[[float], bool], default: float | None = None) -> Any:
    """Declare a number that satisfies `allows`."""
    return given(allowed, default, kind=float, allows=allows)


def listed_tables(items: Any, key: str, where: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the position (for error messages) and the content of each table `[[key]]`.

    Raises UsageError for a value that is not a list of tables.
    """
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        raise UsageError(f"{where}: {key}: found {items!r}; allowed: tables [[{key}]]")
    return [(f"{where}: {key} {position}", item) for position, item in enumerate(items, 1)]


def read_table(
    kind: type[Table],
    table: Mapping[str, Any],
    place: str,
    vocabularies: Mapping[str, Collection[str]] = NO_WORDS,
    called: Mapping[str, str] = NO_SYNONYMS,
    dot: str = ": ",
) -> Table:
    """Parse a TOML table into the dataclass `kind`.

    `vocabularies` maps each rule `word` to its known words. `called` maps synonyms to keys. `dot`
    separates position and key in errors. Raises UsageError for an unknown key, an invalid value or
    a missing required value.
    """
    declared_fields: tuple[Field[Any], ...] = fields(kind)  # type: ignore[arg-type]
    known_fields = {declared.name: declared for declared in declared_fields}
    for key in table:
        if key not in known_fields:
            raise unknown(place, "key", key, known_fields, called)
    return kind(
        **{
            key: _value(declared, table.get(key, ""), f"{place}{dot}{key}", vocabularies)
            for key, declared in known_fields.items()
            if key in table or declared.metadata.get("needed")
        }
    )


def _value(
    declared: Field[Any], value: Any, place: str, vocabularies: Mapping[str, Collection[str]]
) -> Any:
    """Return the value of a field. Raises UsageError if the field does not allow it."""
    rules: Mapping[str, Any] = declared.metadata
    kind, word = rules.get("kind", type(declared.default)), rules.get("word", "")
    if rules.get("or_one") and isinstance(value, str) and value:
        value = [value]
    typed = _typed(value, kind, Mapping if "items" in rules else str)
    allowed = rules.get("allowed") or WORDS[kind]
    if typed is not None and "allowed" not in rules and kind in (int, float):
        rules, allowed = {"allows": _not_negative}, "a finite number, 0 or more"
    is_empty = rules.get("needed") and not typed
    if typed is None or is_empty or not rules.get("allows", _anything)(typed):
        listed = f": {', '.join(sorted(vocabularies[word]))}" if word and kind is str else ""
        value_text = "nothing" if value == "" else repr(value)
        one = (
            " (one name without brackets)"
            if word and kind is str and isinstance(value, list)
            else ""
        )
        raise UsageError(f"{place}: found {value_text}; allowed: {allowed}{one}{listed}")
    if "items" in rules:
        return tuple(
            read_table(rules["items"], item, f"{place} {position}", vocabularies)
            for position, item in enumerate(typed, 1)
        )
    if rules.get("once") and len(set(typed)) != len(typed):
        raise UsageError(f"{place}: found a {word or 'name'} twice in {value!r}; name it once")
    for name in (typed if kind is tuple else (typed,)) if word and typed else ():
        if name not in vocabularies[word]:
            raise unknown(place, word, name, vocabularies[word])
    return declared.default if typed == () else typed


def _typed(value: Any, kind: type, item_kind: type) -> Any:
    """Convert a value to `kind`, or return None for another type.

    Integers convert to floats, and lists to tuples.
    """
    if kind is tuple:
        is_list = isinstance(value, list) and all(
            isinstance(i, item_kind) and i != "" for i in value
        )
        return tuple(value) if is_list else None
    if kind is dict:
        return dict(value) if isinstance(value, Mapping) else None
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value) if abs(value) <= sys.float_info.max else None
    is_flag = isinstance(value, bool)
    return value if isinstance(value, kind) and is_flag == (kind is bool) else None


def _not_negative(value: float) -> bool:
    return 0 <= value <= sys.float_info.max


def _anything(_value: Any) -> bool:
    return True
