"""Compute how the experiments were conducted, from the recordings' own time stamps and files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from wattwire.imports import Check, Match, Remark
from wattwire.stats.series.dependence import effective_size

from . import material, values
from .material import RUN, TREATMENT
from .printed import INTERVALS, LANGUAGE_NAMES, Means

ROWS_MAX = 40
SERIES_MIN = 30
"""Fewer runs than this tell nothing of how neighbours depend on each other."""


def _rows(frame: pl.DataFrame) -> tuple[Mapping[str, Any], ...]:
    return tuple(frame.head(ROWS_MAX).to_dicts())


# -- order ----------------------------------------------------------------------------------------


def _started(means: Means) -> pl.DataFrame:
    """Runs with the start of their earliest full recording: RUN, TREATMENT, number, start."""
    frame = means.nodes[values.RIGHT].frame.filter(pl.col("start").is_not_null())
    return frame.group_by(
        *RUN, *TREATMENT, "number", "repetition", maintain_order=True
    ).agg(start=pl.col("start").min())  # fmt: skip


def order(means: Means) -> Remark | None:
    """How many repetitions went through the treatments in the same order."""
    started = _started(means)
    rows = []
    for (folder,), part in started.group_by("folder", maintain_order=True):
        kept = part.filter(pl.len().over("repetition") > 1)
        if kept.height < SERIES_MIN:
            continue
        kept = kept.sort("start")
        ahead = kept.with_columns(step=pl.col("number").diff().over("repetition"))
        steps = ahead["step"].drop_nulls()
        in_order = ahead.group_by("repetition").agg((pl.col("step").drop_nulls() > 0).all())
        rows.append(
            {
                "experiment": folder,
                "repetitions": in_order.height,
                "all in one order": int(in_order["step"].sum()),
                "steps in that order": f"{int((steps > 0).sum())} of {steps.len()}",
            }
        )
    if not rows or not any(row["all in one order"] for row in rows):
        return None
    same = sum(row["all in one order"] for row in rows)
    every = sum(row["repetitions"] for row in rows)
    return Remark(
        "One fixed order of runs",
        f"In {same} of {every} repetitions the treatments ran in the order of their numbers, by "
        "the time stamps of the recordings; they were not shuffled, so whatever drifts with time "
        "stands in the differences between treatments.",
        tuple(rows),
    )


def neighbours(means: Means) -> Remark | None:
    """How alike successive runs are, beyond what their treatments explain."""
    rows = []
    frame = means.nodes[values.RIGHT].frame.filter(
        pl.col("start").is_not_null() & (pl.col("power_w") > 0)
    )
    logs = frame.with_columns(log=pl.col("power_w").log()).with_columns(
        rest=pl.col("log") - pl.col("log").mean().over("role", "language", "interval_s", "clients")
    )
    for (folder, role), part in logs.group_by("folder", "role", maintain_order=True):
        rest = part.sort("start")["rest"].to_numpy()
        if rest.size < SERIES_MIN or not float(np.ptp(rest)) > 0:
            continue
        centred = rest - rest.mean()
        lag = float(centred[1:] @ centred[:-1] / (centred @ centred))
        rows.append(
            {
                "experiment": folder,
                "node": str(role).replace("_", " "),
                "runs": int(rest.size),
                "correlation of neighbours": lag,
                "by chance within": f"±{1.96 / math.sqrt(rest.size):.2f}",
                "independent runs": effective_size(rest),
            }
        )
    if not rows:
        return None
    beyond = sum(abs(r["correlation of neighbours"]) > 1.96 / math.sqrt(r["runs"]) for r in rows)
    return Remark(
        "How runs depend on the run before",
        f"What is left of a node's power (log) when its treatment's mean is taken away, in order "
        f"of start: neighbours are correlated beyond chance in {beyond} of {len(rows)} series. "
        "Tests that take runs as independent are too sure by as much as the last column is lower.",
        tuple(rows),
    )


# -- files ----------------------------------------------------------------------------------------


def run_on(means: Means) -> Remark | None:
    long = means.material.recordings.filter(pl.col("duration_s") > material.OVER_S).sort(
        "duration_s", descending=True
    )
    if not long.height:
        return None
    first = long.filter(pl.col("rank") == 1).height
    rows = long.select(
        file="path",
        hours=pl.col("duration_s") / 3600,
        samples="rows",
        mean_of_all_w="power_all_w",
        mean_of_the_run_w=pl.col("window_energy_j") / pl.col("window_s"),
    ).rename({"mean_of_all_w": "mean of all (W)", "mean_of_the_run_w": "mean of the run (W)"})
    return Remark(
        "Recordings that run on past their run",
        f"{long.height} recordings last longer than {material.OVER_S:.0f} s, up to "
        f"{float(rows['hours'][0]):.1f} h, {first} of them the earliest of their run; a mean over "
        "the file then holds an idle node, or other runs.",
        _rows(rows),
    )


def without_file(means: Means) -> Remark | None:
    frame = means.nodes[values.EARLIEST].frame.filter(pl.col("here") & pl.col("path").is_null())
    if not frame.height:
        return None
    treatments = (
        means.nodes[values.EARLIEST]
        .frame.group_by("role", *TREATMENT)
        .agg(left=pl.col("path").is_not_null().sum(), here=pl.col("here").all())
    )
    left = treatments.filter(pl.col("here"))["left"]
    most = f": {left.min()} to {left.max()} runs a treatment" if left.len() else ""
    counted = frame.group_by("role", maintain_order=True).agg(
        missing=pl.len(), runs=pl.col("run").sort().str.join(", ")
    )
    return Remark(
        "Node-runs without an energy file",
        f"{frame.height} node-runs have no recording; means are over the others{most}.",
        _rows(counted.rename({"role": "node", "missing": "node-runs"})),
    )


def days(means: Means) -> Remark | None:
    started = _started(means)
    if started["folder"].n_unique() < 2:
        return None
    days = started.group_by("folder", maintain_order=True).agg(
        first=pl.col("start").min().dt.to_string("%Y-%m-%d %H:%M"),
        last=pl.col("start").max().dt.to_string("%Y-%m-%d %H:%M"),
        runs=pl.len(),
    )
    later = means.material.recordings.filter(pl.col("rank") > 1)
    again = later.group_by("folder").agg(more=pl.len())
    rows = days.join(again, on="folder", how="left").rename(
        {"folder": "experiment", "more": "second recordings"}
    )
    return Remark(
        "Patterns measured on different days",
        "Each pattern was an experiment of its own, and the interval of 0.1 s was one for topics: "
        "a difference between patterns, or of that interval, is one between days as well.",
        _rows(rows),
    )


def redone(means: Means, tables: Sequence[Check]) -> Remark | None:
    """Tables in which what does not come out was recorded after all that does."""
    rows = []
    for table in dict.fromkeys(check.group for check in tables):
        mine = [c for c in tables if c.group == table and c.place["column"] == "energy (J)"]
        found = {
            match: _recorded(means, [c for c in mine if c.match is match])
            for match in (Match.EXACT, Match.DIFFERS)
        }
        exact, other = found[Match.EXACT], found[Match.DIFFERS]
        if exact is None or other is None or other[0] <= exact[1]:
            continue
        for words, (first, last, count) in (("exact", exact), ("differs", other)):
            rows.append(
                {"table": table.removeprefix("Table "), "energy": words, "rows": count,
                 "first recording": f"{first:%Y-%m-%d %H:%M}", "last": f"{last:%Y-%m-%d %H:%M}"}
            )  # fmt: skip
    if not rows:
        return None
    return Remark(
        "Rows recorded again after the rest",
        "Every row of the table whose energy differs rests on recordings later than all of those "
        "whose energy is exact: the printed numbers may be older than the files.",
        tuple(rows),
    )


def _recorded(means: Means, checks: Sequence[Check]) -> tuple[Any, Any, int] | None:
    """First and last start of the earliest recordings behind some checks, and their number."""
    starts = []
    for check in checks:
        place = check.place
        interval = float(place["interval (s)"])
        language = LANGUAGE_NAMES[place["language"]]
        key = (place["node"].replace(" ", "_"), language, INTERVALS.get(interval, interval),
               int(place["clients"]))  # fmt: skip
        starts += means.recordings(key).filter(pl.col("rank") == 1)["start"].to_list()
    return (min(starts), max(starts), len(checks)) if starts else None


def interval(means: Means) -> Remark | None:
    levels = set(means.material.planned["interval_s"].unique().to_list())
    rows = [
        {"printed (s)": printed, "in the data (s)": data,
         "runs": means.material.planned.filter(pl.col("interval_s") == data).height}
        for printed, data in INTERVALS.items()
        if data in levels and printed not in levels
    ]  # fmt: skip
    if not rows:
        return None
    return Remark(
        "An interval printed as another",
        "The run tables hold 0.25 s where the paper prints 0.2 s (once, in Table 5, it prints "
        "0.25); rows are matched by that.",
        tuple(rows),
    )
