"""Determine the warm-up of a campaign from its settling runs, once before the first block.

The number of calls is the same for all treatments, and the journal records it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wattwire import stats
from wattwire.analysis.latency import series_of
from wattwire.model import words
from wattwire.model.derived import FloatArray
from wattwire.model.errors import WattwireError
from wattwire.model.warm_up import SETTLING, STEPS
from wattwire.stats.series.settling import LAST_SHARE, Settled, settle
from wattwire.store import Campaign


@dataclass(frozen=True)
class _Cell:
    """The settling runs of one cell.

    Each run is an array of latencies (µs) by call of a client, shape (calls,).
    """

    entry: Mapping[str, Any]
    runs: list[FloatArray]

    @property
    def title(self) -> str:
        """The name of the cell and its settings, as in the study."""
        names = [str(name) for name in dict.fromkeys(reversed(self.entry["cells"].values()))]
        levels = self.entry["levels"]
        settings = [
            f"{key.removeprefix('settings.')} {words.plain(value)}"
            for key, value in self.entry["treatment"].items()
            if key.startswith("settings.") or key in ("variant", "pattern") and key in levels
        ]
        return " ".join([" with ".join(names), *settings])

    @property
    def call_s(self) -> float:
        """Duration (s) of a call in the steady state; 0 if no call was answered."""
        means = []
        for run in self.runs:
            last = run[int(run.size * (1.0 - LAST_SHARE)) :]
            known = last[np.isfinite(last)]
            means += [float(known.mean())] if known.size else []
        return float(np.median(means)) / 1e6 if means else 0.0


def judge(campaign: Campaign) -> dict[str, Any]:
    """Return the journal's entry on the warm-up.

    It has the number of `calls`, the calls that each cell needs, and the cell that limits the
    number.
    """
    cells = _cells(campaign)
    results = [(cell, settle(cell.runs)) for cell in cells]
    wanted = max((settled.calls for _, settled in results if settled.calls), default=STEPS[0])
    max_s = campaign.study.plan.warmup_max_s
    slowest = max(cells, key=lambda cell: cell.call_s)
    fitting = [step for step in STEPS if step <= wanted and step * slowest.call_s <= max_s]
    calls = max(fitting, default=STEPS[0])
    settling = [row for row in campaign.rows() if row.get("control") == SETTLING]
    quiet = {row["run"] for row in settling if row["verdict"] == "valid"}
    judgement = {
        "calls": calls,
        "runs": sum(len(cell.runs) for cell in cells),
        "disturbed": len({row["run"] for row in settling} - quiet),
        "wanted": wanted,
        "bound_by": slowest.title if calls < wanted else None,
        "call_s": slowest.call_s,
        "max_s": max_s,
        "cells": [_cell_entry(cell, settled, calls) for cell, settled in results],
    }
    return {**judgement, "words": sentence(judgement)}


def _cells(campaign: Campaign) -> list[_Cell]:
    """Return the settling runs that recorded messages, by treatment."""
    cells: dict[str, _Cell] = {}
    for entry in campaign.plan:
        if entry.get("control") != SETTLING:
            continue
        cell = cells.setdefault(entry["treatment_key"], _Cell(entry, []))
        try:
            messages, document = campaign.recorded(entry["run"]), campaign.run(entry["run"])
        except WattwireError:
            continue  # no attempt recorded messages; the cell may have no settling run
        series = series_of(messages, document, 0.0, with_warm_up=True).values_us
        cell.runs.append(_by_call(series, int(entry["levels"]["clients"])))
    return list(cells.values())


def _by_call(series: FloatArray, clients: int) -> FloatArray:
    """Return the mean latency of each call over the clients, shape (calls,).

    The clients call in turn, so `series` alternates between the clients.
    """
    series = np.where(np.isfinite(series), series, np.nan)
    whole = series[: series.size - series.size % clients].reshape(-1, clients)
    known = np.isfinite(whole)
    with np.errstate(invalid="ignore"):
        mean = np.where(known, whole, 0.0).sum(axis=1) / known.sum(axis=1)
    return np.asarray(mean, dtype=np.float64)


def _cell_entry(cell: _Cell, settled: Settled, calls: int) -> dict[str, Any]:
    return {
        "cell": cell.title,
        "calls": settled.calls,
        "settled": settled.settled and settled.calls is not None and settled.calls <= calls,
        "known": settled.calls is not None,
        "courses": [stats.classify(run).name for run in cell.runs],
        "made": [int(run.size) for run in cell.runs],
        "call_s": cell.call_s,
    }


def sentence(judgement: Mapping[str, Any]) -> str:
    """Return a sentence that states the warm-up and how it was determined."""
    longest = [cell["cell"] for cell in judgement["cells"] if cell["calls"] == judgement["wanted"]]
    text = (
        f"warm-up of all treatments: {words.plural(judgement['calls'], 'call')} of each client, "
        "flagged and excluded from all results"
    )
    if judgement.get("disturbed"):
        runs = words.plural(judgement["runs"], "settling run")
        text += (
            f"; {words.count(judgement['disturbed'])} of {runs} ran under other load, which can "
            "lengthen the warm-up"
        )
    if cells := unknown_cells(judgement):
        text += f"; the warm-up of {words.listed(cells)} is unknown"
    if judgement["bound_by"]:
        return (
            f"{text}; {words.listed(longest)} would need {words.count(judgement['wanted'])} calls, "
            f"but those of {judgement['bound_by']} would take more than "
            f"{words.duration(judgement['max_s'])} per run (plan.warmup_max_s)"
        )
    if longest:
        text += f"; the longest warm-up is that of {words.listed(longest)}"
    return text


def unknown_cells(judgement: Mapping[str, Any] | None) -> list[str]:
    """Return the cells whose settling runs have too few answered calls for a conclusion."""
    return [cell["cell"] for cell in judgement["cells"] if not cell["known"]] if judgement else []


def unsettled_cells(judgement: Mapping[str, Any] | None) -> list[str]:
    """Return the cells whose settling runs had not reached steady state after the warm-up."""
    if not judgement:
        return []
    return [cell["cell"] for cell in judgement["cells"] if cell["known"] and not cell["settled"]]
