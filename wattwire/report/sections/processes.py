"""Build the section on the processes of a command or an attached system."""

from __future__ import annotations

import re
from collections.abc import Sequence

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.processes import (
    CPU_IS_BOUND,
    PEAK_IS_BOUND,
    SWITCHES_ARE_BOUND,
    Executed,
    Row,
    Value,
    mean_of,
)
from wattwire.model.metrics import is_printed
from wattwire.report import figures
from wattwire.report.figures.style import axis_title
from wattwire.report.page_parts import TITLE, HeadLine, PageData, PagePart
from wattwire.report.parts import Column, Figure, Section, Table, shown
from wattwire.report.print.processes import failed, headline, subject, whole_figures
from wattwire.report.words.phrases import Phrases
from wattwire.stats import Band

PHRASES = Phrases(
    "processes",
    {
        "title": "Processes",
        "whole": "Values of the whole command",
        "whole_of": "Values of {variant}",
        "whole_note": (
            "Each repeat has one value, of all processes together. ± is the standard deviation of "
            "the repeats. From three repeats on, the mean has its 95 % t interval. ≥ marks a lower "
            "bound."
        ),
        "repeats": "Repeats: {figure}",
        "caption": (
            "Each dot is a repeat. From {runs_min} repeats on, the box shows the quartiles, and "
            "the line extends from the lowest to the highest repeat."
        ),
        "table": "Costs of the processes of the measured trees",
        "table_of": "Costs of the processes of {variant}",
        "note": (
            "A row of several processes contains the sums of their CPU time, switches and energy, "
            "and the memory and threads of one process (mean and maximum). Values are means over "
            "the runs; CPU time and energy have their 95 % confidence intervals. ≥ marks a lower "
            "bound: of the peak memory of several processes, of the last scan of a process that "
            "ended without final figures, and of switches without those of ended threads. A row "
            "in brackets is no process: it has the CPU time of several that no row of a process "
            "contains."
        ),
    },
)
COSTS_DRAWN = ("window_s", "cpu_s")
CAPTION = PHRASES("caption", runs_min=figures.BOX_RUNS_MIN)
COLUMNS = (
    Column("cpu_s", "CPU time", "measured", "s"),
    Column("cpu_user_s", "user", "measured", "s"),
    Column("cpu_system_s", "kernel", "measured", "s"),
    Column("cpu_share", "cores used", "measured"),
    Column("memory_mean_kib", "mean", "measured", "KiB", group="memory"),
    Column("memory_peak_kib", "highest", "measured", "KiB", group="memory"),
    Column("pss_mean_kib", "proportional", "measured", "KiB", group="memory"),
    Column("threads_max", "threads, highest", "measured"),
    Column("voluntary_switches", "voluntary", "measured", group="switches"),
    Column("involuntary_switches", "involuntary", "measured", group="switches"),
    Column("energy_j", "energy", "measured", "J"),
)
WHOLE = (
    Column("figure", "value"),
    Column("unit", "unit"),
    Column("mean", "mean", "measured"),
    Column("sd", "±", "measured"),
    Column("lowest", "lowest", "measured"),
    Column("highest", "highest", "measured"),
    Column("repeats", "repeats", "measured"),
)
BOUND_BY = {
    "cpu_s": CPU_IS_BOUND,
    "memory_peak_kib": PEAK_IS_BOUND,
    "voluntary_switches": SWITCHES_ARE_BOUND,
    "involuntary_switches": SWITCHES_ARE_BOUND,
}
WITH_INTERVAL = ("cpu_s", "energy_j")
ESTIMATE = Column("energy_estimate", "energy, modelled", "estimate", "J")


def section(evidence: Evidence) -> Section | None:
    """Return the section on processes, or None for a campaign of nodes."""
    tables = Executed.of(evidence.reader)
    if not tables:
        return None
    part = Section("processes", PHRASES("title"))
    for executed in tables:
        part.parts += [_whole_table(executed), _table(executed)]
    part.parts[1:1] = repeats_drawn(tables)
    return part


def repeats_drawn(tables: Sequence[Executed]) -> list[Figure]:
    """Return a strip of repeats of each printed figure, of the wall time and the CPU time."""
    names = [figures.drawable(t.variant or subject(t.request)) for t in tables]
    wanted = {figure.key: figure for t in tables for figure in whole_figures(t)}
    drawings = []
    for key, figure in wanted.items():
        points = [
            {"value": figures.rounded(value), "run": run, "panel": ""}
            | dict.fromkeys(("colour", "row", "treatment"), name)
            for t, name in zip(tables, names, strict=True)
            for run, value in t.values_by_run(key)
        ]
        is_drawn = key in COSTS_DRAWN or is_printed(key.partition(".")[0])
        if is_drawn and len(points) > len(tables):
            value = axis_title(figure.title, figure.unit, "linear")
            rows = figures.Rows.of_treatments(names)
            chart = figures.box_chart(points, names, "", [], 1, value, "linear", rows)
            name = re.sub(r"[^a-z0-9]+", "-", key.lower()).strip("-")
            title = PHRASES("repeats", figure=figure.title)
            drawings.append(Figure(f"repeats-{name}", title, CAPTION, chart))
    return drawings


def _whole_table(executed: Executed) -> Table:
    rows = []
    for figure in whole_figures(executed):
        mean = mean_of(figure.values)
        rows.append({
            "figure": figure.title,
            "unit": figure.unit,
            "mean": f"≥ {shown(mean)}" if figure.is_bound else mean,
            "sd": figure.sd,
            "lowest": min(figure.values),
            "highest": max(figure.values),
            "repeats": len(figure.values),
        })  # fmt: skip
    variant = executed.variant
    title = PHRASES("whole_of", variant=variant) if variant else PHRASES("whole")
    name = f"whole-{variant}" if variant else "whole"
    has_repeats = len(executed.summary) > 1
    columns = WHOLE if has_repeats else (*WHOLE[:3], WHOLE[-1])
    return Table(name, title, columns, rows, PHRASES("whole_note"))


def _table(executed: Executed) -> Table:
    columns = [c for c in COLUMNS if any(row.figures.get(c.key) for row in executed.rows)]
    known = [Column("process", "process"), Column("count", "processes per run", "measured")]
    rows = [_cells(row, columns) for row in executed.rows]
    estimate = [ESTIMATE] if any(row[ESTIMATE.key] for row in rows) else []
    variant = executed.variant
    title = PHRASES("table_of", variant=variant) if variant else PHRASES("table")
    name = f"processes-{variant}" if variant else "processes"
    return Table(name, title, [*known, *columns, *estimate], rows, PHRASES("note"))


def _cells(row: Row, columns: list[Column]) -> dict[str, Value | Band | str]:
    low, high = row.mean("energy_estimate_low_j"), row.mean("energy_estimate_high_j")
    estimate = None if low is None or high is None else Band(low, high)
    # Intervals in all columns would need twice the width of the page.
    values: dict[str, Value | str] = {
        column.key: row.interval(column.key)
        if column.key in WITH_INTERVAL
        else row.mean(column.key)
        for column in columns
    }
    for key, flag in BOUND_BY.items():
        value = values.get(key)
        if value is not None and row.is_bound(flag):
            values[key] = f"≥ {shown(value)}"
    return {"process": row.name, "count": row.count, **values, ESTIMATE.key: estimate}


def _head(data: PageData) -> list[HeadLine]:
    tables = Executed.of(data.evidence.reader)
    if len(tables) == 1:
        return [HeadLine(TITLE, headline(tables[0]))]
    # With variants, the answer is their comparison, which follows the failures.
    return [HeadLine(TITLE, text) for text in map(failed, tables) if text]


PART = PagePart(15, lambda data: [section(data.evidence)], _head)
