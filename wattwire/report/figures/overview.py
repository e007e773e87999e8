"""The first response drawn in every usual way: figures to print, and where to begin looking."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wattwire.analysis.dataset import Evidence, all_levels, levels_run
from wattwire.analysis.responses import CPU, LATENCY_P50, Response
from wattwire.model import words
from wattwire.model.derived import column
from wattwire.report import figures
from wattwire.report.figures.panels import titles_of
from wattwire.report.figures.style import Spec
from wattwire.report.parts import Figure

PANELS_MAX, PER_ROW, LEVELS_MAX = 6, 3, 12


@dataclass(frozen=True)
class Layout:
    """Which factor is told by what: colour (or rows), the axis, panels; None where none is left."""

    tone: str
    across: str | None
    panel: str | None


def layout_of(evidence: Evidence) -> Layout:
    """The primary factor by colour, the longest one along the axis, a third one in panels."""
    tone = evidence.primary if evidence.primary in evidence.varied else evidence.varied[0]
    others = [name for name in evidence.varied if name != tone]
    counts = {name: len(levels_run(evidence, name)) for name in others}
    along = [name for name in others if 1 < counts[name] <= LEVELS_MAX]
    # Lines along an axis want an order: numbers before names, then as many as there are.
    across = max(along, key=lambda name: (_numbers(evidence, name), counts[name]), default=None)
    left = [name for name in along if name != across and counts[name] <= PANELS_MAX]
    panel = "pattern" if "pattern" in left else next(iter(left), None)
    return Layout(tone, across, panel)


def _numbers(evidence: Evidence, factor: str) -> bool:
    levels = levels_run(evidence, factor)
    return all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in levels)


def drawn(
    evidence: Evidence, responses: tuple[Response, ...], says: dict[str, str]
) -> list[Figure]:
    """Figures of the first of `responses`, the last one against the second; `says` by kind."""
    first, other = responses[0], responses[1] if len(responses) > 1 else None
    layout = layout_of(evidence)
    points = _points(evidence, layout, first, other)
    if not points:
        return []
    panels = _panels(evidence, layout, points)
    tones = titles_of(evidence, layout.tone)
    tone = words.factor_title(layout.tone)
    groups: tuple[Any, ...] = (points, tones, tone, panels, PER_ROW)
    value, scale = _axis(first, [point["value"] for point in points])
    made: list[tuple[str, str, Spec]] = [_spread(groups, first, value, scale)]
    if layout.across is not None:
        across = (words.factor_title(layout.across), titles_of(evidence, layout.across))
        title = f"{_capital(first.title)} by {tone} and {across[0]}"
        chart = figures.interaction_chart(
            points, tones, tone, across, panels, PER_ROW, value, scale
        )
        made.append(("interaction", f"{title}: means", chart))
        down = (tone, tones)
        chart = figures.heat_chart(points, across, down, panels, PER_ROW, value, scale)
        made.append(("heat", f"{title}: every cell", chart))
    both = [point for point in points if point["x"] is not None]
    if other is not None and both:
        title, log = _axis(other, [point["x"] for point in both])
        chart = figures.scatter_chart(
            both, tones, tone, panels, PER_ROW, (title, value), (log, scale)
        )
        made.append(("scatter", f"{_capital(first.title)} against {other.title}", chart))
    if evidence.imported or first not in (CPU, LATENCY_P50):  # those the audit trail draws
        chart = figures.order_chart(points, tones, tone, value, scale)
        made.append(("order", f"{_capital(first.title)} in the order of execution", chart))
    missing = evidence.usable.height - sum(point["used"] == "usable" for point in points)
    gap = f" Without such a value: {words.plural(missing, 'usable run')}." if missing else ""
    name = re.sub(r"[^a-z0-9]+", "-", first.column.lower()).strip("-")
    return [Figure(f"{kind}-{name}", title, says[kind] + gap, chart) for kind, title, chart in made]


def _spread(
    groups: tuple[Any, ...], response: Response, value: str, scale: str
) -> tuple[str, str, Spec]:
    """Violins where every group has runs enough for one, else boxes."""
    counts: dict[tuple[str, str], int] = {}
    for point in groups[0]:
        key = (point["colour"], point["panel"])
        counts[key] = counts.get(key, 0) + 1
    enough = min(counts.values()) >= figures.VIOLIN_RUNS_MIN
    kind = "violin" if enough else "box"
    draw: Callable[..., Spec] = figures.violin_chart if enough else figures.box_chart
    chart = draw(*groups, value, scale)
    return kind, f"{_capital(response.title)}, every usable run", chart


def _points(
    evidence: Evidence, layout: Layout, first: Response, other: Response | None
) -> list[dict[str, Any]]:
    """A point a usable run that carries `first`, in the order of execution."""
    place = {entry["run"]: at for at, entry in enumerate(evidence.planned, start=1)}
    begins: dict[int, int] = {}
    block: Any = None
    for at, entry in enumerate(evidence.planned, start=1):
        begins[at] = at if at == 1 or entry.get("block") != block else begins[at - 1]
        block = entry.get("block")
    values = column(evidence.usable, first.column)
    others = column(evidence.usable, other.column) if other else [math.nan] * len(values)
    points = []
    for run, value, beside in zip(evidence.usable["run"], values, others, strict=True):
        if not math.isfinite(value) or run not in place:
            continue
        first_of_block = begins[place[run]]
        levels = all_levels(evidence.runs[run])
        tone = evidence.title(layout.tone, levels.get(layout.tone))
        point: dict[str, Any] = {
            "run": run,
            "order": place[run],
            "edge": first_of_block - 0.5 if first_of_block > 1 else None,
            "used": "usable",
            "treatment": evidence.treatment_title(levels),
            "value": figures.rounded(float(value)),
            "x": figures.rounded(float(beside)) if math.isfinite(beside) else None,
            "colour": tone,
            "down": tone,
            "panel": evidence.title(layout.panel, levels.get(layout.panel)) if layout.panel else "",
        }
        point["y"] = point["value"]
        if layout.across:
            point["across"] = evidence.title(layout.across, levels.get(layout.across))
        points.append(point)
    return sorted(points, key=lambda point: point["order"])


def _panels(evidence: Evidence, layout: Layout, points: list[dict[str, Any]]) -> list[str]:
    if layout.panel is None:
        return []
    present = {point["panel"] for point in points}
    return [title for title in titles_of(evidence, layout.panel) if title in present]


def _axis(response: Response, values: list[float]) -> tuple[str, str]:
    """An axis' title with its unit and its scale: log wherever every value is above zero."""
    scale = "log" if min(values) > 0 and not response.share else "linear"
    told = [response.unit] if response.unit else []
    told += ["log scale"] if scale == "log" else []
    return response.title + (f" ({', '.join(told)})" if told else ""), scale


def _capital(title: str) -> str:
    return title[:1].upper() + title[1:]
