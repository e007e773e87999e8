"""Charts of messages: how latency is distributed, and how it grows with the payload."""

from __future__ import annotations

from collections.abc import Sequence

from wattwire.report.figures.style import (
    Points,
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


def ecdf_chart(
    points: Points | None,
    domain: Sequence[str],
    colour_title: str,
    panels: Sequence[str],
    per_row: int,
) -> Spec:
    """ECDF curves. Points: us, share, colour, panel."""
    chosen, opacity = highlight()
    high = len(panels) <= 2 * per_row
    share = {"field": "share", "type": "quantitative", "title": "share arrived"}
    chart = {
        "transform": [{"calculate": "100 * datum.share", "as": "share_percent"}],
        "params": [chosen],
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
        "width": panel_width(len(panels), per_row),
        "height": 170 if high else 105,
    }
    return finish(in_panels(chart, panels, per_row), points)


def sizes_chart(
    points: Points | None,
    domain: Sequence[str],
    colour_title: str,
    panels: Sequence[str],
) -> Spec:
    """Median latency against payload, joined by lines. Points: bytes, us, colour, panel."""
    chosen, opacity = highlight()
    both = {
        "x": number("bytes", "payload (B, log scale)", ticks=6),
        "y": number("us", "median latency (µs, log scale)"),
        "color": colour(colour_title, domain),
        "opacity": opacity,
    }
    told = [
        hint("colour", colour_title, None),
        hint("bytes", "payload (B)", ",d"),
        hint("us", "median latency (µs)"),
    ]
    per_row = min(2, max(1, len(panels)))
    chart = {
        "layer": [
            {
                "mark": {"type": "line", "strokeWidth": 1.6},
                "encoding": both | {"strokeDash": dash(colour_title, domain)},
            },
            {
                "params": [chosen],
                "mark": {"type": "point", "filled": True, "size": 50, "opacity": 1},
                "encoding": both | {"shape": shape(colour_title, domain), "tooltip": told},
            },
        ],
        "width": panel_width(len(panels), per_row),
        "height": 170,
    }
    return finish(in_panels(chart, panels, per_row), points)
