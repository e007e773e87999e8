"""Validity limits: the conditions under which a run counts, and the names they had before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wattwire.model.errors import UsageError
from wattwire.model.setting_keys import with_flat_settings

VALIDITY = "validity"
"""The study's table of validity limits."""
FORMER_NAMES = {"guards": VALIDITY, "plan.guard_wait_s": "plan.quiet_wait_s"}
"""Names of earlier versions in studies and frozen campaigns, and what they are called now."""


@dataclass(frozen=True)
class ValidityLimits:
    """Limits on evidence that is independent of the response. Shares are of all cores."""

    other_load_max: float = 0.25
    steal_max: float = 0.05
    temperature_max_celsius: float = 95.0
    free_disk_bytes_min: int = 200_000_000
    missed_ticks_max: float = 0.10
    stall_max_ms: float = 10.0
    """Longest time in the window for which the machine may stand still."""
    clock_step_max_ms: float = 10.0
    """By how much the wall clock may be set while a run goes on."""


def current_key(key: str) -> str:
    """Return a dotted key of --set under its present name."""
    table, dot, name = key.partition(".")
    return FORMER_NAMES.get(key, FORMER_NAMES.get(table, table) + dot + name)


def with_current_names(document: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return a study document, presets included, whose keys have their present names.

    Settings have the key `settings.NAME` however they were spelt. Raises UsageError where a table
    holds a key under both names.
    """
    renamed = with_flat_settings(document, where)
    for former, current in FORMER_NAMES.items():
        table, _, key = former.rpartition(".")
        if not table:
            _rename(renamed, former, current, where)
        elif isinstance(renamed.get(table), Mapping) and key in renamed[table]:
            renamed[table] = dict(renamed[table])
            _rename(renamed[table], key, current.rpartition(".")[2], f"{where}: {table}")
    presets = renamed.get("presets")
    if isinstance(presets, Mapping):
        renamed["presets"] = {
            name: with_current_names(preset, f"{where}: presets.{name}")
            if isinstance(preset, Mapping)
            else preset
            for name, preset in presets.items()
        }
    return renamed


def _rename(table: dict[str, Any], former: str, current: str, where: str) -> None:
    if former not in table:
        return
    if current in table:
        raise UsageError(
            f"{where}: both {former} and {current} are given; {former} is the former name of "
            f"{current}. Delete {former}."
        )
    table[current] = table.pop(former)


def conditions_before(run: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what was seen of the machine before a run, from the run's document of any version."""
    seen: Mapping[str, Any] = run.get("conditions_before") or run.get("guards") or {}
    return seen
