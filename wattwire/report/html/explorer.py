"""Build the interactive chart of runs from the table of runs and from chart templates.

The templates are charts of `wattwire.report.figures` with placeholders for titles, levels and
scales, which explore.js replaces. Interactive and printed charts therefore look alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from wattwire.analysis.charts import Chart
from wattwire.analysis.responses import Response
from wattwire.analysis.topics.explore.run_table import RunTable, TableLevel
from wattwire.report.figures.effects import interaction_chart
from wattwire.report.figures.letters import drawable
from wattwire.report.figures.relations import CELLS_WITH_NUMBERS_MAX, heat_chart, scatter_chart
from wattwire.report.figures.runs import (
    TREATMENT_ROWS,
    box_chart,
    order_chart,
    runs_ecdf_chart,
    violin_chart,
)
from wattwire.report.figures.style import AXIS_PX, CONFIG, GAP_PX, NAMES_PX, Spec, panel_width
from wattwire.report.html.columnar_json import packed_columns, script_json

ACROSS, VALUE, SCALE = "@across", "@value", "@scale"
NO_POINTS: Any = None
"""A chart without points is a template (`figures/style.py`)."""
TEMPLATE = Chart(
    NO_POINTS, ["@levels"], "@tone", panels=["@panels", ""], across=["@acrosses"],
    x_scale=SCALE, y_scale=SCALE,
)  # fmt: skip


@dataclass(frozen=True)
class Pattern:
    """The template of a kind of chart, and the selectors that a reader has for it."""

    choices: tuple[str, ...]
    draw: Callable[[], Spec]
    label_px: int = AXIS_PX


PATTERNS: Mapping[str, Pattern] = {
    "box": Pattern(
        ("value", "tone", "panel"),
        lambda: box_chart(TEMPLATE, VALUE, rows=TREATMENT_ROWS),
        NAMES_PX,
    ),
    "violin": Pattern(
        ("value", "tone", "panel"),
        lambda: violin_chart(TEMPLATE, VALUE, rows=TREATMENT_ROWS),
        NAMES_PX,
    ),
    "ecdf": Pattern(("value", "tone", "panel"), lambda: runs_ecdf_chart(TEMPLATE, VALUE)),
    "interaction": Pattern(
        ("value", "across", "tone", "panel"),
        lambda: interaction_chart(TEMPLATE, ACROSS, VALUE),
    ),
    "scatter": Pattern(
        ("value", "other", "tone", "panel"),
        lambda: scatter_chart(replace(TEMPLATE, x_scale="@otherscale"), "@other", VALUE),
    ),
    "heat": Pattern(
        ("value", "across", "tone", "panel"),
        lambda: heat_chart(TEMPLATE, ACROSS, VALUE),
        NAMES_PX,
    ),
    "order": Pattern(("value", "tone"), lambda: order_chart(TEMPLATE, "", VALUE)),
}


@dataclass(frozen=True)
class Kind:
    """A kind of chart that a reader may select: a key of PATTERNS with its title and caption."""

    name: str
    title: str
    caption: str


@dataclass(frozen=True)
class Explorer:
    """The selectors, filters and chart of the interactive section. explore.js reads `data`."""

    factors: Sequence[dict[str, Any]]
    responses: Sequence[Response]
    kinds: Sequence[Kind]
    excluded: int
    data: dict[str, Any]
    shape: ClassVar[str] = "explorer"

    @property
    def json(self) -> str:
        """Return `data` as JSON, escaped for a script element."""
        return script_json(self.data)


def explorer(table: RunTable, kinds: Sequence[Kind]) -> Explorer:
    """Return the interactive chart of the runs in `table`, with these kinds of chart."""
    factors = [
        {
            "name": factor.name,
            "title": drawable(factor.title),
            "levels": [_level(level) for level in factor.levels],
        }
        for factor in table.factors
    ]
    names = [factor.name for factor in table.factors]
    layout = table.layout
    data = {
        "factors": factors,
        "begin": {
            "tone": names.index(layout.tone),
            "across": names.index(layout.across) if layout.across else 0,
            "panel": names.index(layout.panel) if layout.panel else None,
        },
        "responses": [
            {
                "title": drawable(
                    response.title + (f" ({response.unit})" if response.unit else "")
                ),
                "log": not response.share,
            }
            for response in table.responses
        ],
        "kinds": {kind.name: _kind_data(kind) for kind in kinds},
        "config": CONFIG,
        "gap_px": GAP_PX,
        "cells_max": CELLS_WITH_NUMBERS_MAX,
        "runs": packed_columns(_columns(table), len(table.run)),
    }
    return Explorer(factors, table.responses, kinds, table.excluded, data)


def _level(level: TableLevel) -> dict[str, str]:
    """Return a level as in the data, its title, and its text in charts if the text differs."""
    drawn = drawable(level.title)
    entry = {"level": level.level, "title": level.title}
    return entry if drawn == level.title else {**entry, "drawn": drawn}


def _kind_data(kind: Kind) -> dict[str, Any]:
    pattern = PATTERNS[kind.name]
    return {
        "choices": pattern.choices,
        "says": kind.caption,
        "rows": kind.name in ("box", "violin"),
        "width_px": panel_width(1, 1, pattern.label_px),
        "pattern": {key: value for key, value in pattern.draw().items() if key != "config"},
    }


def _columns(table: RunTable) -> dict[str, Sequence[Any]]:
    """Return the columns by name: f0, f1, … are those of factors, r0, r1, … those of responses."""
    return {
        "run": table.run,
        "block": table.block,
        "order": table.order,
        "used": table.used,
        "treatment": [drawable(title) for title in table.treatment],
        **{f"f{n}": levels for n, levels in enumerate(table.levels)},
        **{f"r{n}": values for n, values in enumerate(table.values)},
    }
