"""Draw the medians of several responses as stacked bars, for example the hops of a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wattwire.analysis.charts import rounded
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.response_lines import Segment, medians_of
from wattwire.analysis.responses import Response
from wattwire.model import words
from wattwire.model.output_requests import ShownFigure
from wattwire.report.figures.fitting import LETTER_PX
from wattwire.report.figures.panels import REQUESTED_PER_ROW, group_panels, titles_present
from wattwire.report.figures.style import (
    GAP_PX,
    HEAT,
    NAMES_PX,
    PALETTE,
    WIDTH_PX,
    Points,
    Spec,
    axis_title,
    colour,
    finish,
    hint,
    in_panels,
    nominal,
    panel_width,
    plain_number,
)
from wattwire.report.words.phrases import Phrase, Phrases, joined

PHRASES = Phrases(
    "stacked_figure",
    {
        "caption": (
            "Each segment is the median of a response over the runs of a bar, in the order of the "
            "legend. The length of a bar is the sum of these medians, which is not the median of "
            "the sum."
        ),
        "absent": (
            " A bar has no segment for a response without a finite value in its runs, such as a "
            "hop that a shorter pipeline lacks."
        ),
        "incomplete": (
            " {segments:plural segment} without a finite median of 0 or more omitted: {names}."
        ),
        "axis": "medians",
        "response": "response",
        "units": "The responses have different units ({units:listed}), so they cannot be stacked.",
        "no_value": "No run has a value of {responses:listed}.",
    },
)

ROW_PX = 30
COLUMN_GAP_PX = 28
"""Gap between the columns of the legend. A viewer without the figure's font uses wider letters."""
SYMBOL_PX = 40 + COLUMN_GAP_PX
"""Width of a legend's symbol with its margins and the gap to the next column, in px."""
NAMED_MAX = 3
"""Maximum number of omitted segments that the caption names."""


def stacked_figure(
    evidence: Evidence, spec: ShownFigure, responses: Sequence[Response], roles: Sequence[str]
) -> tuple[str, Spec] | Phrase:
    """Return the caption and the chart of a stacked figure, or the reason why there is none."""
    units = list(dict.fromkeys(response.unit for response in responses))
    titles = [response.title for response in responses]
    if len(units) > 1:
        return PHRASES("units", units=[unit or "1" for unit in units])
    by = spec.by or evidence.primary
    segments = medians_of(evidence, responses, roles, by)
    drawn = [segment for segment in segments if segment.median is not None]
    if not drawn:
        return PHRASES("no_value", responses=titles)
    panels = group_panels([segment.group for segment in drawn])
    if isinstance(panels, Phrase):
        return panels
    points = [
        {
            "level": evidence.title(by, segment.group.level),
            "colour": segment.response.title,
            "value": rounded(segment.median or 0.0),
            "place": titles.index(segment.response.title),
            "runs": segment.runs,
            "panel": panels[segment.group],
        }
        for segment in drawn
    ]
    rows = titles_present(evidence, by, [str(point["level"]) for point in points])
    chart = stacked_chart(
        points, (words.factor_title(by), rows), titles, list(dict.fromkeys(panels.values())),
        REQUESTED_PER_ROW, axis_title(PHRASES("axis"), units[0]),
    )  # fmt: skip
    return joined([PHRASES("caption"), _omitted(evidence, by, segments)], ""), chart


def _omitted(evidence: Evidence, by: str, segments: Sequence[Segment]) -> Phrase | str:
    """Return sentences on the segments without a bar, or ""."""
    undrawn = [segment for segment in segments if segment.median is None]
    omitted = [segment for segment in undrawn if segment.runs]
    absent = PHRASES("absent") if len(omitted) < len(undrawn) else ""
    if not omitted:
        return absent
    names = [
        " ".join(
            filter(None, (evidence.title(by, it.group.level), it.group.others, it.response.title))
        )
        for it in omitted
    ]
    names_text = words.listed_first(names, NAMED_MAX)
    return joined([absent, PHRASES("incomplete", segments=len(omitted), names=names_text)], "")


def stacked_chart(
    points: Points,
    rows: tuple[str, Sequence[str]],
    domain: Sequence[str],
    panels: Sequence[str],
    per_row: int,
    value_title: str,
) -> Spec:
    """Return a chart of stacked bars with a row per level and a segment per response.

    Fields of the points: level, colour (the response), value, place (in the stack), panel, runs.
    `rows` is the title and the levels of the factor.
    """
    longest_px = LETTER_PX * max(map(len, domain), default=0) + SYMBOL_PX
    tint = colour(PHRASES("response"), domain)
    tint["legend"] = {
        "columns": max(1, int(WIDTH_PX / longest_px)),
        "columnPadding": COLUMN_GAP_PX,
        "labelLimit": WIDTH_PX,
    }
    if len(domain) > len(PALETTE):
        # Repeated colours would confuse segments; an ordered scheme shows their order.
        tint["scale"] = {"domain": list(domain), "scheme": HEAT}
    chart: dict[str, Any] = {
        "mark": {"type": "bar", "stroke": "white", "strokeWidth": 0.5},
        "encoding": {
            "y": nominal("level", *rows) | {"axis": {"labelLimit": NAMES_PX}},
            "x": {
                "field": "value", "type": "quantitative", "title": value_title, "stack": "zero",
                "axis": {"tickCount": 5, "labelExpr": plain_number("datum.value")},
            },
            "color": tint,
            "order": {"field": "place", "type": "quantitative"},
            "tooltip": [
                hint("level", rows[0], None), hint("colour", PHRASES("response"), None),
                hint("value", value_title), hint("runs", "runs", ",d"),
            ],
        },
        "width": panel_width(len(panels), per_row, NAMES_PX - GAP_PX),
        "height": {"step": ROW_PX},
    }  # fmt: skip
    return finish(in_panels(chart, panels, per_row), points)
