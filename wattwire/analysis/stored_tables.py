"""Convert long sequences of results to tables, which are stored next to the JSON values."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

COLUMN_TYPES: Mapping[type, Any] = {
    float: pl.Float64, int: pl.Int64, bool: pl.Boolean, str: pl.String
}  # fmt: skip
INT64_LIMIT = 2**63


@dataclass(frozen=True)
class StoredTable:
    """A table that is stored next to the JSON values: the points of a chart, or one column."""

    frame: pl.DataFrame


def table_of(members: Sequence[Any], is_point: bool) -> StoredTable | None:
    """Return the members as a table, or None if they do not have one type of value per column."""
    columns: dict[str, list[Any]] = {"value": list(members)}
    if is_point:
        keys = list(members[0])
        if not keys or any(list(point) != keys for point in members):
            return None
        columns = {key: [point[key] for point in members] for key in keys}
    typed = {key: _column(values) for key, values in columns.items()}
    if any(column is None for column in typed.values()):
        return None
    return StoredTable(pl.DataFrame(typed))


def _column(values: Sequence[Any]) -> pl.Series | None:
    found = {type(value) for value in values} - {types.NoneType}
    if len(found) != 1 or not found <= COLUMN_TYPES.keys():
        return None
    (kind,) = found
    if kind is int and any(abs(value or 0) >= INT64_LIMIT for value in values):
        return None
    return pl.Series(values, dtype=COLUMN_TYPES[kind])
