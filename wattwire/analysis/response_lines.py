"""Compute means and fitted lines of a response over a numeric factor, and medians for stacks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis import not_compared
from wattwire.analysis.answering.block_models import matched
from wattwire.analysis.dataset import Evidence, by_treatment, levels_of
from wattwire.analysis.metrics_by_role import values_of
from wattwire.analysis.responses import Response
from wattwire.model.derived import FloatArray

LOG, PLAIN = "log", "plain"


@dataclass(frozen=True)
class Group:
    """The factors that divide runs: `by`, the role, and the title of the other factors' levels."""

    role: str
    others: str
    level: Any


@dataclass(frozen=True)
class Mean:
    """The mean of `runs` runs at `x`, with its interval if there are enough runs."""

    x: float
    mean: float
    interval: stats.Interval | None
    runs: int


@dataclass(frozen=True)
class Line:
    """The means of a group over the numeric factor, and a line that is fitted within blocks."""

    group: Group
    means: tuple[Mean, ...]
    fit: stats.LinearFit | stats.TooFew | stats.NotComputable


@dataclass(frozen=True)
class Lines:
    """The lines of a response. On the `scale` "log", means are geometric.

    `excluded` has the reason for each treatment without comparable values. It has no mean.
    """

    lines: tuple[Line, ...]
    scale: str
    excluded: tuple[stats.NotComputable, ...]


@dataclass(frozen=True)
class Segment:
    """The median of a response over `runs` runs; None if it is negative, infinite or missing."""

    group: Group
    response: Response
    median: float | None
    runs: int


@dataclass(frozen=True)
class _Cell:
    """The values and blocks of a treatment's runs, shape (runs,)."""

    values: FloatArray
    blocks: tuple[Any, ...]


def lines_of(
    evidence: Evidence, response: Response, roles: Sequence[str], x: str, by: str, scale: str = ""
) -> Lines:
    """Return a line over the factor `x` per level of `by`, role and levels of the other factors.

    Without `scale`, the scale is "log" if every value is positive, except for shares.
    """
    cells: dict[Group, dict[float, _Cell]] = {}
    for role, (levels, frame) in itertools.product(roles, _treatments(evidence, response, (x, by))):
        values = values_of(evidence, frame, response, role)
        known = ~np.isnan(values)
        if known.any() and levels[x] is not None:
            group = _group(evidence, role, levels, by, (x, by))
            blocks = tuple(itertools.compress(frame["block"].to_list(), known))
            cells.setdefault(group, {})[float(levels[x])] = _Cell(values[known], blocks)
    positive = all((cell.values > 0).all() for line in cells.values() for cell in line.values())
    if not positive or (not scale and response.share):
        scale = PLAIN
    lines = tuple(_line(group, cells_by_x, scale or LOG) for group, cells_by_x in cells.items())
    return Lines(lines, scale or LOG, tuple(not_compared.excluded(evidence, response)))


def slope_within(evidence: Evidence, response: Response, x: str) -> stats.LinearFit | None:
    """Return the line of a response over the numeric factor `x`, in the response's unit.

    A value is the mean of a block at a level over the combinations of the other factors that have
    every level. The result is None if `x` is not numeric, or if there is no line.
    """
    levels = [level for level in evidence.factors.get(x, ()) if not isinstance(level, bool)]
    if len(levels) < 3 or not all(isinstance(level, (int, float)) for level in levels):
        return None
    combinations, blocks = matched(evidence, evidence.usable, response, x, levels, PLAIN)
    if not len(combinations) or not np.isfinite(combinations).all():
        return None
    table = [combinations[blocks == block].mean(axis=0) for block in np.unique(blocks)]
    fit = stats.linear_fit(np.array(table), [float(level) for level in levels])
    return fit if isinstance(fit, stats.LinearFit) else None


def medians_of(
    evidence: Evidence, responses: Sequence[Response], roles: Sequence[str], by: str
) -> list[Segment]:
    """Return the median of each response per level of `by`, role and levels of other factors."""
    segments = []
    for role, frame in itertools.product(roles, by_treatment(evidence, evidence.usable).values()):
        group = _group(evidence, role, _levels(evidence, frame, (by,)), by, (by,))
        for response in responses:
            values = values_of(evidence, frame, response, role)
            values = values[~np.isnan(values)]
            median = float(np.median(values)) if values.size else np.nan
            drawable = np.isfinite(median) and median >= 0
            segments.append(Segment(group, response, median if drawable else None, values.size))
    return segments


def _treatments(
    evidence: Evidence, response: Response, factors: Sequence[str]
) -> Iterator[tuple[dict[str, Any], pl.DataFrame]]:
    """Yield the levels and the valid runs of each treatment with comparable values.

    The levels are those of the varied factors and of `factors`.
    """
    for frame in by_treatment(evidence, evidence.usable).values():
        if not not_compared.without_value(evidence, frame, response).any():
            is_left_out = pl.Series(not_compared.left_out(evidence, frame, response))
            yield _levels(evidence, frame, factors), frame.filter(~is_left_out)


def _levels(evidence: Evidence, frame: pl.DataFrame, factors: Sequence[str]) -> dict[str, Any]:
    fixed = evidence.study.fixed
    levels = {name: levels_of(frame, name)[0] for name in (*factors, *evidence.varied)}
    return {name: fixed.get(name) if level is None else level for name, level in levels.items()}


def _group(
    evidence: Evidence, role: str, levels: Mapping[str, Any], by: str, shown: Sequence[str]
) -> Group:
    return Group(role, evidence.treatment_title(levels, shown), levels.get(by))


def _line(group: Group, cells: Mapping[float, _Cell], scale: str) -> Line:
    xs = sorted(cells)
    means = tuple(_mean(x, cells[x], scale) for x in xs if np.isfinite(cells[x].values).all())
    blocks = sorted({block for cell in cells.values() for block in cell.blocks})
    table = np.full((len(blocks), len(xs)), np.nan)
    for (row, block), (column, x) in itertools.product(enumerate(blocks), enumerate(xs)):
        values = cells[x].values[[run_block == block for run_block in cells[x].blocks]]
        if values.size:
            table[row, column] = values.mean()
    return Line(group, means, stats.linear_fit(table, xs))


def _mean(x: float, cell: _Cell, scale: str) -> Mean:
    """Return the mean of a cell, over the means of its blocks if it has several blocks."""
    is_log, values = scale == LOG, cell.values
    if 1 < len(set(cell.blocks)) < values.size:
        values = stats.cell_means(values, cell.blocks, scale)
    interval = stats.geometric_mean(values) if is_log else stats.mean_interval(values)
    mean = float(np.exp(np.log(values).mean()) if is_log else values.mean())
    return Mean(
        x, mean, interval if isinstance(interval, stats.Interval) else None, cell.values.size
    )
