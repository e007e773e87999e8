"""Variants of a study with cells from another folder or with other levels.

A study has the factor `variant`, and a table `[variants.NAME]` for each of its levels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from wattwire.model.errors import UsageError, unknown
from wattwire.model.fields import given, read_table
from wattwire.model.treatment import Level

FACTOR = "variant"
SAME_THING = ({"interval_s", "rate_hz"},)
"""Sets of keys of the same quantity. A level of one key replaces the level of the other."""

CheckLevel = Callable[[str, Any, str], Level]


@dataclass(frozen=True)
class Variant:
    """A variant with the root whose cells take precedence, and the levels that it fixes.

    `commit` is the commit of the root, if known. It is only recorded. `command` is the command line
    of a variant of `exec`, which has neither a root nor levels.
    """

    root: str = given("a folder's path")
    levels: dict[str, Level] = given("{key = level}", {})
    commit: str = given("a commit's name")
    command: str = given("a command line, in a study of `exec`")

    def over(self, fixed: Mapping[str, Level]) -> dict[str, Level]:
        """Return the fixed levels of the study, overridden by the levels of this variant."""
        replaced = {name for pair in SAME_THING if pair & set(self.levels) for name in pair}
        other_levels = {key: level for key, level in fixed.items() if key not in replaced}
        return {**other_levels, **self.levels}


def parse_variants(tables: Any, check_level: CheckLevel, where: str) -> dict[str, Variant]:
    """Parse and validate `[variants]`, and return the variants by name.

    Raises UsageError with the position, the value and the allowed values.
    """
    if not isinstance(tables, Mapping):
        raise UsageError(f"{where}: variants: found {tables!r}; allowed: tables [variants.NAME]")
    return {
        name: _parse_variant(table, check_level, f"{where}: variants.{name}")
        for name, table in tables.items()
    }


def check_variants(
    variants: Mapping[str, Variant], factors: Mapping[str, tuple[Level, ...]], where: str
) -> None:
    """Raise UsageError if the variants do not match their factor or change another factor."""
    names = [str(level) for level in factors.get(FACTOR, ())]
    for name in variants:
        if name not in names:
            raise unknown(f"{where}: variants", "variant", name, names)
    for name in names:
        if name not in variants:
            raise UsageError(
                f"{where}: factors.variant names {name!r}, but the table [variants.{name}] is "
                "missing. Add it; it may be empty, or set root (a folder of cells) or levels."
            )
    changes = ((name, key) for name, variant in variants.items() for key in variant.levels)
    for name, key in changes:
        varied = factors.keys() & next((p for p in SAME_THING if key in p), {key})
        if key == FACTOR or varied:
            raise UsageError(
                f"{where}: variants.{name}: levels.{key}: {min(varied, default=key)} is a factor "
                "of the study, so every variant is measured at all levels of this factor. Delete "
                "it from the variant, or set a single level in [fixed] (--set fixed.KEY=LEVEL)."
            )


def _parse_variant(table: Any, check_level: CheckLevel, place: str) -> Variant:
    if not isinstance(table, Mapping):
        raise UsageError(f"{place}: found {table!r}; allowed: a table with root or levels")
    variant = read_table(Variant, table, place)
    levels = variant.levels.items()
    return replace(
        variant, levels={k: check_level(k, v, f"{place}: levels.{k}") for k, v in levels}
    )
