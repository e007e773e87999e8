"""What each column of the summary means: unit, kind, words. Columns with a node end in .ROLE.N."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any

from wattwire.model.derived import derived
from wattwire.model.metrics import METRICS
from wattwire.store.campaign import frame_of

COLUMNS: dict[str, tuple[str, str, str]] = {
    name: (metric.unit, metric.kind, metric.summary) for name, metric in METRICS.items()
}


def describe(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Unit, kind and summary of each named column."""
    described = {}
    for name in names:
        stem = name.split(".")[0]
        if stem in COLUMNS:
            unit, kind, summary = COLUMNS[stem]
            described[name] = {"unit": unit, "kind": kind, "summary": summary}
    return described


def with_derived(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add what follows from other metrics (`model/derived.py`); None where it is not known."""
    if not rows:
        return []
    values = {name: values.tolist() for name, values in derived(frame_of(rows)).items()}
    return [
        {**row, **{name: each[at] if isfinite(each[at]) else None for name, each in values.items()}}
        for at, row in enumerate(rows)
    ]


def pool_baselines(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add standing, message and total energy, with the machine's power pooled over a block.

    One run's machine baseline is short; all of a block's together are at least as long as a
    window, and they bracket every run of the block. Beside them stands the energy of the whole
    run less one idle power of the campaign, for comparison with papers that subtract so.
    """
    powers: dict[tuple[Any, Any], list[float]] = {}
    for row in rows:
        if row.get("power_machine_w") is not None:
            key = row["block"], row.get("energy_source")
            powers.setdefault(key, []).append(row["power_machine_w"])
    machine_w = {key: sum(values) / len(values) for key, values in powers.items()}
    pooled: list[dict[str, Any]] = []
    for row in subtract_idle(rows):
        base_w = machine_w.get((row["block"], row.get("energy_source")))
        silent, window_w = row.get("power_silent_w"), row.get("power_window_w")
        if base_w is None or silent is None or window_w is None:
            pooled.append(row)
            continue
        seconds = row.get("cost_window_s") or row["window_s"]  # rows of old held no warm-up apart
        standing = (silent - base_w) * seconds
        message = (window_w - silent) * seconds
        energy = {
            "energy_standing_j": standing,
            "energy_message_j": message,
            "energy_total_j": standing + message,
        }
        pooled.append({**row, **energy})
    return pooled


def subtract_idle(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add the energy of each whole run less one idle power, the same for the whole campaign.

    What: energy above idle as papers with a meter at the mains take it, start-up included. What
    it misses: drift of the machine's own power, and what nodes use while they are silent is not
    told apart from what messages use. Never an answer's only energy.
    """
    idle: dict[Any, list[float]] = {}
    for row in rows:
        if row.get("power_machine_w") is not None:
            idle.setdefault(row.get("energy_source"), []).append(row["power_machine_w"])
    mean_w = {source: sum(powers) / len(powers) for source, powers in idle.items()}
    subtracted = []
    for row in rows:
        idle_w, run_w = mean_w.get(row.get("energy_source")), row.get("power_run_w")
        if idle_w is not None and run_w is not None and row.get("run_s"):
            energy_j = (run_w - idle_w) * row["run_s"]
            energy = {"power_idle_w": idle_w, "energy_idle_subtracted_j": energy_j}
            subtracted.append({**row, **energy})
        else:
            subtracted.append(row)
    return subtracted
