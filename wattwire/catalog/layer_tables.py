"""Read the tables of functions whose calls mark the layers of a message."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from wattwire.catalog import manifest
from wattwire.model.errors import UsageError, unknown
from wattwire.model.layers import WRAPPED, Wrapper

PATTERN = "middleware/*/layers/*.toml"
KEYS: dict[str, Any] = {
    "points": None,
}
POINT_KEYS: dict[str, Any] = {
    "point": str, "library": str, "symbol": str, "arguments": int, "callers": manifest.WORDS,
}  # fmt: skip
REQUIRED = ("point", "library", "symbol", "arguments")
ARGUMENTS_MAX = 12
CALLERS_MAX = 4
SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def layer_tables(roots: Sequence[Path]) -> tuple[Wrapper, ...]:
    """Return the wrappers of all tables, one per symbol. Raises UsageError for a damaged table."""
    wrappers: dict[str, Wrapper] = {}
    for root in roots:
        for path in sorted(root.glob(PATTERN)):
            for wrapper in read_table(path):
                first = wrappers.setdefault(wrapper.symbol, wrapper)
                wrappers[wrapper.symbol] = _joined(first, wrapper)
    return tuple(wrappers.values())


def _joined(first: Wrapper, second: Wrapper) -> Wrapper:
    """Return one wrapper for a symbol of two tables, for the callers of both."""
    kept = replace(second, callers=first.callers, table=first.table)
    if kept != first or bool(first.callers) != bool(second.callers):
        raise UsageError(
            f"{second.table}: {second.symbol}: {first.table} wraps this symbol in another way; "
            "allowed: the same point, library and number of arguments, and callers in both or none"
        )
    callers = tuple(dict.fromkeys((*first.callers, *second.callers)))
    _check_callers(callers, f"{second.table}: {second.symbol}")
    return replace(first, callers=callers)


def read_table(path: Path) -> Iterator[Wrapper]:
    """Yield the wrappers of one table. Raises UsageError for an unknown or a missing key."""
    document = manifest.read_toml(path)
    manifest.check_keys(document, KEYS, str(path))
    points = document.get("points")
    if not isinstance(points, list) or not points:
        raise UsageError(f"{path}: found no [[points]]; allowed: one table or more")
    for number, table in enumerate(points, 1):
        where = f"{path}: points {number}"
        if not isinstance(table, dict):
            raise UsageError(f"{where}: found {table!r}; allowed: a table")
        manifest.check_keys(table, POINT_KEYS, where)
        missing = [key for key in REQUIRED if key not in table]
        if missing:
            raise UsageError(f"{where}: {missing[0]} is missing; required: {', '.join(REQUIRED)}")
        yield _wrapper(table, where, path)


def _wrapper(table: dict[str, Any], where: str, path: Path) -> Wrapper:
    if table["point"] not in WRAPPED:
        raise unknown(where, "point", table["point"], WRAPPED)
    if not SYMBOL.fullmatch(table["symbol"]):
        raise UsageError(
            f"{where}: symbol: found {table['symbol']!r}; allowed: a name as `nm -D` prints it, "
            "without its version"
        )
    if not 1 <= table["arguments"] <= ARGUMENTS_MAX:
        raise UsageError(
            f"{where}: arguments: found {table['arguments']}; allowed: 1 to {ARGUMENTS_MAX}"
        )
    callers = tuple(table.get("callers", ()))
    _check_callers(callers, where)
    texts = (table["library"], *callers)
    if any('"' in text or "\\" in text or not text for text in texts):
        raise UsageError(f"{where}: found {texts}; allowed: patterns of file names")
    return Wrapper(
        table["point"], table["library"], table["symbol"], table["arguments"], callers, str(path)
    )


def _check_callers(callers: Sequence[str], where: str) -> None:
    if len(callers) > CALLERS_MAX:
        raise UsageError(f"{where}: callers: found {len(callers)}; allowed: at most {CALLERS_MAX}")
