"""Describe the unit, kind and meaning of each summary column.

The names of a node's columns end with .ROLE.N.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any

from wattwire.model.derived import derived
from wattwire.model.metrics import METRICS
from wattwire.store.campaign import frame_of

PROCESS_COLUMNS: dict[str, tuple[str, str, str]] = {
    "subject": ("", "identity", "command, or attached0, attached1, … in their order"),
    "process": ("", "identity", "node's name, script or program"),
    "pid": ("", "identity", "process id"),
    "parent": ("", "identity", "process id of the parent at first sight"),
    "argv": ("", "identity", "arguments as last seen"),
    "began_s": ("s", "measured", "birth, from the window's begin"),
    "ended_s": ("s", "measured", "end, from the window's begin; empty: lived at its end"),
    "memory_mean_kib": ("KiB", "measured", "resident memory, mean of readings once a second"),
    "threads_max": ("threads", "measured", "highest number of threads at a reading"),
    "voluntary_switches": ("", "measured", "voluntary context switches of threads seen alive"),
    "involuntary_switches": ("", "measured", "involuntary context switches of threads seen alive"),
}
"""Columns of the table of processes. Its other columns have the meaning of a run's metric."""
COLUMNS: dict[str, tuple[str, str, str]] = {
    **PROCESS_COLUMNS,
    **{name: (metric.unit, metric.kind, metric.summary) for name, metric in METRICS.items()},
}


def describe(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the unit, kind and summary of each of these columns."""
    described = {}
    for name in names:
        stem = name.split(".")[0]
        if stem in COLUMNS:
            unit, kind, summary = COLUMNS[stem]
            described[name] = {"unit": unit, "kind": kind, "summary": summary}
    return described


def with_derived(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add the metrics that are derived from others (`model/derived.py`).

    Unknown values are None.
    """
    if not rows:
        return []
    columns = {name: values.tolist() for name, values in derived(frame_of(rows)).items()}
    return [
        {
            **row,
            **{
                name: values[index] if isfinite(values[index]) else None
                for name, values in columns.items()
            },
        }
        for index, row in enumerate(rows)
    ]


def pool_baselines(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add the standing, message and total energy, with a machine baseline pooled per block.

    The machine baseline of one run is short. All baselines of a block together are at least as long
    as a window, and they precede and follow every run of the block. Also add the energy of the
    whole run minus the campaign's idle power, for comparison with papers that subtract idle power.
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
        silent_w, window_w = row.get("power_silent_w"), row.get("power_window_w")
        if base_w is None or silent_w is None or window_w is None:
            pooled.append(row)
            continue
        # Rows of older campaigns do not distinguish the warm-up.
        seconds = row.get("cost_window_s") or row["window_s"]
        standing_j = (silent_w - base_w) * seconds
        message_j = (window_w - silent_w) * seconds
        energy = {
            "energy_standing_j": standing_j,
            "energy_message_j": message_j,
            "energy_total_j": standing_j + message_j,
        }
        pooled.append({**row, **energy})
    return pooled


def subtract_idle(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add the energy of each run minus the mean idle power of the campaign.

    Papers that use a mains power meter compute the energy above idle in this way, including the
    start of the nodes. The method ignores drift of the machine's power and does not distinguish the
    standing cost of silent nodes from the message cost. A result never consists of this energy
    alone.
    """
    idle_powers_w: dict[Any, list[float]] = {}
    for row in rows:
        if row.get("power_machine_w") is not None:
            idle_powers_w.setdefault(row.get("energy_source"), []).append(row["power_machine_w"])
    mean_w = {source: sum(powers_w) / len(powers_w) for source, powers_w in idle_powers_w.items()}
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
