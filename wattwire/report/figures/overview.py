"""Draw the first response in several kinds of chart."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from wattwire.analysis.carried import carried
from wattwire.analysis.charts import titles_of
from wattwire.analysis.dataset import Evidence, all_levels, levels_run, per_treatment
from wattwire.analysis.responses import CPU, LATENCY_P50, Response
from wattwire.model import words
from wattwire.report import figures
from wattwire.report.figures.style import Spec, axis_title
from wattwire.report.parts import Figure

NAME_MAX = 80
"""Length of the name of a column in a file's name, which many systems limit to 255 bytes."""

PANELS_MAX, PER_ROW, LEVELS_MAX = 6, 3, 12


@dataclass(frozen=True)
class Layout:
    """The factors on colour (or rows), axis and panels. None means that no factor is used."""

    tone: str
    across: str | None
    panel: str | None


def layout_of(evidence: Evidence) -> Layout:
    """Return the layout, with the primary factor on colour, and others on axis and panels."""
    tone = evidence.primary if evidence.primary in evidence.varied else evidence.varied[0]
    other_factors = [name for name in evidence.varied if name != tone]
    counts = {name: len(levels_run(evidence, name)) for name in other_factors}
    axis_factors = [name for name in other_factors if 1 < counts[name] <= LEVELS_MAX]
    # Lines need ordered levels, so numeric factors are preferred, then factors with many levels.
    across = max(
        axis_factors, key=lambda name: (_is_numeric(evidence, name), counts[name]), default=None
    )
    panel_factors = [name for name in axis_factors if name != across and counts[name] <= PANELS_MAX]
    panel = "pattern" if "pattern" in panel_factors else next(iter(panel_factors), None)
    return Layout(tone, across, panel)


def _is_numeric(evidence: Evidence, factor: str) -> bool:
    levels = levels_run(evidence, factor)
    return all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in levels)


def drawn(
    evidence: Evidence, responses: tuple[Response, ...], captions: dict[str, str]
) -> list[Figure]:
    """Return figures of the first response. The scatter plot also uses the second response.

    `captions` maps the kind of a figure to its caption. The result is empty without points.
    """
    first, second = responses[0], responses[1] if len(responses) > 1 else None
    layout = layout_of(evidence)
    points = _points(evidence, layout, first, second)
    if not points:
        return []
    panels = _panels(evidence, layout, points)
    tones = titles_of(evidence, layout.tone)
    tone = words.factor_title(layout.tone)
    groups: tuple[Any, ...] = (points, tones, tone, panels, PER_ROW)
    value, scale = _axis(first, [point["value"] for point in points])
    rows = figures.Rows.of_treatments(_rows(evidence, layout, points))
    charts: list[tuple[str, str, Spec]] = [_distribution(groups, first, value, scale, rows)]
    means_note = ""
    if layout.across is not None:
        matched, means_note = _matched(evidence, layout, points)
        across = (words.factor_title(layout.across), titles_of(evidence, layout.across))
        title = f"{_capital(first.title)} by {tone} and {across[0]}"
        chart = figures.interaction_chart(
            matched, tones, tone, across, panels, PER_ROW, value, scale
        )
        charts.append(("interaction", f"{title}: means", chart))
        down = (tone, tones)
        chart = figures.heat_chart(matched, across, down, panels, PER_ROW, value, scale)
        charts.append(("heat", f"{title}: every cell", chart))
    points_with_x = [point for point in points if point["x"] is not None]
    if second is not None and points_with_x:
        title, log = _axis(second, [point["x"] for point in points_with_x])
        chart = figures.scatter_chart(
            points_with_x, tones, tone, panels, PER_ROW, (title, value), (log, scale)
        )
        charts.append(("scatter", f"{_capital(first.title)} against {second.title}", chart))
    # The audit trail of a measured campaign already shows these two responses in run order.
    if evidence.imported or first not in (CPU, LATENCY_P50):
        chart = figures.order_chart(points, tones, tone, value, scale)
        charts.append(("order", f"{_capital(first.title)} in the order of execution", chart))
    missing = evidence.usable.height - sum(point["used"] == "valid" for point in points)
    missing_note = f" Without this value: {words.plural(missing, 'valid run')}." if missing else ""
    name = _file_name(first.column)
    notes = {kind: missing_note for kind, _, _ in charts}
    notes |= {kind: means_note + missing_note for kind in ("interaction", "heat")}
    return [
        Figure(f"{kind}-{name}", title, captions[kind] + notes[kind], chart)
        for kind, title, chart in charts
    ]


def _file_name(column: str) -> str:
    """Return a part of a file's name; long names end with a checksum, so that they differ."""
    name = re.sub(r"[^a-z0-9]+", "-", column.lower()).strip("-")
    if len(name) <= NAME_MAX:
        return name
    return f"{name[:NAME_MAX]}-{zlib.crc32(column.encode()):08x}"


def _matched(
    evidence: Evidence, layout: Layout, points: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], str]:
    """Return the points that means by two factors may pool, and a note on the omitted points.

    A cell is a level of the colour × a level of the axis. Within a panel, a combination of the
    other factors is used only if every cell contains it. Otherwise, cells would pool different
    combinations. If no combination is in every cell, each colour uses the combinations that all its
    cells contain.
    """
    others = [
        name for name in evidence.varied if name not in (layout.tone, layout.across, layout.panel)
    ]
    if not others:
        return points, ""
    other_levels = {
        run: tuple(str(levels.get(name)) for name in others)
        for run, levels in (
            (point["run"], all_levels(evidence.runs[point["run"]])) for point in points
        )
    }
    kept: list[dict[str, Any]] = []
    for panel in dict.fromkeys(point["panel"] for point in points):
        in_panel = [point for point in points if point["panel"] == panel]
        complete = _in_every_cell(in_panel, other_levels)
        if not complete:
            for tone in dict.fromkeys(point["colour"] for point in in_panel):
                of_tone = [point for point in in_panel if point["colour"] == tone]
                complete += _in_every_cell(of_tone, other_levels)
        kept += complete
    if not kept:
        return points, " Cells pool different levels of the other factors: compare with care."
    titles = words.listed([words.factor_title(name) for name in others])
    left_out = len(points) - len(kept)
    note = f" Means are over the levels of {titles} that every cell has"
    note += f"; {words.plural(left_out, 'other run')} omitted." if left_out else "."
    return kept, note


def _in_every_cell(
    points: list[dict[str, Any]], other_levels: dict[str, tuple[str, ...]]
) -> list[dict[str, Any]]:
    """Return the points whose combination of other levels occurs in every cell."""
    cells: dict[tuple[str, str], set[tuple[str, ...]]] = {}
    for point in points:
        cell = (point["colour"], point["across"])
        cells.setdefault(cell, set()).add(other_levels[point["run"]])
    common = set.intersection(*cells.values())
    return [point for point in points if other_levels[point["run"]] in common]


def _distribution(
    groups: tuple[Any, ...], response: Response, value: str, scale: str, rows: figures.Rows
) -> tuple[str, str, Spec]:
    """Return kind, title and chart of the distribution.

    The chart has violins if every row has enough runs, and boxes otherwise.
    """
    counts: dict[tuple[str, str], int] = {}
    for point in groups[0]:
        key = (point["row"], point["panel"])
        counts[key] = counts.get(key, 0) + 1
    is_violin = min(counts.values()) >= figures.VIOLIN_RUNS_MIN
    kind = "violin" if is_violin else "box"
    draw: Callable[..., Spec] = figures.violin_chart if is_violin else figures.box_chart
    chart = draw(*groups, value, scale, rows)
    return kind, f"{_capital(response.title)}, every valid run", chart


def _points(
    evidence: Evidence, layout: Layout, first: Response, second: Response | None
) -> list[dict[str, Any]]:
    """Return one point per valid and planned run with a value of `first`, in run order."""
    position_of = {
        entry["run"]: position for position, entry in enumerate(evidence.planned, start=1)
    }
    block_starts: dict[int, int] = {}
    block: Any = None
    for position, entry in enumerate(evidence.planned, start=1):
        block_starts[position] = (
            position if position == 1 or entry.get("block") != block else block_starts[position - 1]
        )
        block = entry.get("block")
    values = carried(evidence.usable, first.column)
    second_values = carried(evidence.usable, second.column) if second else [math.nan] * len(values)
    names = per_treatment(evidence, evidence.usable, partial(_names, evidence, layout))
    points = []
    rows = zip(evidence.usable["run"].to_list(), values, second_values, names, strict=True)
    for run, value, second_value, run_names in rows:
        if not math.isfinite(value) or run not in position_of:
            continue
        first_of_block = block_starts[position_of[run]]
        point: dict[str, Any] = {
            "run": run,
            "order": position_of[run],
            "edge": first_of_block - 0.5 if first_of_block > 1 else None,
            "used": "valid",
            "value": figures.rounded(float(value)),
            "x": figures.rounded(float(second_value)) if math.isfinite(second_value) else None,
            **run_names,
        }
        point["y"] = point["value"]
        points.append(point)
    return sorted(points, key=lambda point: point["order"])


def _names(evidence: Evidence, layout: Layout, levels: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts of a treatment's points.

    `row` is its name in its panel, from its level of the colour and the other levels.
    """
    tone = evidence.title(layout.tone, levels.get(layout.tone))
    shown_elsewhere = [name for name in (layout.tone, layout.panel) if name]
    row = ", ".join(filter(None, (tone, evidence.treatment_title(levels, shown_elsewhere))))
    panel = evidence.title(layout.panel, levels.get(layout.panel)) if layout.panel else ""
    names = {"colour": tone, "down": tone, "row": row, "panel": panel}
    names["treatment"] = evidence.treatment_title(levels)
    if layout.across:
        names["across"] = evidence.title(layout.across, levels.get(layout.across))
    return names


def _rows(evidence: Evidence, layout: Layout, points: list[dict[str, Any]]) -> list[str]:
    """Return the ordered row names, with the levels of the colour next to each other."""
    order = [name for name in evidence.varied if name != layout.tone] + [layout.tone]
    place = {name: {str(v): n for n, v in enumerate(levels_run(evidence, name))} for name in order}

    def position(point: dict[str, Any]) -> list[int]:
        levels = all_levels(evidence.runs[point["run"]])
        return [place[name].get(str(levels.get(name)), 0) for name in order]

    return list(dict.fromkeys(point["row"] for point in sorted(points, key=position)))


def _panels(evidence: Evidence, layout: Layout, points: list[dict[str, Any]]) -> list[str]:
    if layout.panel is None:
        return []
    present = {point["panel"] for point in points}
    return [title for title in titles_of(evidence, layout.panel) if title in present]


def _axis(response: Response, values: list[float]) -> tuple[str, str]:
    """Return the axis title with unit, and the scale.

    The scale is "log" if all values are positive, except for shares.
    """
    scale = "log" if min(values) > 0 and not response.share else "linear"
    return axis_title(response.title, response.unit, scale), scale


def _capital(title: str) -> str:
    return title[:1].upper() + title[1:]
