"""What the recordings show about themselves and about what was printed from them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from wattwire.imports import Check, Finding, Verdict
from wattwire.imports.agreement import agrees, number
from wattwire.stats.dependence import effective_size

from . import material, values
from .material import RUN, RUN_S, TREATMENT
from .printed import INTERVALS, Means

ROWS_MAX = 40
LANGUAGES = {"cpp": "C++", "python": "Python"}
SIBLING = re.compile(r"\bthe (publisher|subscriber|(action )?(server|client)) gives")
SERIES_MIN = 30
"""Fewer runs than this tell nothing of how neighbours depend on each other."""


def all_findings(
    means: Means, tables: Sequence[Check], tests: Sequence[Check], printed: Sequence[dict[str, str]]
) -> tuple[Finding, ...]:
    """Every finding that the data at hand bear out, each with the rows it rests on."""
    made = [
        _mixed(means, printed),
        _power_times_180(means, printed),
        _zeros(means, printed),
        _other_group(tests),
        _sibling(tests),
        _impossible(tests),
        _outliers(tests),
        _order(means),
        _neighbours(means),
        _run_on(means),
        _without_file(means),
        _days(means),
        _redone(means, tables),
        _interval(means),
    ]
    return tuple(finding for finding in made if finding is not None)


def _rows(frame: pl.DataFrame) -> tuple[Mapping[str, Any], ...]:
    return tuple(frame.head(ROWS_MAX).to_dicts())


def _mixed(means: Means, printed: Sequence[Mapping[str, str]]) -> Finding | None:
    """Treatments whose printed mean is over full recordings and much shorter ones."""
    picked = means.material.recordings.filter(pl.col("picked").fill_null(False))
    if not picked.height:
        return None
    joined = picked.join(means.material.planned, on=RUN).with_columns(
        short=pl.col("duration_s") < material.FULL_SHARE * RUN_S
    )
    groups = joined.group_by("pattern", "language", "interval_s", "clients", maintain_order=True)
    mixed = groups.agg(
        runs=pl.len(), short=pl.col("short").sum(),
        shortest_s=pl.col("duration_s").min(), mean_sum_j=pl.col("sum_w").mean(),
    ).filter((pl.col("short") > 0) & (pl.col("short") < pl.col("runs")))  # fmt: skip
    if not mixed.height:
        return None
    rows = []
    for row in mixed.sort(TREATMENT).iter_rows(named=True):
        key = ("publisher", row["language"], row["interval_s"], row["clients"])
        right = means.row(values.RIGHT, key)
        text = _printed(printed, key, "energy_j")
        if right is None or not right["energy_j"] or not text:
            continue
        rows.append(
            {
                **_treatment(key),
                "runs": row["runs"],
                "short recordings": row["short"],
                "shortest (s)": row["shortest_s"],
                "printed energy (J)": text,
                "mean of the files' sums (J)": row["mean_sum_j"],
                "full recordings (J)": right["energy_j"],
                "printed is off by": f"{100 * (number(text) / right['energy_j'] - 1):.0f} %",
            }
        )
    short = sum(row["short recordings"] for row in rows)
    return Finding(
        "Means mixed from recordings of different length",
        f"Of {sum(row['runs'] for row in rows)} publisher runs in {len(rows)} treatments, {short} "
        "entered the printed means with a second, shorter recording that lies in the same folder; "
        "the script takes whichever file the disk lists first.",
        tuple(rows),
    )


def _power_times_180(means: Means, printed: Sequence[Mapping[str, str]]) -> Finding | None:
    rows = []
    for row in printed:
        key = _key(row)
        found = means.row(values.EARLIEST, key)
        if found is None or not found["runs"] or found["here"] < found["planned"]:
            continue
        watts = number(row["energy_j"]) / RUN_S
        doubled = means.recordings(key).filter(pl.col("rank") > 1).height
        if not doubled or agrees(row["energy_j"], found["energy_j"], 2):
            continue
        if agrees(row["power_w"], watts, 2):
            rows.append(
                {
                    "table": row["table"], **_treatment(key),
                    "printed energy (J)": row["energy_j"], "printed power (W)": row["power_w"],
                    "energy / 180 s (W)": watts, "full recordings (J)": found["energy_j"],
                }
            )  # fmt: skip
    if not rows:
        return None
    return Finding(
        "Energy that is power times 180 s",
        f"In {len(rows)} rows the printed energy is no sum over any recording: divided by 180 s it "
        "gives the printed power. All of them are treatments with more than one recording in a "
        "run's folder.",
        tuple(rows),
    )


def _zeros(means: Means, printed: Sequence[Mapping[str, str]]) -> Finding | None:
    rows = []
    for row in printed:
        found = means.row(values.AUTHORS, _key(row))
        if found is None or not found["memory_runs"] or not found["memory_kib"]:
            continue
        as_zero = agrees(row["memory_kib"], found["memory_zero_kib"], 0)
        if as_zero and not agrees(row["memory_kib"], found["memory_kib"], 0):
            rows.append(
                {
                    "table": row["table"], **_treatment(_key(row)),
                    "runs with memory": f"{found['memory_runs']} of {found['planned']}",
                    "printed (KB)": row["memory_kib"],
                    "mean of those (KiB)": round(found["memory_kib"]),
                }
            )  # fmt: skip
    if not rows:
        return None
    return Finding(
        "Missing runs counted as zero",
        f"In {len(rows)} rows of the tables the printed memory is exact only if a run without a "
        "readable memory file counts as 0 KB.",
        tuple(rows),
    )


def _other_group(tests: Sequence[Check]) -> Finding | None:
    hits = [c for c in tests if c.verdict is Verdict.BY_SEARCH and "another group" in c.explanation]
    if not hits:
        return None
    return Finding(
        "A test quoted for another group",
        "The statistic and p-value printed for one grouping come out, to all digits, for a group "
        f"that the text doesn't name. {hits[0].searched} groups were tried.",
        tuple({**_test_row(c, "found in", c.recipe), "as stated": c.default_value} for c in hits),
    )


def _sibling(tests: Sequence[Check]) -> Finding | None:
    hits = [c for c in tests if c.verdict is Verdict.DIFFERS and SIBLING.search(c.explanation)]
    if not hits:
        return None
    return Finding(
        "Statistics that are close to the other node's",
        "These don't come out for the node they are printed for; the same test on the node at the "
        "other end gives the printed number or one next to it.",
        tuple(_test_row(check, "other node", check.explanation) for check in hits),
    )


def _impossible(tests: Sequence[Check]) -> Finding | None:
    hits = [
        c for c in tests
        if c.place["test"].endswith(": p") and not 0 <= number(c.published) <= 1
    ]  # fmt: skip
    if not hits:
        return None
    return Finding(
        "A p-value that cannot be",
        "A p-value lies between 0 and 1.",
        tuple(_test_row(check, "remark", check.explanation) for check in hits),
    )


def _outliers(tests: Sequence[Check]) -> Finding | None:
    hits = [
        c for c in tests
        if c.verdict is not Verdict.EXACT
        and ("not claimed" in c.explanation or " alone give" in c.explanation)
    ]  # fmt: skip
    if not hits:
        return None
    return Finding(
        "Near by a choice that the text doesn't state",
        "These differ as stated. Taking outliers out, or one interval alone, gives the printed "
        "digits or a number near them; that is told here and not claimed as a match.",
        tuple(_test_row(check, "what comes near", check.explanation) for check in hits),
    )


def _test_row(check: Check, name: str, words: str) -> dict[str, Any]:
    place = {key: text for key, text in check.place.items() if key != "section"}
    return {**place, "printed": check.published, "as stated": check.value, name: words}


# -- order ----------------------------------------------------------------------------------------


def _started(means: Means) -> pl.DataFrame:
    """Runs with the start of their earliest full recording: RUN, TREATMENT, number, start."""
    frame = means.nodes[values.RIGHT].frame.filter(pl.col("start").is_not_null())
    return frame.group_by(
        *RUN, *TREATMENT, "number", "repetition", maintain_order=True
    ).agg(start=pl.col("start").min())  # fmt: skip


def _order(means: Means) -> Finding | None:
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
    return Finding(
        "One fixed order of runs",
        f"In {same} of {every} repetitions the treatments ran in the order of their numbers, by "
        "the time stamps of the recordings; they were not shuffled, so whatever drifts with time "
        "stands in the differences between treatments.",
        tuple(rows),
    )


def _neighbours(means: Means) -> Finding | None:
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
    return Finding(
        "How runs depend on the run before",
        f"What is left of a node's power (log) when its treatment's mean is taken away, in order "
        f"of start: neighbours are correlated beyond chance in {beyond} of {len(rows)} series. "
        "Tests that take runs as independent are too sure by as much as the last column is lower.",
        tuple(rows),
    )


# -- files ----------------------------------------------------------------------------------------


def _run_on(means: Means) -> Finding | None:
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
    return Finding(
        "Recordings that run on past their run",
        f"{long.height} recordings last longer than {material.OVER_S:.0f} s, up to "
        f"{float(rows['hours'][0]):.1f} h, {first} of them the earliest of their run; a mean over "
        "the file then holds an idle node, or other runs.",
        _rows(rows),
    )


def _without_file(means: Means) -> Finding | None:
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
    return Finding(
        "Node-runs without an energy file",
        f"{frame.height} node-runs have no recording; means are over the others{most}.",
        _rows(counted.rename({"role": "node", "missing": "node-runs"})),
    )


def _days(means: Means) -> Finding | None:
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
    return Finding(
        "Patterns measured on different days",
        "Each pattern was an experiment of its own, and the interval of 0.1 s was one for topics: "
        "a difference between patterns, or of that interval, is one between days as well.",
        _rows(rows),
    )


def _redone(means: Means, tables: Sequence[Check]) -> Finding | None:
    """Tables in which what does not come out was recorded after all that does."""
    rows = []
    for table in dict.fromkeys(check.group for check in tables):
        mine = [c for c in tables if c.group == table and c.place["column"] == "energy (J)"]
        found = {
            verdict: _recorded(means, [c for c in mine if c.verdict is verdict])
            for verdict in (Verdict.EXACT, Verdict.DIFFERS)
        }
        exact, other = found[Verdict.EXACT], found[Verdict.DIFFERS]
        if exact is None or other is None or other[0] <= exact[1]:
            continue
        for words, (first, last, count) in (("exact", exact), ("differs", other)):
            rows.append(
                {"table": table.removeprefix("Table "), "energy": words, "rows": count,
                 "first recording": f"{first:%Y-%m-%d %H:%M}", "last": f"{last:%Y-%m-%d %H:%M}"}
            )  # fmt: skip
    if not rows:
        return None
    return Finding(
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
        language = {title: name for name, title in LANGUAGES.items()}[place["language"]]
        key = (place["node"].replace(" ", "_"), language, INTERVALS.get(interval, interval),
               int(place["clients"]))  # fmt: skip
        starts += means.recordings(key).filter(pl.col("rank") == 1)["start"].to_list()
    return (min(starts), max(starts), len(checks)) if starts else None


def _interval(means: Means) -> Finding | None:
    levels = set(means.material.planned["interval_s"].unique().to_list())
    rows = [
        {"printed (s)": printed, "in the data (s)": data,
         "runs": means.material.planned.filter(pl.col("interval_s") == data).height}
        for printed, data in INTERVALS.items()
        if data in levels and printed not in levels
    ]  # fmt: skip
    if not rows:
        return None
    return Finding(
        "An interval printed as another",
        "The run tables hold 0.25 s where the paper prints 0.2 s (once, in Table 5, it prints "
        "0.25); rows are matched by that.",
        tuple(rows),
    )


# -- keys -----------------------------------------------------------------------------------------


def _key(row: Mapping[str, str]) -> tuple[str, str, float, int]:
    interval = float(row["interval_s"])
    return (
        row["node_role"], row["language"], INTERVALS.get(interval, interval), int(row["clients"])
    )  # fmt: skip


def _treatment(key: tuple[str, str, float, int]) -> dict[str, Any]:
    role, language, interval, clients = key
    told = {"node": role.replace("_", " "), "language": LANGUAGES[language]}
    return {**told, "interval (s)": f"{interval:g}", "clients": clients}


def _printed(
    printed: Sequence[Mapping[str, str]], key: tuple[str, str, float, int], column: str
) -> str:
    return next((row[column] for row in printed if _key(row) == key), "")
