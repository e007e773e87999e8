"""Read the power that an oscilloscope or an analyser recorded, from a CSV file.

The header names each column and its unit, such as `time (s), power (mW)` or `time_s, V, A`. A unit
that is missing is an error, because a power in mW that is read as W would pass as a result.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from wattwire.imports.csv_text import LINE, read_table
from wattwire.model.derived import FloatArray
from wattwire.model.errors import UsageError

TIME, POWER, VOLTAGE, CURRENT = "time", "power", "voltage", "current"
UNITS: Mapping[str, tuple[str, float]] = {
    "s": (TIME, 1.0), "ms": (TIME, 1e-3), "us": (TIME, 1e-6), "µs": (TIME, 1e-6),
    "ns": (TIME, 1e-9), "W": (POWER, 1.0), "mW": (POWER, 1e-3), "kW": (POWER, 1e3),
    "V": (VOLTAGE, 1.0), "mV": (VOLTAGE, 1e-3), "A": (CURRENT, 1.0), "mA": (CURRENT, 1e-3),
}  # fmt: skip
"""Unit → what it measures, and its size in s, W, V or A."""
ALLOWED = (
    "a column of times and one of powers, or of voltages and of currents, each with its unit in "
    'the header, such as "time (s), power (mW)" or "time_s, V, A"; units: ' + ", ".join(UNITS)
)
READINGS_MIN = 20
_UNIT = re.compile(r"(?:.*[\s_(\[/])?([µa-zA-Z]+)[)\]]?")


@dataclass(frozen=True)
class PowerTrace:
    """Powers (W, shape [readings]) and their times (s) on the clock of their instrument."""

    times_s: FloatArray
    powers_w: FloatArray


def read(path: Path) -> PowerTrace:
    """Return the trace in a CSV file. Raise UsageError with the line and the allowed values."""
    table = read_table(path)
    columns = _columns(path, [name for name in table.columns if name != LINE])
    if table.height < READINGS_MIN:
        raise UsageError(
            f"{path}: found {table.height} readings; allowed: at least {READINGS_MIN}. Export the "
            "whole trace."
        )
    values = {kind: _numbers(path, table, name) * size for kind, (name, size) in columns.items()}
    times_s = values[TIME]
    backwards = np.flatnonzero(np.diff(times_s) <= 0)
    if backwards.size:
        line = table[LINE][int(backwards[0]) + 1]
        raise UsageError(
            f"{path}: line {line}: the time is not later than in the line before; allowed: "
            "increasing times, each once. Export the trace in the order of its times."
        )
    powers_w = values[POWER] if POWER in values else values[VOLTAGE] * values[CURRENT]
    return PowerTrace(times_s, powers_w)


def _columns(path: Path, names: list[str]) -> dict[str, tuple[str, float]]:
    """Return what is measured → its column and the size of its unit."""
    columns: dict[str, tuple[str, float]] = {}
    for name in names:
        match = _UNIT.fullmatch(name)
        kind, size = UNITS.get(match[1] if match else "", ("", 0.0))
        if kind in columns:
            raise UsageError(
                f"{path}: found two columns of a {kind}, {columns[kind][0]!r} and {name!r}; "
                "allowed: one of each. Delete the columns of other channels."
            )
        if kind:
            columns[kind] = (name, size)
    is_complete = TIME in columns and (POWER in columns or {VOLTAGE, CURRENT} <= set(columns))
    if not is_complete:
        raise UsageError(
            f"{path}: found the columns {', '.join(map(repr, names))}; allowed: {ALLOWED}. Add the "
            "missing unit or column to the header."
        )
    wanted = (TIME, POWER) if POWER in columns else (TIME, VOLTAGE, CURRENT)
    return {kind: columns[kind] for kind in wanted}


def _numbers(path: Path, table: pl.DataFrame, name: str) -> FloatArray:
    """Return a column as finite numbers."""
    values = table[name].cast(pl.Float64, strict=False).to_numpy().astype(np.float64)
    wrong = np.flatnonzero(~np.isfinite(values))
    if wrong.size:
        row = int(wrong[0])
        raise UsageError(
            f"{path}: line {table[LINE][row]}: {name}: found {table[name][row]!r}; allowed: a "
            "number. Delete a line without a reading; its run then has a gap."
        )
    return values
