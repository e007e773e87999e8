"""Convert nested tables of settings and plans to text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wattwire.model import words


def flat(table: Mapping[str, Any], above: str = "") -> dict[str, str]:
    """Flatten a nested table to dotted keys, with values as text."""
    entries: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            entries |= flat(value, f"{above}{key}.")
        elif isinstance(value, list):
            entries[f"{above}{key}"] = " ".join(words.plain(v) for v in value) or "none"
        else:
            entries[f"{above}{key}"] = words.plain(value) or "none"
    return entries


def pairs(table: Mapping[str, Any]) -> str:
    """Format a nested table as text such as `a = 1, b.c = 2`."""
    return ", ".join(f"{key} = {value}" for key, value in flat(table).items())
