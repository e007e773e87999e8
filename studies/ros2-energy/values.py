"""From recordings to a number per run: which recording counts, and what is taken from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from wattwire.imports import SetAside
from wattwire.imports.imported import PROVENANCE

from . import material
from .material import NODE, OVER_S, RUN, TREATMENT, Material

RIGHT = "default"
AUTHORS = "authors"
EARLIEST = "earliest"
MEMORY_LEAST = 0.8
"""Below this share of runs with memory, the rest was overwritten rather than never recorded."""
TOGETHER_S = 10
"""Both nodes of a run are started within so many seconds."""
NO_FILE = "no readable file: counts as 0"
STEMS = ("cpu_share", "memory_kib", "memory_kib_total", "energy_j", "power_w")


@dataclass(frozen=True)
class Nodes:
    """A row per planned run and side, with what one recipe makes of it.

    `frame` has the columns of PLANNED, side, role, run, path, start, rows_used, rows_left_out,
    cpu_percent, energy_j, power_w, memory_path, memory_kib, memory_rows, memory_left_out; a
    number is null where it is missing.
    """

    frame: pl.DataFrame
    recipe: str
    samples: bool


def nodes(material_: Material, recipe: str) -> Nodes:
    """Every node of every run under RIGHT, AUTHORS or EARLIEST (AUTHORS without their log)."""
    chosen = _right(material_) if recipe == RIGHT else _authors(material_, recipe)
    sides = pl.DataFrame({"side": list(material.SIDES)})
    roles = pl.DataFrame(
        [(p, side, role) for (p, side), role in material.ROLES.items()],
        schema=["pattern", "side", "role"], orient="row",
    )  # fmt: skip
    memory = material_.memory
    if recipe != RIGHT:
        memory = memory.with_columns(memory_kib="memory_all_kib")
    short = pl.col("folder").str.replace("cpp_py_ros2_", "", literal=True)
    frame = (
        material_.planned.join(sides, how="cross")
        .join(roles, on=["pattern", "side"], how="left")
        .join(chosen, on=NODE, how="left")
        .join(memory.drop("memory_all_kib"), on=NODE, how="left")
        .with_columns(run=pl.format("{}-{}", short, "run_id"))
    )
    return Nodes(frame, recipe, material_.samples)


def judged(recordings: pl.DataFrame) -> pl.DataFrame:
    """Recordings of full length with `why` they cannot count, null where they can.

    A client that was started before its server waits, and may be recorded for hours; it takes
    part in the run only when the other node began with it. That is told by the clock alone.
    """
    full = recordings.filter(material.full_length())
    other = full.select(
        *RUN,
        side=pl.when(pl.col("side") == "server").then(pl.lit("client")).otherwise(pl.lit("server")),
        other_start="start",
    ).group_by(NODE).agg(pl.col("other_start"))  # fmt: skip
    joined = full.join(other, on=NODE, how="left").with_row_index("at")
    apart = joined.select("at", "start", "other_start").explode("other_start").group_by("at").agg(
        apart_s=(pl.col("start") - pl.col("other_start")).dt.total_seconds().abs().min()
    )  # fmt: skip
    alone = pl.col("other_start").is_null()
    return joined.join(apart, on="at", how="left").with_columns(
        why=pl.when(~alone & (pl.col("apart_s") > TOGETHER_S))
        .then(pl.lit("began without the other node, whose recording is from another time"))
        .when(alone & (pl.col("duration_s") > OVER_S))
        .then(pl.lit("runs on past its run, and no recording of the other node tells which part"))
    ).drop("at", "other_start", "apart_s")  # fmt: skip


def _right(material_: Material) -> pl.DataFrame:
    """The earliest full recording that began with the other node's; energy is power times time."""
    full = judged(material_.recordings).filter(pl.col("why").is_null()).sort("rank")
    return full.unique(NODE, keep="first", maintain_order=True).select(
        *NODE, "path", "start",
        rows_used="window_rows",
        rows_left_out=pl.col("rows") + pl.col("not_numbers") - pl.col("window_rows"),
        cpu_percent="window_cpu_percent",
        energy_j="window_energy_j",
        power_w=pl.col("window_energy_j") / pl.col("window_s"),
        window_s="window_s",
    )  # fmt: skip


def _authors(material_: Material, recipe: str) -> pl.DataFrame:
    """One file a node, all of its rows: no time step, and power without samples of 3 W and more."""
    order = pl.col("rank")
    if recipe == AUTHORS:
        order = pl.when(pl.col("picked").fill_null(False)).then(0).otherwise(pl.col("rank"))
    chosen = material_.recordings.with_columns(order=order).sort("order")
    return chosen.unique(NODE, keep="first", maintain_order=True).select(
        *NODE, "path", "start",
        rows_used=pl.col("rows"),
        rows_left_out=pl.col("not_numbers"),
        cpu_percent="cpu_percent",
        energy_j="sum_w",
        power_w="power_below_3w",
        window_s=pl.col("duration_s") + 1.0,
    )  # fmt: skip


def with_zeros(found: Nodes) -> Nodes:
    """The authors' way with memory: a run that lacks it counts as 0, where others have it.

    A treatment in which hardly any run has it was overwritten since; nothing is put there.
    """
    known = pl.col("memory_kib").is_not_null()
    mostly = known.mean().over("role", *TREATMENT) >= MEMORY_LEAST
    missing = ~known & pl.col("here") & mostly
    zero = {"memory_kib": 0.0, "memory_rows": 0, "memory_left_out": 0}
    frame = found.frame.with_columns(
        [pl.when(missing).then(value).otherwise(name).alias(name) for name, value in zero.items()]
    )
    return Nodes(frame, found.recipe, found.samples)


def runs(found: Nodes) -> tuple[pl.DataFrame, dict[str, str]]:
    """The store's table of runs, and why some cannot be used.

    A block is a repetition: all treatments once. Positions follow the time at which the first
    metered node began; runs without a recording come last.
    """
    frame = found.frame
    known = pl.col("energy_j").is_not_null() | pl.col("memory_kib").is_not_null()
    per_run = frame.group_by("run", maintain_order=True).agg(
        pl.col("pattern", "language", "interval_s", "clients", "folder", "repetition").first(),
        pl.col("number", "here").first(),
        start=pl.col("start").min(),
        recorded=pl.col("energy_j").is_not_null().sum(),
        known=known.sum(),
        window_s=pl.col("window_s").mean(),
        **{name: _both(name) for name in ("energy_j", "power_w")},
        cpu_share=_both("cpu_percent") / 100.0,
        memory_kib_total=_both("memory_kib"),
    )
    for role in material.ROLES.values():
        mine = frame.filter(pl.col("role") == role).select(
            "run",
            (pl.col("cpu_percent") / 100.0).alias(f"cpu_share.{role}.0"),
            pl.col("memory_kib").alias(f"memory_kib.{role}.0"),
            pl.col("energy_j").alias(f"energy_j.{role}.0"),
            pl.col("power_w").alias(f"power_w.{role}.0"),
        )
        if mine.height:
            per_run = per_run.join(mine, on="run", how="left")
    return _placed(per_run), _reasons(per_run)


def _both(name: str) -> pl.Expr:
    """The sum over both metered nodes; null where one is missing."""
    value = pl.col(name)
    return pl.when(value.is_not_null().all() & (pl.len() == 2)).then(value.sum())


def _placed(per_run: pl.DataFrame) -> pl.DataFrame:
    ordered = per_run.sort(
        "start", "folder", "repetition", "number", nulls_last=True, maintain_order=True
    )
    usable = pl.col("known") > 0
    ordered = ordered.with_columns(
        attempt=pl.lit(1),
        block=pl.col("repetition") + 1,
        position=pl.int_range(1, pl.len() + 1).over("repetition"),
        verdict=pl.when(usable).then(pl.lit("valid")).otherwise(pl.lit("invalid")),
        outcome=pl.lit("completed"),
        used=usable,
        control=pl.lit(""),
    ).rename({name: f"factor.{name}" for name in material.TREATMENT})
    first = ["run", "attempt", "block", "position", "verdict", "outcome", "used", "control"]
    first += [f"factor.{name}" for name in material.TREATMENT]
    dropped = {"folder", "repetition", "number", "here", "start", "recorded", "known"}
    return ordered.select(*first, *[c for c in ordered.columns if c not in {*first, *dropped}])


def _reasons(per_run: pl.DataFrame) -> dict[str, str]:
    without = per_run.filter(pl.col("known") == 0)
    here = {True: "no recording that can count and no memory of either node",
            False: "its folder is not in this copy of the data"}  # fmt: skip
    return {run: here[known] for run, known in without.select("run", "here").iter_rows()}


def provenance(found: Nodes, runs_: pl.DataFrame) -> pl.DataFrame:
    """A row per run and response: files, rows, how."""
    frame = found.frame
    parts = []
    for stem, column, how in _sources(found.recipe, found.samples):
        memory = stem == "memory_kib"
        path = "memory_path" if memory else "path"
        used, left = (
            ("memory_rows", "memory_left_out") if memory else ("rows_used", "rows_left_out")
        )
        rows = frame.filter(pl.col(column).is_not_null()).select(
            "run", "role",
            file=path, rows_used=used, rows_left_out=left,
            how=pl.when(pl.col(path).is_null()).then(pl.lit(NO_FILE)).otherwise(pl.lit(how)),
        )  # fmt: skip
        single = rows.with_columns(
            column=pl.format("{}.{}.0", pl.lit(stem), "role"),
            files=pl.concat_list("file").list.drop_nulls(),
        )
        total = "memory_kib_total" if memory else stem
        both = rows.group_by("run", maintain_order=True).agg(
            pl.col("rows_used").sum(), pl.col("rows_left_out").sum(),
            files=pl.col("file").drop_nulls(), nodes=pl.len(),
        )  # fmt: skip
        both = both.filter(pl.col("nodes") == 2).with_columns(
            column=pl.lit(total), how=pl.lit(f"{how}; sum of both metered nodes")
        )
        parts += [single.select(list(PROVENANCE)), both.select(list(PROVENANCE))]
    windows = frame.filter(pl.col("window_s").is_not_null()).group_by("run", maintain_order=True)
    parts.append(
        windows.agg(
            files=pl.col("path"), rows_used=pl.col("rows_used").sum(),
            rows_left_out=pl.col("rows_left_out").sum(),
            column=pl.lit("window_s"), how=pl.lit("time that the samples stand for, mean of nodes"),
        ).select(list(PROVENANCE))
    )  # fmt: skip
    return pl.concat([part.cast(PROVENANCE) for part in parts])


def _sources(recipe: str, samples: bool) -> tuple[tuple[str, str, str], ...]:
    """Response, the column it is in, and how it is made."""
    if recipe == RIGHT and not samples:
        which = "earliest recording of the full length, as the table tells"
        return (
            ("energy_j", "energy_j", f"{which}: mean power × (its length + 1 s)"),
            ("power_w", "power_w", f"{which}: mean power"),
            ("cpu_share", "cpu_percent", f"{which}: mean use × 8 threads"),
            ("memory_kib", "memory_kib", "mean resident memory, as the table tells"),
        )
    if recipe == RIGHT:
        which = "earliest recording of the full length, rows of the run's 180 s"
        return (
            ("energy_j", "energy_j", f"{which}: sum of power × time since the sample before"),
            ("power_w", "power_w", f"{which}: energy over the time it stands for"),
            ("cpu_share", "cpu_percent", f"{which}: mean use × 8 threads, weighted by time"),
            ("memory_kib", "memory_kib", "mean resident memory of the file, samples of 0 left out"),
        )
    which = "the file that the authors' script took, as far as known, else the earliest; all rows"
    return (
        ("energy_j", "energy_j", f"{which}: sum of power, no time step"),
        ("power_w", "power_w", f"{which}: mean of samples below 3 W"),
        ("cpu_share", "cpu_percent", f"{which}: mean use × 8 threads"),
        ("memory_kib", "memory_kib", "mean resident memory of the file"),
    )


def unused(material_: Material, found: Nodes) -> list[SetAside]:
    """Recordings that are whole but not the one that counts."""
    taken = set(found.frame["path"].drop_nulls())
    if found.recipe == RIGHT:
        rest = judged(material_.recordings)
        why = "another recording of the run is used: an earlier one of the full length"
    else:
        rest = material_.recordings.with_columns(why=pl.lit(None, pl.String))
        why = "another recording of the run is used: the authors' choice, or the earliest"
    rest = rest.filter(~pl.col("path").is_in(list(taken))).with_columns(
        pl.col("why").fill_null(why)
    )
    return [SetAside(*row) for row in rest.select("path", "rows", "why").iter_rows()]


def columns(recipe: str) -> Mapping[str, Mapping[str, str]]:
    """What the responses are, by stem and for both nodes together."""
    energy = "the processor's energy shared out to the process by its CPU use (PowerJoular)"
    told = {
        "cpu_share": ("cores", "CPU use", "used", "CPU use of the node's process"),
        "memory_kib": ("KiB", "memory", "held", "resident memory of the node's process"),
        "energy_j": ("J", "energy", "used", energy),
        "power_w": ("W", "power", "drew", f"mean power: {energy}"),
    }
    found = {}
    for stem, (unit, title, had, summary) in told.items():
        both = "memory_kib_total" if stem == "memory_kib" else stem
        made = {"unit": unit, "kind": "measured", "had": had}
        found[both] = {
            **made,
            "title": f"{title} of both metered nodes",
            "summary": f"{summary}, both metered nodes; one client of up to three is metered",
        }
        for role in material.ROLES.values():
            name = role.replace("_", " ")
            found[f"{stem}.{role}.0"] = {**made, "title": f"{title} of the {name}",
                                         "summary": summary}  # fmt: skip
    return found


def means(found: Nodes, role: str) -> pl.DataFrame:
    """A row per treatment of a role: plain means over its runs, and how many runs have data.

    Columns: language, interval_s, clients, runs, here, cpu_percent, energy_j, power_w,
    memory_kib, memory_zero_kib (a run without memory counted as 0), memory_runs.
    """
    mine = found.frame.filter(pl.col("role") == role)
    return mine.group_by("language", "interval_s", "clients", maintain_order=True).agg(
        planned=pl.len(),
        here=pl.col("here").sum(),
        runs=pl.col("energy_j").is_not_null().sum(),
        cpu_percent=pl.col("cpu_percent").mean(),
        energy_j=pl.col("energy_j").mean(),
        power_w=pl.col("power_w").mean(),
        memory_kib=pl.col("memory_kib").mean(),
        memory_zero_kib=pl.col("memory_kib").sum() / pl.len(),
        memory_runs=pl.col("memory_kib").is_not_null().sum(),
    )


__all__ = [
    "AUTHORS", "EARLIEST", "RIGHT", "RUN", "Nodes", "columns", "means", "nodes", "provenance",
    "runs", "unused",
]  # fmt: skip
