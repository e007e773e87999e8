"""Describe the unit, kind and meaning of each summary column.

The names of a node's columns end with .ROLE.N.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

from wattwire.model.derived import derived
from wattwire.model.metrics import ENERGY, METRICS, PROCESS_COLUMNS, Metric, is_printed, printed
from wattwire.model.verdict import Verdict
from wattwire.store.campaign import frame_of

COLUMNS: dict[str, Metric] = {**PROCESS_COLUMNS, **METRICS}


def describe(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the unit, kind and summary of each of these columns."""
    described = {}
    for name in names:
        stem = name.split(".")[0]
        if stem in COLUMNS:
            metric = COLUMNS[stem]
            figure = printed(name.partition(".")[2]) if is_printed(stem) else None
            unit = figure.unit if figure else metric.unit
            described[name] = {"unit": unit, "kind": metric.kind, "summary": metric.summary}
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


BEFORE_PROCESSES = ("cpu_latency_us", "network", "placement")
"""Factors whose level changes the machine's power before any process of the run starts: idle states
of the cores, the emulator of a network, and the hosts of a placement.
"""


def of_one_source(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows with powers and energies of one source only; those of others are None.

    Sources measure different parts of a machine, so no mean is over several of them. The campaign's
    source is the one that most valid runs have. `energy_source` keeps the name of the other one.
    """
    counts = Counter(
        row["energy_source"]
        for row in rows
        if row.get("energy_source") and row.get("verdict") == Verdict.VALID.value
    )
    if len(counts) < 2:
        return list(rows)
    # Of equally frequent sources, one that is the second of no run is preferred by its rank.
    seconds = {row.get("energy_source_second") for row in rows}
    chosen = min(counts, key=lambda name: (-counts[name], name in seconds, name))
    return [
        row
        if row.get("energy_source") in (None, chosen)
        else {name: None if _is_measured_energy(name) else value for name, value in row.items()}
        for row in rows
    ]


def _is_measured_energy(name: str) -> bool:
    metric = COLUMNS.get(name.split(".")[0])
    return metric is not None and metric.needs == ENERGY


def pool_baselines(
    rows: Sequence[dict[str, Any]], levels: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Add the standing, message and total energy, with a machine baseline pooled per block.

    The machine baseline of one run is short. All baselines of a block together are at least as long
    as a window, and they precede and follow every run of the block. Only the baselines of valid
    attempts with the same levels of BEFORE_PROCESSES and the same energy source are pooled.
    `levels` contains the levels of each treatment by its key. Also add the energy of the whole run
    minus the campaign's idle power, for comparison with papers that subtract idle power.
    """
    machine_w = _pooled_w(rows, levels, "block")
    pooled: list[dict[str, Any]] = []
    for row, base_w in zip(subtract_idle(rows, levels), machine_w, strict=True):
        silent_w, window_w = row.get("power_silent_w"), row.get("power_window_w")
        if base_w is None or silent_w is None or window_w is None:
            pooled.append(row)
            continue
        seconds = row["cost_window_s"]
        standing_j = (silent_w - base_w) * seconds
        message_j = (window_w - silent_w) * seconds
        energy = {
            "energy_standing_j": standing_j,
            "energy_message_j": message_j,
            "energy_total_j": standing_j + message_j,
        }
        pooled.append({**row, **energy})
    return pooled


def _pooled_w(
    rows: Sequence[dict[str, Any]], levels: Mapping[str, Mapping[str, Any]], *keys: str
) -> list[float | None]:
    """Return the mean power of the machine before the processes (W) for each row.

    The mean is over the valid attempts with the same values in the columns `keys`, the same source
    and the same conditions. Without such an attempt, it is the row's own power.
    """
    powers: dict[tuple[Any, ...], list[float]] = {}
    row_keys = []
    for row in rows:
        of_treatment = levels.get(row.get("treatment", ""), {})
        conditions = (of_treatment.get(name) for name in BEFORE_PROCESSES)
        key = (*(row[name] for name in keys), row.get("energy_source"), *conditions)
        row_keys.append(key)
        if row.get("power_machine_w") is not None and row["verdict"] == Verdict.VALID.value:
            powers.setdefault(key, []).append(row["power_machine_w"])
    means = {key: sum(values) / len(values) for key, values in powers.items()}
    return [
        means.get(key, row.get("power_machine_w")) for key, row in zip(row_keys, rows, strict=True)
    ]


def subtract_idle(
    rows: Sequence[dict[str, Any]], levels: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Add the energy of each run minus the mean idle power of the campaign in its conditions.

    Papers that use a mains power meter compute the energy above idle in this way, including the
    start of the nodes. The method ignores drift of the machine's power and does not distinguish the
    standing cost of silent nodes from the message cost. A result never consists of this energy
    alone.
    """
    subtracted = []
    for row, idle_w in zip(rows, _pooled_w(rows, levels), strict=True):
        run_w = row.get("power_run_w")
        if idle_w is not None and run_w is not None and row.get("run_s"):
            energy_j = (run_w - idle_w) * row["run_s"]
            energy = {"power_idle_w": idle_w, "energy_idle_subtracted_j": energy_j}
            subtracted.append({**row, **energy})
        else:
            subtracted.append(row)
    return subtracted
