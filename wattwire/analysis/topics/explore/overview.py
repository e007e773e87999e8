"""Compute the points of the first response of all runs, which several charts show."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from wattwire.analysis.carried import carried
from wattwire.analysis.charts import LINEAR, LOG, VIOLIN_RUNS_MIN, Chart, Point, rounded, titles_of
from wattwire.analysis.dataset import Evidence, all_levels, levels_run, per_treatment
from wattwire.analysis.responses import Response
from wattwire.analysis.topics.explore.run_table import Layout
from wattwire.model import words
from wattwire.model.treatment import are_numbers

NAME_MAX = 80
"""Length of the name of a column in a file's name, which many systems limit to 255 bytes."""
PANELS_MAX, PER_ROW, LEVELS_MAX = 6, 3, 12
BOX, VIOLIN = "box", "violin"


@dataclass(frozen=True)
class Axis:
    """A response on an axis, which is LOG if all values are positive, except for shares."""

    response: Response
    scale: str

    @property
    def is_log(self) -> bool:
        """Whether the axis is logarithmic."""
        return self.scale == LOG


@dataclass(frozen=True)
class Means:
    """The levels on the axis of means by two factors, and the points that the means pool.

    `pooled` has the indices of the points, None for all points. `others` are the titles of the
    factors over whose common levels the means are. With `is_unequal`, no combination of their
    levels is in every cell, so that cells pool different levels.
    """

    title: str
    levels: tuple[str, ...]
    pooled: tuple[int, ...] | None = None
    others: tuple[str, ...] = ()
    omitted: int = 0
    is_unequal: bool = False


@dataclass(frozen=True)
class Overview:
    """The first response of the valid runs that have it, in run order.

    `kind` is the chart of its distribution: VIOLIN if every row has enough runs, else BOX. `value`
    is on the axis of all charts, and `other` is the second response, if any run has both. `means`
    is None without a factor for an axis. `file_name` distinguishes the files of the charts.
    `missing` valid runs have no value. With `has_order`, no other section has the run order.
    """

    kind: str
    value: Axis
    other: Axis | None
    file_name: str
    points: Sequence[Point]
    colours: tuple[str, ...]
    colour_title: str
    rows: tuple[str, ...]
    panels: tuple[str, ...]
    means: Means | None
    missing: int
    has_order: bool

    @property
    def distribution(self) -> Chart:
        """All points in rows."""
        return self._chart(self.points, x_scale=self.value.scale)

    @cached_property
    def averaged(self) -> Chart:
        """The points of means by two factors; charts with the same points share them."""
        means = self.means
        if means is None:
            return Chart()
        points = self.points
        if means.pooled is not None:
            points = [points[index] for index in means.pooled]
        return self._chart(points, across=means.levels, y_scale=self.value.scale)

    @property
    def against(self) -> Chart:
        """The points with both responses."""
        points = [point for point in self.points if point["x"] is not None]
        x_scale = self.other.scale if self.other else LOG
        return self._chart(points, x_scale=x_scale, y_scale=self.value.scale)

    @property
    def in_order(self) -> Chart:
        """All points in run order."""
        return self._chart(self.points, y_scale=self.value.scale)

    def _chart(self, points: Sequence[Point], **more: Any) -> Chart:
        groups = (self.colours, self.colour_title, self.rows, self.panels, PER_ROW)
        return Chart(points, *groups, **more)


def overview(
    evidence: Evidence, first: Response, second: Response | None, in_audit: Response | None
) -> Overview | None:
    """Return the points of the first response, or None without any.

    `in_audit` is the response whose run order the audit trail shows, if any.
    """
    layout = layout_of(evidence)
    points = _points(evidence, layout, first, second)
    if not points:
        return None
    second_values = [point["x"] for point in points if point["x"] is not None]
    valid = sum(point["used"] == "valid" for point in points)
    return Overview(
        _kind(points),
        _axis(first, [point["value"] for point in points]),
        _axis(second, second_values) if second is not None and second_values else None,
        _file_name(first.column),
        points,
        tuple(titles_of(evidence, layout.tone)),
        words.factor_title(layout.tone),
        tuple(_rows(evidence, layout, points)),
        tuple(_panels(evidence, layout, points)),
        _means(evidence, layout, points),
        evidence.usable.height - valid,
        first != in_audit,
    )


def layout_of(evidence: Evidence) -> Layout:
    """Return the layout, with the primary factor on colour, and others on axis and panels."""
    tone = evidence.primary if evidence.primary in evidence.varied else evidence.varied[0]
    other_factors = [name for name in evidence.varied if name != tone]
    counts = {name: len(levels_run(evidence, name)) for name in other_factors}
    axis_factors = [name for name in other_factors if 1 < counts[name] <= LEVELS_MAX]
    # Lines need ordered levels, so numeric factors are preferred, then factors with many levels.
    across = max(
        axis_factors,
        key=lambda name: (are_numbers(levels_run(evidence, name)), counts[name]),
        default=None,
    )
    panel_factors = [name for name in axis_factors if name != across and counts[name] <= PANELS_MAX]
    panel = "pattern" if "pattern" in panel_factors else next(iter(panel_factors), None)
    return Layout(tone, across, panel)


def _file_name(column: str) -> str:
    """Return a part of a file's name; long names end with a checksum, so that they differ."""
    name = re.sub(r"[^a-z0-9]+", "-", column.lower()).strip("-")
    if len(name) <= NAME_MAX:
        return name
    return f"{name[:NAME_MAX]}-{zlib.crc32(column.encode()):08x}"


def _means(evidence: Evidence, layout: Layout, points: Sequence[Point]) -> Means | None:
    """Return the points that means by two factors may pool.

    A cell is a level of the colour × a level of the axis. Within a panel, a combination of the
    other factors is used only if every cell contains it. Otherwise, cells would pool different
    combinations. If no combination is in every cell, each colour uses the combinations that all its
    cells contain.
    """
    if layout.across is None:
        return None
    title = words.factor_title(layout.across)
    levels = tuple(titles_of(evidence, layout.across))
    shown = (layout.tone, layout.across, layout.panel)
    others = [name for name in evidence.varied if name not in shown]
    if not others:
        return Means(title, levels)
    other_levels = [
        tuple(str(of_run.get(name)) for name in others)
        for of_run in (all_levels(evidence.runs[point["run"]]) for point in points)
    ]
    kept: list[int] = []
    for panel in dict.fromkeys(point["panel"] for point in points):
        in_panel = [index for index, point in enumerate(points) if point["panel"] == panel]
        complete = _in_every_cell(points, in_panel, other_levels)
        if not complete:
            for tone in dict.fromkeys(points[index]["colour"] for index in in_panel):
                of_tone = [index for index in in_panel if points[index]["colour"] == tone]
                complete += _in_every_cell(points, of_tone, other_levels)
        kept += complete
    if not kept:
        return Means(title, levels, is_unequal=True)
    titles = tuple(words.factor_title(name) for name in others)
    return Means(title, levels, tuple(kept), titles, len(points) - len(kept))


def _in_every_cell(
    points: Sequence[Point], indices: Sequence[int], other_levels: Sequence[tuple[str, ...]]
) -> list[int]:
    """Return those of `indices` whose combination of other levels occurs in every cell."""
    cells: dict[tuple[str, str], set[tuple[str, ...]]] = {}
    for index in indices:
        cell = (points[index]["colour"], points[index]["across"])
        cells.setdefault(cell, set()).add(other_levels[index])
    common = set.intersection(*cells.values())
    return [index for index in indices if other_levels[index] in common]


def _kind(points: Sequence[Point]) -> str:
    counts: dict[tuple[str, str], int] = {}
    for point in points:
        key = (point["row"], point["panel"])
        counts[key] = counts.get(key, 0) + 1
    return VIOLIN if min(counts.values()) >= VIOLIN_RUNS_MIN else BOX


def _points(
    evidence: Evidence, layout: Layout, first: Response, second: Response | None
) -> list[Point]:
    """Return one point per valid and planned run with a value of `first`, in run order."""
    position_of = evidence.run_positions
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
        point: Point = {
            "run": run,
            "order": position_of[run],
            "edge": first_of_block - 0.5 if first_of_block > 1 else None,
            "used": "valid",
            "value": rounded(float(value)),
            "x": rounded(float(second_value)) if math.isfinite(second_value) else None,
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


def _rows(evidence: Evidence, layout: Layout, points: Sequence[Point]) -> list[str]:
    """Return the ordered row names, with the levels of the colour next to each other."""
    order = [name for name in evidence.varied if name != layout.tone] + [layout.tone]
    place = {name: {str(v): n for n, v in enumerate(levels_run(evidence, name))} for name in order}

    def position(point: Point) -> list[int]:
        levels = all_levels(evidence.runs[point["run"]])
        return [place[name].get(str(levels.get(name)), 0) for name in order]

    return list(dict.fromkeys(point["row"] for point in sorted(points, key=position)))


def _panels(evidence: Evidence, layout: Layout, points: Sequence[Point]) -> list[str]:
    if layout.panel is None:
        return []
    present = {point["panel"] for point in points}
    return [title for title in titles_of(evidence, layout.panel) if title in present]


def _axis(response: Response, values: Sequence[float]) -> Axis:
    is_log = min(values) > 0 and not response.share
    return Axis(response, LOG if is_log else LINEAR)
