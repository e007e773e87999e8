"""Fit the blocked model of a response, and match runs that differ only in one factor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wattwire import stats
from wattwire.analysis import not_compared
from wattwire.analysis.answering import dependent_rows
from wattwire.analysis.dataset import Evidence, levels_of, numbered, order_of, same_level
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
    if scale == "log":
        values = np.log(np.where(values > 0, values, math.nan))
    level_of_run, firsts = numbered(frame, [f"factor.{factor}"])
    index_of = [
        next((i for i, level in enumerate(levels) if same_level(run_level, level)), -1)
        for run_level in levels_of(frame[firsts], factor)
    ]
    level_index = np.array(index_of, dtype=np.int64)[level_of_run]
    kept = np.flatnonzero((level_index >= 0) & ~np.isnan(values))
    cell_frame, keys = _cells(evidence, frame, without=factor)
    cell, firsts = numbered(cell_frame[kept], keys)
    shape = (len(firsts), len(levels))
    slots, size = cell * len(levels) + level_index[kept], len(firsts) * len(levels)
    counts = np.bincount(slots, minlength=size).reshape(shape)
    sums = np.bincount(slots, values[kept], size).reshape(shape)
    complete = (counts > 0).all(axis=1)
    block, _ = numbered(cell_frame[kept][firsts], ["block"])
    return np.asarray(sums[complete] / counts[complete], dtype=np.float64), block[complete]


def _cells(
    evidence: Evidence, frame: pl.DataFrame, without: str = ""
) -> tuple[pl.DataFrame, list[str]]:
    """Return the block and the varied levels of each run, and the names of these columns."""
    names = ["block", *(f"factor.{name}" for name in evidence.varied if name != without)]
    present = [name for name in names if name in frame.columns]
    return frame.select(present), present


def fit_of(
    evidence: Evidence,
    frame: pl.DataFrame,
    response: Response,
    covariate: FloatArray | None = None,
    scale: str = "log",
) -> stats.Fit | stats.TooFew | stats.NotComputable:
    """Return the blocked model of a response over all varied factors.

    `scale` is "log" or "plain". A treatment is excluded entirely if one of its runs has no
    comparable value. The values are those of `model_rows`: with several blocks, runs of the same
    treatment and block are averaged on the scale, because they share the block's effect on the
    treatment and are not independent replicates.
    """
    values = column(frame, response.column)
    known = not_compared.compared(evidence, frame, response)
    factors = {}
    for name in evidence.varied:
        run_levels = levels_of(frame, name)
        planned = {level: _planned_level(evidence, name, level) for level in set(run_levels)}
        factors[name] = [planned[level] for level in run_levels]
    runs, cell_of_run = model_rows(evidence, frame, response)
    averages = values[known]
    covariates = None if covariate is None else covariate[known]
    runs_of_value = None
    is_usable = np.isfinite(averages) & ((averages > 0) | (scale == "plain"))
    if len(runs) < len(averages) and is_usable.all():
        runs_of_value = np.bincount(cell_of_run)
        averages = stats.cell_means(averages, cell_of_run.tolist(), scale)
        if covariates is not None:
            covariates = stats.cell_means(covariates, cell_of_run.tolist(), "plain")
    else:
        runs = np.flatnonzero(known)
    run_blocks = frame["block"].to_list()
    blocks = [run_blocks[i] for i in runs]
    factors = {name: [levels[i] for i in runs] for name, levels in factors.items()}
    order = order_of(evidence)
    if scale == "plain":
        fit = stats.fit_plain(averages, blocks, factors, order=order)
    else:
        fit = stats.fit_log(averages, blocks, factors, covariates, order)
    if isinstance(fit, stats.Fit):
        fit = replace(fit, runs_of_value=runs_of_value)
    return (isinstance(fit, stats.Fit) and dependent_rows.refused(evidence, fit)) or fit


def model_rows(
    evidence: Evidence, frame: pl.DataFrame, response: Response
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the row of the first run of each value of the model, and each run's value.

    The shapes are (values,) and (compared runs,). With several blocks, a value is the mean of the
    runs of a treatment in a block. With one block, it is a run.
    """
    rows = np.flatnonzero(not_compared.compared(evidence, frame, response))
    if frame.height == 0 or frame["block"].n_unique() < 2:
        return rows, np.arange(rows.size)
    cell_frame, keys = _cells(evidence, frame)
    cell_of_run, firsts = numbered(cell_frame[rows], keys)
    return rows[firsts], cell_of_run


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
