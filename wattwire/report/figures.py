"""Charts: one Vega-Lite spec each, drawn on the page and written as SVG and PDF alike."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

# Okabe & Ito, Color Universal Design (2008); yellow is left out: too faint on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
INK, MUTED, GRID = "#1b1f24", "#5a6572", "#e3e6ea"
FONT = "Inter, 'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', sans-serif"
LEGEND = "highlight"
POINTS = "points"


def finish(chart: Any, points: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The chart's spec in the page's style with its points, without any address in it."""
    styled = (
        chart.configure(font=FONT, background="white", padding=6, aria=False)
        .configure_axis(
            labelColor=INK,
            titleColor=MUTED,
            gridColor=GRID,
            domainColor="#b5bcc4",
            tickColor="#b5bcc4",
            labelFontSize=11,
            titleFontSize=11.5,
            titleFontWeight="normal",
            labelFontWeight="normal",
            titlePadding=8,
        )
        .configure_legend(
            labelColor=INK,
            titleColor=MUTED,
            titleFontWeight="normal",
            labelFontSize=11.5,
            titleFontSize=11.5,
            orient="top",
            symbolStrokeWidth=2.5,
            offset=6,
        )
        .configure_header(
            labelColor=INK,
            titleColor=MUTED,
            labelFontSize=12,
            labelFontWeight="bold",
            titleFontSize=11.5,
            titleFontWeight="normal",
            labelPadding=4,
        )
        .configure_view(stroke="#d5dae0")
    )
    spec: dict[str, Any] = styled.to_dict()
    spec.pop("$schema", None)
    _fill(spec, list(points))
    return spec


def _fill(part: Any, points: list[Mapping[str, Any]]) -> None:
    """Put the points where the chart names them; Altair would check every one for seconds."""
    if isinstance(part, dict):
        if part.get("data") == {"name": POINTS}:
            part["data"] = {"values": points}
        for value in [value for key, value in part.items() if key != "data"]:
            _fill(value, points)
    elif isinstance(part, list):
        for value in part:
            _fill(value, points)


def colour(name: str, title: str, domain: Sequence[str]) -> alt.Color:
    """A colour scale in the given order, always the same colour for the same level."""
    colours = [PALETTE[i % len(PALETTE)] for i in range(len(domain))]
    return alt.Color(
        f"{name}:N",
        title=title,
        sort=list(domain),
        scale=alt.Scale(domain=list(domain), range=colours),
    )


def rounded(value: float, digits: int = 4) -> float:
    """`value` to significant digits: keeps the page small."""
    return float(f"{value:.{digits}g}")


def ecdf_chart(
    points: Sequence[Mapping[str, Any]],
    domain: Sequence[str],
    colour_title: str,
    panels: Sequence[str],
    per_row: int,
) -> dict[str, Any]:
    """ECDF curves. Points: us, share, colour, panel."""
    chosen = alt.selection_point(fields=["colour"], bind="legend", name=LEGEND)
    high = len(panels) <= 2 * per_row
    chart = (
        alt.Chart(alt.NamedData(name=POINTS))
        .transform_calculate(share_percent="100 * datum.share")
        .mark_line(interpolate="step-after", strokeWidth=1.9)
        .encode(
            x=alt.X(
                "us:Q",
                title="latency (µs, log scale)",
                scale=alt.Scale(type="log", nice=False),
                axis=alt.Axis(tickCount=5, format="~s", labelOverlap=True),
            ),
            y=alt.Y(
                "share:Q",
                title="share arrived",
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(labelExpr="format(100 * datum.value, '~g') + ' %'", tickCount=4),
            ),
            color=colour("colour", colour_title, domain),
            opacity=alt.condition(chosen, alt.value(1.0), alt.value(0.12)),
            tooltip=[
                alt.Tooltip("colour:N", title=colour_title),
                alt.Tooltip("us:Q", title="latency (µs)", format=",.4~r"),
                alt.Tooltip("share_percent:Q", title="share arrived (%)", format=".4~r"),
            ],
        )
        .add_params(chosen)
        .properties(width=_panel(min(per_row, len(panels))), height=170 if high else 105)
    )
    return finish(_panels(chart, panels, per_row), points)


def runs_chart(
    points: Sequence[Mapping[str, Any]],
    domain: Sequence[str],
    colour_title: str,
    panels: Sequence[str],
    per_row: int,
    value_title: str,
) -> dict[str, Any]:
    """Every run as a dot and each group's geometric mean as a bar. Points: value, colour, …"""
    data = alt.NamedData(name=POINTS)
    x = alt.X(
        "value:Q",
        title=value_title,
        scale=alt.Scale(type="log", nice=False, padding=12),
        axis=alt.Axis(tickCount=5, format="~s", labelOverlap=True),
    )
    y = alt.Y("colour:N", title=None, sort=list(domain))
    base = alt.Chart()
    dots = base.mark_circle(size=42, opacity=0.55).encode(
        x=x,
        y=y,
        color=colour("colour", colour_title, domain).legend(None),
        yOffset=alt.YOffset("jitter:Q", scale=alt.Scale(domain=[-1, 1])),
        tooltip=[
            alt.Tooltip("run:N"),
            alt.Tooltip("treatment:N"),
            alt.Tooltip("value:Q", title=value_title, format=",.4~r"),
        ],
    )
    centre = base.mark_tick(thickness=2.5, color=INK, size=24).encode(
        x=alt.X("centre:Q", title=value_title),
        y=y,
        tooltip=[alt.Tooltip("centre:Q", title="geometric mean", format=",.4~r")],
    )
    layered = alt.layer(dots, centre, data=data).properties(
        width=_panel(min(per_row, len(panels))), height=34 * len(domain)
    )
    return finish(_panels(layered, panels, per_row), points)


def ratios_chart(points: Sequence[Mapping[str, Any]], margin: float | None) -> dict[str, Any]:
    """Ratios with intervals against 1. Points: name, response, ratio, low, high, order."""
    names = list(dict.fromkeys(p["name"] for p in points))
    x = alt.X(
        "ratio:Q",
        title="ratio to the baseline (log scale, 1 = the same)",
        scale=alt.Scale(type="log", nice=False, padding=14),
        axis=alt.Axis(tickCount=8, format="~g"),
    )
    y = alt.Y("name:N", title=None, sort=names, axis=alt.Axis(labelLimit=320))
    # The reference line rides on the same rows, so that it survives faceting.
    base = alt.Chart()
    line = base.mark_rule(color=MUTED, strokeDash=[4, 3]).encode(x=alt.X("one:Q"))
    whisker = base.mark_rule(strokeWidth=2.2, color=PALETTE[0]).encode(
        x=alt.X("low:Q"), x2="high:Q", y=y
    )
    dot = base.mark_point(filled=True, size=75, color=PALETTE[0], opacity=1).encode(
        x=x,
        y=y,
        tooltip=[
            alt.Tooltip("name:N", title="contrast"),
            alt.Tooltip("response:N"),
            alt.Tooltip("ratio:Q", format=".3~r"),
            alt.Tooltip("low:Q", format=".3~r"),
            alt.Tooltip("high:Q", format=".3~r"),
        ],
    )
    layers = [line, whisker, dot]
    if margin is not None:
        band = base.mark_rect(color=GRID, opacity=0.35).encode(
            x=alt.X("margin_low:Q"), x2="margin_high:Q"
        )
        layers.insert(0, band)
    responses = list(dict.fromkeys(p["response"] for p in points))
    chart = (
        alt.layer(*layers, data=alt.NamedData(name=POINTS))
        .properties(width=520, height=alt.Step(22))
        .facet(
            row=alt.Row(
                "response:N",
                title=None,
                sort=responses,
                header=alt.Header(
                    labelAngle=0, labelAnchor="start", labelOrient="top", labelPadding=2
                ),
            )
        )
        .resolve_scale(y="independent")
    )
    return finish(chart, points)


def sizes_chart(
    points: Sequence[Mapping[str, Any]],
    domain: Sequence[str],
    colour_title: str,
    panels: Sequence[str],
) -> dict[str, Any]:
    """Median latency against payload, joined by lines. Points: bytes, us, colour, panel."""
    chosen = alt.selection_point(fields=["colour"], bind="legend", name=LEGEND)
    base = alt.Chart(alt.NamedData(name=POINTS)).encode(
        x=alt.X(
            "bytes:Q",
            title="payload (B, log scale)",
            scale=alt.Scale(type="log", nice=False, padding=8),
            axis=alt.Axis(tickCount=6, format="~s", labelOverlap=True),
        ),
        y=alt.Y(
            "us:Q",
            title="median latency (µs, log scale)",
            scale=alt.Scale(type="log", nice=False, padding=8),
            axis=alt.Axis(tickCount=5, format="~s"),
        ),
        color=colour("colour", colour_title, domain),
        opacity=alt.condition(chosen, alt.value(1.0), alt.value(0.12)),
    )
    dots = base.mark_circle(size=50).encode(
        tooltip=[
            alt.Tooltip("colour:N", title=colour_title),
            alt.Tooltip("bytes:Q", title="payload (B)", format=",d"),
            alt.Tooltip("us:Q", title="median latency (µs)", format=",.4~r"),
        ]
    )
    lines = base.mark_line(strokeWidth=1.6)
    per_row = min(2, max(1, len(panels)))
    layered = (lines + dots.add_params(chosen)).properties(width=_panel(per_row), height=170)
    return finish(_panels(layered, panels, per_row), points)


def order_chart(
    points: Sequence[Mapping[str, Any]],
    domain: Sequence[str],
    colour_title: str,
    value_title: str,
) -> dict[str, Any]:
    """Runs in the order they were executed. Points: order, value, colour, used, run, block."""
    chosen = alt.selection_point(fields=["colour"], bind="legend", name=LEGEND)
    edges = sorted({p["edge"] for p in points if p["edge"] is not None})
    last = max(point["order"] for point in points)
    data = alt.NamedData(name=POINTS)
    dots = (
        alt.Chart(data)
        .mark_point(size=46, filled=True)
        .encode(
            x=alt.X(
                "order:Q",
                title="place in the order of execution",
                scale=alt.Scale(domain=[0.5, last + 0.5], nice=False),
                axis=alt.Axis(tickMinStep=1, format="d", grid=False),
            ),
            y=alt.Y(
                "value:Q",
                title=value_title,
                scale=alt.Scale(type="log", nice=False, padding=8),
                axis=alt.Axis(tickCount=5, format="~s"),
            ),
            color=colour("colour", colour_title, domain),
            shape=alt.Shape(
                "used:N",
                title="verdict",
                scale=alt.Scale(domain=["usable", "set aside"], range=["circle", "cross"]),
            ),
            opacity=alt.condition(chosen, alt.value(0.8), alt.value(0.1)),
            tooltip=[
                alt.Tooltip("run:N"),
                alt.Tooltip("treatment:N"),
                alt.Tooltip("used:N"),
                alt.Tooltip("value:Q", title=value_title, format=",.4~r"),
            ],
        )
        .add_params(chosen)
    )
    rules = (
        alt.Chart(alt.Data(values=[{"edge": edge} for edge in edges]))
        .mark_rule(color=MUTED, strokeDash=[3, 3])
        .encode(x="edge:Q")
    )
    return finish((rules + dots).properties(width=820, height=240), points)


def _panel(columns: int) -> int:
    return max(150, math.floor(850 / max(1, columns)) - 48)


def _panels(chart: Any, panels: Sequence[str], per_row: int) -> Any:
    """One panel for each title that occurs, wrapped.

    A grid of rows and columns is refused: where a combination is missing, Vega-Lite draws the
    panels after it one place early, under the wrong headings.
    """
    if len(panels) < 2:
        return chart.properties(width=760)
    facet = alt.Facet("panel:N", title=None, sort=list(panels))
    return chart.facet(facet=facet, columns=per_row, spacing=14)
