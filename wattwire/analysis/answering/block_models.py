"""Fit the blocked model of a response, and match runs that differ only in one factor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wattwire import stats
from wattwire.analysis import not_compared
from wattwire.analysis.answering import dependent_rows
from wattwire.analysis.dataset import Evidence, levels_of, order_of, same_level
from wattwire.analysis.responses import Response
from wattwire.model.derived import FloatArray, column


def block_table(
    evidence: Evidence, response: Response, factor: str, levels: Sequence[Any]
) -> FloatArray:
    """Return the mean log response of each block at each level, shape (blocks, levels).

    The mean is over the combinations of the other factors that have every level in the block. A
    block without such a combination is excluded. The value +inf is an unbounded response (loss).
    """
    means, block_numbers = matched(evidence, evidence.usable, response, factor, levels)
    block_count = int(block_numbers.max()) + 1 if block_numbers.size else 0
    table = np.zeros((block_count, len(levels)))
    np.add.at(table, block_numbers, means)
    counts = np.bincount(block_numbers, minlength=block_count)
    return np.asarray(table[counts > 0] / counts[counts > 0, None], dtype=np.float64)


def matched(
    evidence: Evidence,
    frame: pl.DataFrame,
    response: Response,
    factor: str,
    levels: Sequence[Any],
    scale: str = "log",
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return the means of runs that differ only in `factor`, and their block numbers.

    The shapes are (combinations, levels) and (combinations,). A combination consists of a block and
    one level of each other factor. It is included if it has every level of `factor`.
    """
    values = not_compared.comparable_values(evidence, frame, response)
    run_levels = levels_of(frame, factor)
    if scale == "log":
        values = np.log(np.where(values > 0, values, math.nan))
    index_of = {
        run_level: next((i for i, level in enumerate(levels) if same_level(run_level, level)), -1)
        for run_level in set(run_levels)
    }
    level_index = np.array([index_of[run_level] for run_level in run_levels], dtype=np.int64)
    kept = np.flatnonzero((level_index >= 0) & ~np.isnan(values)).tolist()
    other_levels = [levels_of(frame, name) for name in evidence.varied if name != factor]
    blocks = frame["block"].to_list()
    # Cells are combinations of block and other factors, numbered by first occurrence.
    cells: dict[tuple[Any, ...], int] = {}
    rows = list(zip(blocks, *other_levels, strict=True))
    cell = np.array([cells.setdefault(rows[row], len(cells)) for row in kept], dtype=np.int64)
    shape = (len(cells), len(levels))
    slots, size = cell * len(levels) + level_index[kept], len(cells) * len(levels)
    counts = np.bincount(slots, minlength=size).reshape(shape)
    sums = np.bincount(slots, values[kept], size).reshape(shape)
    complete = (counts > 0).all(axis=1)
    number_of = {
        block: number for number, block in enumerate(dict.fromkeys(key[0] for key in cells))
    }
    block = np.array([number_of[key[0]] for key in cells], dtype=np.int64)[complete]
    return np.asarray(sums[complete] / counts[complete], dtype=np.float64), block


def fit_of(
    evidence: Evidence,
    frame: pl.DataFrame,
    response: Response,
    covariate: FloatArray | None = None,
    scale: str = "log",
) -> stats.Fit | stats.TooFew | stats.NotComputable:
    """Return the blocked model of a response over all varied factors.

    `scale` is "log" or "plain". A treatment is excluded entirely if one of its runs has no
    comparable value.
    """
    values = column(frame, response.column)
    known = not_compared.compared(evidence, frame, response)
    factors = {}
    for name in evidence.varied:
        run_levels = levels_of(frame, name)
        planned = {level: _planned_level(evidence, name, level) for level in set(run_levels)}
        factors[name] = [planned[level] for level in run_levels]
    kept = [i for i, keep in enumerate(known) if keep]
    run_blocks = frame["block"].to_list()
    blocks = [run_blocks[i] for i in kept]
    factors = {name: [levels[i] for i in kept] for name, levels in factors.items()}
    order = order_of(evidence)
    if scale == "plain":
        fit = stats.fit_plain(values[known], blocks, factors, order=order)
    else:
        known_covariate = None if covariate is None else covariate[known]
        fit = stats.fit_log(values[known], blocks, factors, known_covariate, order)
    return (isinstance(fit, stats.Fit) and dependent_rows.refused(evidence, fit)) or fit


def usable_fit(
    evidence: Evidence, response: Response, scale: str = "log"
) -> stats.Fit | stats.TooFew | stats.NotComputable:
    """Return the cached model of one response over the valid runs."""
    return cached_fit(evidence, evidence.usable, response, "usable", scale)


def answering_fit(
    evidence: Evidence, response: Response
) -> stats.Fit | stats.TooFew | stats.NotComputable:
    """Return the model that the answers use; untransformed if a run has no logarithm."""
    fit = usable_fit(evidence, response)
    plain = isinstance(fit, stats.NotPositive) or response.share
    return usable_fit(evidence, response, "plain") if plain else fit


def cached_fit(
    evidence: Evidence, frame: pl.DataFrame, response: Response, scope: str, scale: str = "log"
) -> stats.Fit | stats.TooFew | stats.NotComputable:
    key = (response.column, scope if scale == "log" else f"{scope}, {scale}")
    if key not in evidence.fits:
        evidence.fits[key] = fit_of(evidence, frame, response, scale=scale)
    fit: stats.Fit | stats.TooFew | stats.NotComputable = evidence.fits[key]
    return fit


def _planned_level(evidence: Evidence, factor: str, level: Any) -> Any:
    for planned in evidence.factors[factor]:
        if same_level(planned, level):
            return planned
    return level
