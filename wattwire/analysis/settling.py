"""What a campaign's settling runs say: how many calls are its warm-up, and whom that is too few.

The number is found once, before the first block, kept in the journal, and holds for all treatments.
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
from wattwire.model.study import Plan
from wattwire.model.warm_up import SETTLING, STEPS
from wattwire.stats.series.settling import LAST_SHARE, Settled, settle
from wattwire.store import Campaign


@dataclass(frozen=True)
class _Cell:
    """One cell's settling runs: each one's latency in µs, call by call of a client."""

    entry: Mapping[str, Any]
    runs: list[FloatArray]

    @property
    def title(self) -> str:
        """The cell in its settings, as the study names it."""
        names = [str(name) for name in dict.fromkeys(reversed(self.entry["cells"].values()))]
        levels = self.entry["levels"]
        told = [
            f"{key.removeprefix('settings.')} {words.plain(value)}"
            for key, value in self.entry["treatment"].items()
            if key.startswith("settings.") or key in ("variant", "pattern") and key in levels
        ]
        return " ".join([" with ".join(names), *told])

    @property
    def call_s(self) -> float:
        """Seconds that a call takes once the cell has run for a while; 0 where none was made."""
        means = []
        for run in self.runs:
            last = run[int(run.size * (1.0 - LAST_SHARE)) :]
            known = last[np.isfinite(last)]
            means += [float(known.mean())] if known.size else []
        return float(np.median(means)) / 1e6 if means else 0.0


def judge(campaign: Campaign) -> dict[str, Any]:
    """The warm-up in `calls`, for the journal, with what each cell needs and what bounds it."""
    cells = _cells(campaign)
    each = [(cell, settle(cell.runs)) for cell in cells]
    wanted = max((one.calls for _, one in each if one.calls), default=STEPS[0])
    max_s = float(campaign.study.get("plan", {}).get("warmup_max_s", Plan.warmup_max_s))
    slowest = max(cells, key=lambda cell: cell.call_s)
    fitting = [step for step in STEPS if step <= wanted and step * slowest.call_s <= max_s]
    calls = max(fitting, default=STEPS[0])
    settling = [row for row in campaign.rows() if row.get("control") == SETTLING]
    quiet = {row["run"] for row in settling if row["verdict"] == "ok"}
    found = {
        "calls": calls,
        "runs": sum(len(cell.runs) for cell in cells),
        "disturbed": len({row["run"] for row in settling} - quiet),
        "wanted": wanted,
        "bound_by": slowest.title if calls < wanted else None,
        "call_s": slowest.call_s,
        "max_s": max_s,
        "cells": [_told(cell, one, calls) for cell, one in each],
    }
    return {**found, "words": sentence(found)}


def _cells(campaign: Campaign) -> list[_Cell]:
    """The settling runs of the plan that left messages, by treatment."""
    found: dict[str, _Cell] = {}
    for entry in campaign.plan:
        if entry.get("control") != SETTLING:
            continue
        cell = found.setdefault(entry["treatment_key"], _Cell(entry, []))
        try:
            messages, document = campaign.recorded(entry["run"]), campaign.run(entry["run"])
        except WattwireError:
            continue  # no attempt left any: a cell without a run has nothing to say
        series = series_of(messages, document, 0.0, with_warm_up=True).values_us
        cell.runs.append(_by_call(series, int(entry["levels"]["clients"])))
    return list(found.values())


def _by_call(series: FloatArray, clients: int) -> FloatArray:
    """One value a call of each client: clients that begin calls in turn are put together."""
    series = np.where(np.isfinite(series), series, np.nan)
    whole = series[: series.size - series.size % clients].reshape(-1, clients)
    known = np.isfinite(whole)
    with np.errstate(invalid="ignore"):
        mean = np.where(known, whole, 0.0).sum(axis=1) / known.sum(axis=1)
    return np.asarray(mean, dtype=np.float64)


def _told(cell: _Cell, one: Settled, calls: int) -> dict[str, Any]:
    return {
        "cell": cell.title,
        "calls": one.calls,
        "settled": one.settled and one.calls is not None and one.calls <= calls,
        "known": one.calls is not None,
        "courses": [stats.classify(run).name for run in cell.runs],
        "made": [int(run.size) for run in cell.runs],
        "call_s": cell.call_s,
    }


def sentence(found: Mapping[str, Any]) -> str:
    """The warm-up and what it rests on, in words."""
    most = [one["cell"] for one in found["cells"] if one["calls"] == found["wanted"]]
    told = (
        f"warm-up of all treatments: {words.plural(found['calls'], 'call')} of each client, "
        "which are made, flagged and left out of every figure"
    )
    if found.get("disturbed"):
        runs = words.plural(found["runs"], "settling run")
        told += (
            f"; {words.count(found['disturbed'])} of {runs} ran beside other load, which can make "
            "it look longer"
        )
    if untold := unknown(found):
        told += f"; what {words.listed(untold)} would need is not known"
    if found["bound_by"]:
        return (
            f"{told}; {words.listed(most)} would want {words.count(found['wanted'])}, but those "
            f"of {found['bound_by']} would take more than {words.duration(found['max_s'])} a run "
            "(plan.warmup_max_s)"
        )
    if most:
        told += f"; most are needed by {words.listed(most)}"
    return told


def unknown(found: Mapping[str, Any] | None) -> list[str]:
    """Cells whose settling runs say nothing: too few calls were answered in them."""
    return [one["cell"] for one in found["cells"] if not one["known"]] if found else []


def unsettled(found: Mapping[str, Any] | None) -> list[str]:
    """Cells whose settling runs say that they had not settled when their warm-up was over."""
    if not found:
        return []
    return [one["cell"] for one in found["cells"] if one["known"] and not one["settled"]]
