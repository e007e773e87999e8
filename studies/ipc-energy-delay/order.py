"""In which order runs were made, and what a run's energy shares with the one before."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence

from wattwire.imports import Remark

from .known import Known
from .naming import IPC_TITLES, LANGUAGE_TITLES, named, placed
from .observed import Observation

PASSES_MIN = 20
"""Fewer values than this say next to nothing about their correlation."""


def fixed(known: Known) -> Remark | None:
    """The order inside passes, from the clock times that some servers print."""
    orders: dict[tuple[str, ...], int] = {}
    passes: dict[tuple[str, str, datetime.datetime], list[tuple[datetime.datetime, Observation]]]
    passes = {}
    for run in known.collected.sorted():
        if "server" in run.clocks:
            passes.setdefault(run.key[:3], []).append((run.clocks["server"], run))
    for told in passes.values():
        names = [f"{IPC_TITLES[run.ipc]} {LANGUAGE_TITLES[run.language]}"
                 for _, run in sorted(told, key=lambda item: item[0])]  # fmt: skip
        if len(names) > 1:
            orders[tuple(names)] = orders.get(tuple(names), 0) + 1
    if not orders:
        return None
    rows = [{"order": " → ".join(names), "passes": count} for names, count in
            sorted(orders.items(), key=lambda item: -item[1])]  # fmt: skip
    longest = max(orders, key=len)
    kept = sum(count for names, count in orders.items() if _within(names, longest))
    total = sum(orders.values())
    return Remark(
        "The order of the runs is the same in every pass" if kept == total
        else "The order of the runs",
        f"Only servers that print clock times say when they ran: in {kept} of {total} passes "
        "that tell, they come in one and the same order. Runs were not shuffled, so what drifts "
        "inside a pass (temperature, caches) can't be told from what differs by implementation.",
        tuple(rows),
    )  # fmt: skip


def _within(names: Sequence[str], order: Sequence[str]) -> bool:
    """Whether all of `names` stand in `order`, in the same order."""
    places = [order.index(name) if name in order else -1 for name in names]
    return places == sorted(places) and -1 not in places


def autocorrelation(known: Known) -> Remark | None:
    """Correlation of each implementation's energies with those of the pass before."""
    rows = []
    beyond = total = 0
    for (platform, metered, ipc, language), runs in known.groups.items():
        energies = [run.raw_energy_j for run in runs]
        values = [math.log(value) for value in energies if value]
        lag = lag_one(values)
        if len(values) < PASSES_MIN or lag is None:
            continue
        limit = 1.96 / math.sqrt(len(values))
        total += 1
        if abs(lag) > limit:
            beyond += 1
            rows.append(
                {
                    **placed(platform, metered), **named(ipc, language), "passes": len(values),
                    "correlation with the pass before": round(lag, 2),
                    "expected within ±": round(limit, 2),
                }
            )  # fmt: skip
    if total == 0:
        return None
    return Remark(
        "Energies follow those of the pass before" if beyond > 0.05 * total + 2 * math.sqrt(
            0.0475 * total) else "Energies of neighbouring passes",
        f"Ordered by start, the logarithms of the energies of {beyond} of {total} implementations "
        "correlate with their predecessors beyond 1.96/√n (about 1 in 20 would by chance). Where "
        "they do, the runs are not independent and intervals over them are too narrow.",
        tuple(sorted(rows, key=lambda row: -abs(float(row["correlation with the pass before"])))),
    )  # fmt: skip


def lag_one(values: Sequence[float]) -> float | None:
    """Autocorrelation at lag 1; None where all values are the same or there are fewer than 3."""
    if len(values) < 3:
        return None
    mean = sum(values) / len(values)
    parts = [value - mean for value in values]
    square = sum(part * part for part in parts)
    if square <= 1e-18 * max(1.0, mean * mean) * len(values):
        return None
    return sum(a * b for a, b in zip(parts, parts[1:], strict=False)) / square
