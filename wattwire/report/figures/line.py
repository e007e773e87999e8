"""Draw a response over a numeric factor as points and lines, with a sentence on each line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wattwire.analysis.charts import rounded
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.response_lines import LOG, Group, Line, Lines, lines_of
from wattwire.analysis.responses import Response
from wattwire.model import words
from wattwire.model.output_requests import ShownFigure
from wattwire.report.figures.panels import REQUESTED_PER_ROW, group_panels, titles_present
from wattwire.report.figures.style import (
    Points,
    Spec,
    axis_title,
    colour,
    dash,
    finish,
    highlight,
    hint,
    in_panels,
    number,
    panel_width,
    shape,
)
from wattwire.report.parts import Fold, Text
from wattwire.report.words.phrases import Phrase, Phrases, joined
from wattwire.stats import LinearFit

PHRASES = Phrases(
    "line_figure",
    {
        "caption": (
            "Points are {means} over the runs, with 95 % t intervals from three runs on. {fitted}"
        ),
        "geometric": "geometric means",
        "arithmetic": "means",
        "fitted": (
            "Lines are least-squares lines of the untransformed values within blocks.{curved}"
            "{connected}"
        ),
        "curved": " On a logarithmic axis, they look curved.",
        "connected": (
            " A dotted line connects the points if they deviate from the line or no line "
            "was fitted."
        ),
        "not_fitted": "No line was fitted; a dotted line connects the points.",
        "excluded": " Without a point: {reasons:listed 3}.",
        "sentences": "Slopes of the lines and lack of fit",
        "slope": (
            "{line}: slope {slope:interval}{unit} per {step}, intercept {intercept:interval}{unit} "
            "(95 % intervals, not simultaneous; {blocks:plural block}, {levels:plural level}). "
            "{lack_of_fit}"
        ),
        "unit": " {unit}",
        "no_lack_of_fit": (
            "No deviation from a line was detected (lack of fit: F({degrees}, {error_degrees}) = "
            "{statistic:number}, {p:p})."
        ),
        "lack_of_fit": (
            "The levels deviate from a line (lack of fit: F({degrees}, {error_degrees}) = "
            "{statistic:number}, {p:p}), so the slope is an average over the measured levels."
        ),
        "no_value": "No run has a comparable value of {response}.",
        "no_fit": "{line}: no line was fitted ({reason}).",
    },
)

ALARM = 0.05
"""Significance level of the lack of fit."""
SENTENCES_MAX = 4
"""Maximum number of sentences that the page does not collapse."""
CURVE_POINTS = 60
X_LOG_RATIO = 50.0
"""The factor's axis is logarithmic if its largest level exceeds this multiple of its smallest."""
TICKS_MAX = 12


def line_figure(
    evidence: Evidence, spec: ShownFigure, response: Response, roles: Sequence[str]
) -> tuple[str, Spec, list[Text | Fold]] | Phrase:
    """Return caption, chart and sentences of a line figure, or the reason why there is none."""
    by = spec.by or (evidence.primary if evidence.primary != spec.x else "")
    lines = lines_of(evidence, response, roles, spec.x, by, spec.scale)
    if not lines.lines:
        return PHRASES("no_value", response=response.title)
    panels = group_panels([line.group for line in lines.lines])
    if isinstance(panels, Phrase):
        return panels
    xs = [mean.x for line in lines.lines for mean in line.means]
    positive = bool(xs) and min(xs) > 0 and max(xs) > X_LOG_RATIO * min(xs)
    scales = ("log" if positive else "linear", "log" if lines.scale == LOG else "linear")
    title = words.factor_title(by) if by else ""
    names = {line.group: evidence.title(by, line.group.level) if by else "" for line in lines.lines}
    points = [
        point | {"colour": names[line.group] or response.title, "panel": panels[line.group]}
        for line in lines.lines
        for point in _points(line, scales)
    ]
    present = list(dict.fromkeys(point["colour"] for point in points))
    domain = titles_present(evidence, by, present) if by else [response.title]
    unit = words.FACTOR_UNITS.get(spec.x, "")
    across = axis_title(words.factor_title(spec.x), unit, scales[0])
    up = axis_title(response.title, response.unit, scales[1])
    chart = line_chart(
        points,
        domain,
        title,
        list(dict.fromkeys(panels.values())),
        REQUESTED_PER_ROW,
        (across, up),
        scales,
    )
    return _caption(lines, scales), chart, _sentences(lines, spec.x, response, names, panels)


def _points(line: Line, scales: tuple[str, str]) -> list[dict[str, Any]]:
    """Return the means, the points of the fitted line, and those of the line through the means.

    The field `part` distinguishes them.
    """
    points: list[dict[str, Any]] = []
    for mean in line.means:
        point = {"part": "mean", "x": mean.x, "y": rounded(mean.mean), "runs": mean.runs}
        if mean.interval is not None and (mean.interval.low > 0 or scales[1] != "log"):
            point |= {"low": rounded(mean.interval.low), "high": rounded(mean.interval.high)}
        points.append(point)
    path = [{"part": "path", "x": point["x"], "y": point["y"]} for point in points]
    if not isinstance(line.fit, LinearFit):
        return points + path
    # Below the points, a logarithmic axis would stretch a line that approaches zero.
    lowest = (
        min(point.get("low", point["y"]) for point in points) if scales[1] == "log" else -np.inf
    )
    space = np.geomspace if scales[0] == "log" else np.linspace
    xs = space(line.means[0].x, line.means[-1].x, CURVE_POINTS if "log" in scales else 2)
    fitted = [(float(x), line.fit.at(float(x))) for x in xs]
    points += [
        {"part": "fit", "x": rounded(x, 5), "y": rounded(y, 5)} for x, y in fitted if y >= lowest
    ]
    return points + path if _deviates(line) else points


def _deviates(line: Line) -> bool:
    return not isinstance(line.fit, LinearFit) or line.fit.lack_of_fit.p < ALARM


def _caption(lines: Lines, scales: tuple[str, str]) -> Phrase:
    fitted = [isinstance(line.fit, LinearFit) for line in lines.lines]
    sentence = PHRASES("not_fitted")
    if any(fitted):
        sentence = PHRASES(
            "fitted",
            curved=PHRASES("curved") if "log" in scales else "",
            connected=PHRASES("connected") if any(map(_deviates, lines.lines)) else "",
        )
    means = PHRASES("geometric" if lines.scale == LOG else "arithmetic")
    caption = PHRASES("caption", means=means, fitted=sentence)
    if not lines.excluded:
        return caption
    return joined([caption, PHRASES("excluded", reasons=list(map(str, lines.excluded)))], "")


def _sentences(
    lines: Lines,
    x: str,
    response: Response,
    names: Mapping[Group, str],
    panels: Mapping[Group, str],
) -> list[Text | Fold]:
    unit = PHRASES("unit", unit=response.unit) if response.unit else ""
    sentences = []
    for line in lines.lines:
        name = ", ".join(filter(None, (names[line.group], panels[line.group]))) or response.title
        fit = line.fit
        if not isinstance(fit, LinearFit):
            sentences.append(Text(PHRASES("no_fit", line=name, reason=str(fit))))
            continue
        test = fit.lack_of_fit
        lack_of_fit = PHRASES(
            "lack_of_fit" if _deviates(line) else "no_lack_of_fit",
            degrees=test.degrees, error_degrees=test.error_degrees,
            statistic=test.statistic, p=test.p,
        )  # fmt: skip
        sentences.append(
            Text(
                PHRASES(
                    "slope", line=name, slope=fit.slope, intercept=fit.intercept, unit=unit,
                    step=words.step(x), blocks=fit.block_count, levels=fit.level_count,
                    lack_of_fit=lack_of_fit,
                )
            )
        )  # fmt: skip
    if len(sentences) > SENTENCES_MAX:
        return [Fold(PHRASES("sentences"), sentences)]
    return list(sentences)


def line_chart(
    points: Points,
    domain: Sequence[str],
    colour_title: str,
    panels: Sequence[str],
    per_row: int,
    titles: tuple[str, str],
    scales: tuple[str, str],
) -> Spec:
    """Return a chart of means with intervals and lines over a number.

    Fields of the points: part, x, y, colour, panel; means also have runs and, with an interval, low
    and high. `part` is "mean", "fit" (a fitted line) or "path" (a line that connects the means).
    """
    selection, opacity = highlight()
    y = number("y", titles[1], scales[1])
    x = number("x", titles[0], scales[0])
    levels = sorted({point["x"] for point in points if point["part"] == "mean"})
    if len(levels) <= TICKS_MAX and scales[0] == "linear":
        x["axis"] = {**x["axis"], "values": levels, "tickCount": len(levels)}
    legend = {} if len(domain) > 1 else {"legend": None}
    shared = {"x": x, "color": colour(colour_title, domain) | legend, "opacity": opacity}
    tooltip = [
        hint("colour", colour_title or "response", None), hint("x", titles[0]),
        hint("y", titles[1]), hint("low", "95 % from"), hint("high", "to"),
        hint("runs", "runs", ",d"),
    ]  # fmt: skip

    def layer(part: str, mark: Spec, **encoding: Any) -> Spec:
        steps = [{"filter": f"datum.part === '{part}'"}]
        return {"transform": steps, "mark": mark, "encoding": shared | encoding}

    interval = layer("mean", {"type": "rule", "strokeWidth": 1.5}, y=y | {"field": "low"})
    interval["transform"].append({"filter": "isValid(datum.low)"})
    interval["encoding"]["y2"] = {"field": "high"}
    layers = [
        layer("path", {"type": "line", "strokeWidth": 1, "strokeDash": [1, 3]}, y=y),
        layer(
            "fit", {"type": "line", "strokeWidth": 1.7}, y=y,
            strokeDash=dash(colour_title, domain) | legend,
        ),
        interval,
        layer(
            "mean", {"type": "point", "filled": True, "size": 50, "opacity": 1}, y=y,
            shape=shape(colour_title, domain) | legend, tooltip=tooltip,
        )
        | {"params": [selection]},
    ]  # fmt: skip
    chart = {
        "layer": layers,
        "width": panel_width(len(panels), per_row),
        "height": 260 if len(panels) < 2 else 190,
    }
    return finish(in_panels(chart, panels, per_row), points)
