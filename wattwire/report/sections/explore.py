"""Build the interactive section from the table of runs and from chart templates.

The templates are charts of `wattwire.report.figures` with placeholders for titles, levels and
scales, which explore.js replaces. Interactive and printed charts therefore look alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import polars as pl

from wattwire.analysis.carried import carried
from wattwire.analysis.dataset import Evidence, levels_run, per_treatment
from wattwire.analysis.responses import Response, offered
from wattwire.model import words
from wattwire.report import figures
from wattwire.report.figures import overview
from wattwire.report.figures.downsample import spread
from wattwire.report.figures.relations import CELLS_WITH_NUMBERS_MAX
from wattwire.report.figures.style import AXIS_PX, CONFIG, GAP_PX, NAMES_PX, Spec, panel_width
from wattwire.report.html.columnar_json import packed_columns, script_json
from wattwire.report.page_parts import PagePart
from wattwire.report.parts import Fold, Section, Text
from wattwire.report.words.phrases import Phrases

PHRASES = Phrases(
    "explore",
    {
        "title": "Explore the runs",
        "introduction": (
            "Select a response, a kind of chart and the levels to show. The selected levels filter "
            "the chart below and every table that has rows for single levels. They do not "
            "change other figures, or numbers that are pooled over a factor. Results from this "
            "section are exploratory."
        ),
        "thinned": (
            "The chart shows about {shown:count} of {runs:count} runs: the same share of each "
            "treatment, evenly spaced in run order. The tables contain every run."
        ),
        "for_print": "Print-ready figures of the first response",
        # Kinds of charts and their captions.
        "box": "runs and boxes",
        "box_caption": (
            "Each row is a treatment, and each dot is a run. With {runs_min} or more runs, a "
            "box shows the quartiles and the median, and its whiskers extend to the lowest "
            "and the highest run."
        ),
        "violin": "violins",
        "violin_caption": (
            "Each row is a treatment, and each dot is a run. With {runs_min} or more runs, a "
            "violin shows the density of the runs, estimated with Scott's bandwidth. All violins "
            "have the same width."
        ),
        "ecdf": "cumulative share of runs",
        "ecdf_caption": (
            "Each curve gives the share of the displayed runs at or below each value. Each step is "
            "a run, not a message."
        ),
        "interaction": "means by two factors",
        "interaction_caption": (
            "Points are means over the displayed runs (geometric means on a log scale). Bars are "
            "95 % t intervals, each for one mean of three or more runs. For differences, see the "
            "answers, which compare runs within blocks. Nonparallel lines suggest an interaction."
        ),
        "scatter": "one response against another",
        "scatter_caption": "Small points are runs; large points are the medians of the treatments.",
        "heat": "heat map",
        "heat_caption": (
            "Each cell shows the mean over its runs (the geometric mean on a log scale). A cell "
            "without runs is white."
        ),
        "order": "runs in order of execution",
        "order_caption": (
            "Drift appears as a slope, and a disturbance appears as a cluster of runs. Dashed "
            "lines separate blocks. Hollow marks are excluded runs."
        ),
    },
)

DIGITS = 5
RUNS_MAX = 20_000
"""Maximum number of runs in the section. A page with more runs would be too large to open."""
LEVELS, TONE, VALUE, SCALE = ["@levels"], "@tone", "@value", "@scale"
ACROSS = ("@across", ["@acrosses"])
PANELS = ["@panels", ""]
GROUPS = (None, LEVELS, TONE, PANELS, 1)


@dataclass(frozen=True)
class Kind:
    """A kind of chart, with the selectors for the reader, the caption and the template."""

    name: str
    title: str
    choices: tuple[str, ...]
    says: str
    pattern: Callable[[], Spec]
    label_px: int = AXIS_PX


KINDS = (
    Kind(
        "box",
        PHRASES("box"),
        ("value", "tone", "panel"),
        PHRASES("box_caption", runs_min=figures.BOX_RUNS_MIN),
        lambda: figures.box_chart(*GROUPS, VALUE, SCALE, figures.TREATMENT_ROWS),
        NAMES_PX,
    ),
    Kind(
        "violin",
        PHRASES("violin"),
        ("value", "tone", "panel"),
        PHRASES("violin_caption", runs_min=figures.VIOLIN_RUNS_MIN),
        lambda: figures.violin_chart(*GROUPS, VALUE, SCALE, figures.TREATMENT_ROWS),
        NAMES_PX,
    ),
    Kind(
        "ecdf",
        PHRASES("ecdf"),
        ("value", "tone", "panel"),
        PHRASES("ecdf_caption"),
        lambda: figures.runs_ecdf_chart(*GROUPS, VALUE, SCALE),
    ),
    Kind(
        "interaction",
        PHRASES("interaction"),
        ("value", "across", "tone", "panel"),
        PHRASES("interaction_caption"),
        lambda: figures.interaction_chart(None, LEVELS, TONE, ACROSS, PANELS, 1, VALUE, SCALE),
    ),
    Kind(
        "scatter",
        PHRASES("scatter"),
        ("value", "other", "tone", "panel"),
        PHRASES("scatter_caption"),
        lambda: figures.scatter_chart(*GROUPS, ("@other", VALUE), ("@otherscale", SCALE)),
    ),
    Kind(
        "heat",
        PHRASES("heat"),
        ("value", "across", "tone", "panel"),
        PHRASES("heat_caption"),
        lambda: figures.heat_chart(None, ACROSS, (TONE, LEVELS), PANELS, 1, VALUE, SCALE),
        NAMES_PX,
    ),
    Kind(
        "order",
        PHRASES("order"),
        ("value", "tone"),
        PHRASES("order_caption"),
        lambda: figures.order_chart(None, LEVELS, TONE, VALUE, SCALE),
    ),
)


@dataclass(frozen=True)
class Explorer:
    """The selectors, filters and chart of the interactive section. explore.js reads `data`."""

    factors: tuple[dict[str, Any], ...]
    responses: tuple[Response, ...]
    kinds: tuple[Kind, ...]
    excluded: int
    data: dict[str, Any]
    shape: ClassVar[str] = "explorer"

    @property
    def json(self) -> str:
        """Return `data` as JSON, escaped for a script element."""
        return script_json(self.data)


def section(evidence: Evidence) -> Section | None:
    """Return the interactive section, or None if no factor varies or no response was measured."""
    responses = offered(evidence.study.questions, evidence.described)
    responses = tuple(
        response
        for response in responses
        if not np.isnan(carried(evidence.usable, response.column)).all()
    )
    if not responses or not evidence.varied:
        return None
    part = Section("explore", PHRASES("title"))
    part.parts.append(Text(PHRASES("introduction")))
    part.parts.append(_explorer(evidence, responses))
    runs = evidence.usable.height + evidence.excluded.height
    if runs > RUNS_MAX:
        part.parts.append(Text(PHRASES("thinned", shown=RUNS_MAX, runs=runs), "note"))
    captions = {kind.name: kind.says for kind in KINDS}
    drawings = overview.drawn(evidence, responses, captions)
    if drawings:
        part.parts.append(Fold(PHRASES("for_print"), drawings))
    return part


def _explorer(evidence: Evidence, responses: tuple[Response, ...]) -> Explorer:
    first = [evidence.primary] if evidence.primary in evidence.varied else []
    factors = tuple(
        {
            "name": name,
            "title": figures.drawable(words.factor_title(name)),
            "levels": [_level(evidence, name, level) for level in levels_run(evidence, name)],
        }
        for name in dict.fromkeys([*first, *evidence.varied])
    )
    kinds = tuple(kind for kind in KINDS if "other" not in kind.choices or len(responses) > 1)
    names = [str(factor["name"]) for factor in factors]
    layout = overview.layout_of(evidence)
    data = {
        "factors": factors,
        "begin": {
            "tone": names.index(layout.tone),
            "across": names.index(layout.across) if layout.across else 0,
            "panel": names.index(layout.panel) if layout.panel else None,
        },
        "responses": [
            {
                "title": figures.drawable(
                    response.title + (f" ({response.unit})" if response.unit else "")
                ),
                "log": not response.share,
            }
            for response in responses
        ],
        "kinds": {kind.name: _kind_data(kind) for kind in kinds},
        "config": CONFIG,
        "gap_px": GAP_PX,
        "cells_max": CELLS_WITH_NUMBERS_MAX,
        "runs": _runs(evidence, names, responses),
    }
    return Explorer(factors, responses, kinds, evidence.excluded.height, data)


def _level(evidence: Evidence, factor: str, level: Any) -> dict[str, str]:
    """Return a level as in the data, its title, and its text in charts if the text differs."""
    title = evidence.title(factor, level)
    drawn = figures.drawable(title)
    entry = {"level": evidence.word(factor, level), "title": title}
    return entry if drawn == title else {**entry, "drawn": drawn}


def _kind_data(kind: Kind) -> dict[str, Any]:
    pattern = {key: value for key, value in kind.pattern().items() if key != "config"}
    return {
        "choices": kind.choices,
        "says": kind.says,
        "rows": kind.name in ("box", "violin"),
        "width_px": panel_width(1, 1, kind.label_px),
        "pattern": pattern,
    }


def _runs(
    evidence: Evidence, factors: list[str], responses: tuple[Response, ...]
) -> dict[str, Any]:
    """Return the table of runs in planned order, without control runs.

    Columns f0, f1, … contain levels of `factors`. Columns r0, r1, … contain values of `responses`.
    A larger table is thinned to about RUNS_MAX runs.
    """
    positions = {entry["run"]: index for index, entry in enumerate(evidence.planned, start=1)}
    columns: dict[str, list[Any]] = {}
    for frame, used in ((evidence.usable, "valid"), (evidence.excluded, "excluded")):
        runs = frame["run"].to_list()
        names = per_treatment(evidence, frame, partial(_names, evidence, factors))
        frame_columns: dict[str, list[Any]] = {
            "run": runs,
            "block": frame["block"].to_list(),
            "order": [positions.get(run, 0) for run in runs],
            "used": [used] * len(runs),
        }
        name_columns = ("treatment", *(f"f{n}" for n in range(len(factors))))
        for n, name in enumerate(name_columns):
            frame_columns[name] = [run_names[n] for run_names in names]
        for n, response in enumerate(responses):
            frame_columns[f"r{n}"] = _rounded(frame, response)
        for name, values in frame_columns.items():
            columns.setdefault(name, []).extend(values)
    order = np.argsort(columns["order"], kind="stable").tolist()
    if len(order) > RUNS_MAX:
        order = _thinned_rows(order, columns["treatment"])
    sorted_columns = {name: [values[index] for index in order] for name, values in columns.items()}
    return packed_columns(sorted_columns, len(order))


def _names(evidence: Evidence, factors: list[str], levels: dict[str, Any]) -> tuple[str, ...]:
    """Return the title of a treatment for charts, and its level of each factor."""
    title = figures.drawable(evidence.treatment_title(levels))
    return title, *(evidence.word(name, levels.get(name)) for name in factors)


def _thinned_rows(order: list[int], treatments: list[str]) -> list[int]:
    """Return about RUNS_MAX rows of `order`, evenly spaced within each treatment."""
    groups: dict[str, list[int]] = {}
    for position, row in enumerate(order):
        groups.setdefault(treatments[row], []).append(position)
    share = RUNS_MAX / len(order)
    kept = [
        group[index]
        for group in groups.values()
        for index in spread(len(group), round(len(group) * share))
    ]
    return [order[position] for position in sorted(kept)]


def _rounded(frame: pl.DataFrame, response: Response) -> list[float | None]:
    """Return the response of each row to DIGITS digits, or None if it is unknown or infinite."""
    values = carried(frame, response.column).tolist()
    return [float(f"{v:.{DIGITS}g}") if math.isfinite(v) else None for v in values]


PART = PagePart(110, lambda data: [section(data.evidence)])
