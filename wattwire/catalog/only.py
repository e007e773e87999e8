"""Levels of settings that support only some levels of other factors (`[settings.NAME.only.LEVEL]`).

An example is a message type of fixed length, which fits only payloads of this length.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wattwire.model.errors import UsageError, unknown
from wattwire.model.treatment import Level

FACTORS = {
    "pattern": "pattern",
    "payload_encoding": "payload.encoding",
    "payload_bytes": "payload.bytes",
    "literal": "payload.literal",
}
"""Factors that `only` may restrict → their keys in the spec of a node."""
Only = Mapping[str, Mapping[str, Sequence[Level]]]
"""Level of a setting → factor → levels of the factor that it supports."""


def check_only(where: str, table: Mapping[str, Any]) -> None:
    """Raise UsageError if the restrictions of a setting name an unknown level or factor."""
    only: Only = table.get("only", {})
    if only and "allowed" not in table:
        raise UsageError(
            f"{where}: only: found a setting without allowed levels; allowed: settings with the "
            "key `allowed`. Add this key, or remove only"
        )
    for level, factors in only.items():
        if level not in map(str, table["allowed"]):
            raise unknown(f"{where}: only", "level", level, map(str, table["allowed"]))
        for factor, levels in factors.items():
            if factor not in FACTORS:
                raise unknown(f"{where}: only.{level}", "factor", factor, FACTORS)
            if not levels:
                raise UsageError(
                    f"{where}: only.{level}.{factor}: found no levels; allowed: at least one. "
                    "Name the supported levels, or remove the key"
                )


def only_gap(
    tables: Mapping[str, Mapping[str, Any]],
    settings: Mapping[str, Level],
    level_of: Callable[[str], Level],
) -> str | None:
    """Return the reason if the level of a setting does not support a treatment, else None.

    `tables` are the manifests of the settings, and `level_of` returns the level of a factor.
    """
    for name, table in tables.items():
        chosen = str(settings[name])
        for factor, levels in table.get("only", {}).get(chosen, {}).items():
            level = level_of(factor)
            if level not in levels:
                others = [str(other) for other in table["allowed"] if str(other) != chosen]
                return (
                    f"{factor} = {level!r} with settings.{name} = {chosen}; allowed: "
                    f"{', '.join(map(repr, levels))}. Choose one of them, or settings.{name} = "
                    f"{' or '.join(others)}"
                )
    return None
