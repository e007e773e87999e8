"""Draw the distribution of latency, and latency against payload size."""

from __future__ import annotations

from wattwire.analysis.charts import Chart
from wattwire.report.figures.style import (
    Spec,
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

PERCENT = {"tickCount": 4, "labelExpr": "format(100 * datum.value, '~g') + ' %'"}


def ecdf_chart(chart: Chart, *_: str) -> Spec:
    """Return a chart of latency ECDFs. Fields of the points: us, share, colour, panel."""
    selection, opacity = highlight()
    domain, colour_title, panels = chart.colours, chart.colour_title, chart.panels
    is_tall = len(panels) <= 2 * chart.per_row
    share = {"field": "share", "type": "quantitative", "title": "share arrived"}
    panel = {
        "transform": [{"calculate": "100 * datum.share", "as": "share_percent"}],
        "params": [selection],
        "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.9},
        "encoding": {
            "x": number("us", "latency (µs, log scale)", padding=0),
            "y": share | {"scale": {"domain": [0, 1]}, "axis": PERCENT},
            "color": colour(colour_title, domain),
            "strokeDash": dash(colour_title, domain),
            "opacity": opacity,
            "tooltip": [
                hint("colour", colour_title, None),
                hint("us", "latency (µs)"),
                hint("share_percent", "share arrived (%)", ".4~r"),
            ],
        },
        "width": panel_width(len(panels), chart.per_row),
        "height": 170 if is_tall else 105,
    }
    return finish(in_panels(panel, panels, chart.per_row), chart.points)


def sizes_chart(chart: Chart, *_: str) -> Spec:
    """Return a line chart of median latency by payload size.

    Fields of the points: bytes, us, colour, panel.
    """
    selection, opacity = highlight()
    domain, colour_title, panels = chart.colours, chart.colour_title, chart.panels
    shared = {
        "x": number("bytes", "payload (B, log scale)", ticks=6),
        "y": number("us", "median latency (µs, log scale)"),
        "color": colour(colour_title, domain),
        "opacity": opacity,
    }
    tooltip = [
        hint("colour", colour_title, None),
        hint("bytes", "payload (B)", ",d"),
        hint("us", "median latency (µs)"),
    ]
    per_row = min(2, max(1, len(panels)))
    panel = {
        "layer": [
            {
                "mark": {"type": "line", "strokeWidth": 1.6},
                "encoding": shared | {"strokeDash": dash(colour_title, domain)},
            },
            {
                "params": [selection],
                "mark": {"type": "point", "filled": True, "size": 50, "opacity": 1},
                "encoding": shared | {"shape": shape(colour_title, domain), "tooltip": tooltip},
            },
        ],
        "width": panel_width(len(panels), per_row),
        "height": 170,
    }
    return finish(in_panels(panel, panels, per_row), chart.points)
