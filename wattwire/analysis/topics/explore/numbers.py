"""Collect the levels and the responses of all runs, for charts that a reader composes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from wattwire.analysis.carried import carried
from wattwire.analysis.charts import BOX_RUNS_MIN, VIOLIN_RUNS_MIN, rounded, spread
from wattwire.analysis.dataset import Evidence, levels_run, per_treatment
from wattwire.analysis.responses import Response, offered
from wattwire.analysis.topics.audit.numbers import Audit
from wattwire.analysis.topics.explore.overview import Overview, layout_of, overview
from wattwire.analysis.topics.explore.run_table import RunTable, TableFactor, TableLevel
from wattwire.model import words

DIGITS = 5
RUNS_MAX = 20_000
"""Maximum number of runs in the section. A page with more runs would be too large to open."""


@dataclass(frozen=True)
class Explore:
    """The runs of the section; no table if no factor varies or no response was measured.

    The table has about `runs_max` of the `runs` if there are more. A box needs `box_runs_min` runs,
    and a violin `violin_runs_min`.
    """

    table: RunTable | None = None
    runs: int = 0
    overview: Overview | None = None
    runs_max: int = RUNS_MAX
    box_runs_min: int = BOX_RUNS_MIN
    violin_runs_min: int = VIOLIN_RUNS_MIN

    @property
    def is_thinned(self) -> bool:
        """Whether the table lacks some of the runs."""
        return self.runs > self.runs_max


def explore(evidence: Evidence, audit: Audit) -> Explore:
    """Return the runs with their levels and the measured responses that a reader may select."""
    responses = tuple(
        response
        for response in offered(evidence.study.questions, evidence.described)
        if not np.isnan(carried(evidence.usable, response.column)).all()
    )
    if not responses or not evidence.varied:
        return Explore()
    runs = evidence.usable.height + evidence.excluded.height
    second = responses[1] if len(responses) > 1 else None
    in_audit = audit.order.response if audit.order else None
    return Explore(
        _table(evidence, responses), runs, overview(evidence, responses[0], second, in_audit)
    )


def _table(evidence: Evidence, responses: tuple[Response, ...]) -> RunTable:
    first = [evidence.primary] if evidence.primary in evidence.varied else []
    names = list(dict.fromkeys([*first, *evidence.varied]))
    run, block, order, used, treatment, *others = _columns(evidence, names, responses)
    return RunTable(
        tuple(_factor(evidence, name) for name in names),
        responses,
        layout_of(evidence),
        evidence.excluded.height,
        run,
        block,
        order,
        used,
        treatment,
        tuple(others[: len(names)]),
        tuple(others[len(names) :]),
    )


def _factor(evidence: Evidence, name: str) -> TableFactor:
    levels = (
        TableLevel(evidence.word(name, level), evidence.title(name, level))
        for level in levels_run(evidence, name)
    )
    return TableFactor(name, words.factor_title(name), tuple(levels))


def _columns(
    evidence: Evidence, names: Sequence[str], responses: Sequence[Response]
) -> tuple[tuple[Any, ...], ...]:
    """Return the columns of the table, with a column per factor and per response at the end.

    A larger table is thinned to about RUNS_MAX runs.
    """
    positions = evidence.run_positions
    parts = [
        _part(evidence, frame, used, positions, names, responses)
        for frame, used in ((evidence.usable, "valid"), (evidence.excluded, "excluded"))
    ]
    columns = [[*valid, *excluded] for valid, excluded in zip(*parts, strict=True)]
    rows = np.argsort(columns[2], kind="stable").tolist()
    if len(rows) > RUNS_MAX:
        rows = _thinned_rows(rows, columns[4])
    return tuple(tuple(values[row] for row in rows) for values in columns)


def _part(
    evidence: Evidence,
    frame: pl.DataFrame,
    used: str,
    positions: dict[str, int],
    names: Sequence[str],
    responses: Sequence[Response],
) -> list[list[Any]]:
    """Return the columns of the table for the runs of `frame`."""
    runs = frame["run"].to_list()
    texts = per_treatment(evidence, frame, partial(_texts, evidence, names))
    return [
        runs,
        frame["block"].to_list(),
        [positions.get(run, 0) for run in runs],
        [used] * len(runs),
        *([of_run[column] for of_run in texts] for column in range(1 + len(names))),
        *(_rounded(frame, response) for response in responses),
    ]


def _texts(evidence: Evidence, names: Sequence[str], levels: dict[str, Any]) -> tuple[str, ...]:
    """Return the title of a treatment, and its level of each factor."""
    title = evidence.treatment_title(levels)
    return title, *(evidence.word(name, levels.get(name)) for name in names)


def _thinned_rows(rows: list[int], treatments: list[str]) -> list[int]:
    """Return about RUNS_MAX of `rows`, evenly spaced within each treatment."""
    groups: dict[str, list[int]] = {}
    for position, row in enumerate(rows):
        groups.setdefault(treatments[row], []).append(position)
    share = RUNS_MAX / len(rows)
    kept = [
        group[index]
        for group in groups.values()
        for index in spread(len(group), round(len(group) * share))
    ]
    return [rows[position] for position in sorted(kept)]


def _rounded(frame: pl.DataFrame, response: Response) -> list[float | None]:
    """Return the response of each row to DIGITS digits, or None if it is unknown or infinite."""
    values = carried(frame, response.column).tolist()
    return [rounded(value, DIGITS) if math.isfinite(value) else None for value in values]
