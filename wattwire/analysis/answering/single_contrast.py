"""Compute one contrast of two levels, or the reason why it has no interval."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis import not_compared
from wattwire.analysis.answering import dependent_rows
from wattwire.analysis.answering.answer_types import Answer, Result
from wattwire.analysis.answering.block_models import block_table, cached_fit, matched, usable_fit
from wattwire.analysis.dataset import Evidence, all_levels, levels_of, rows_at, same_level
from wattwire.analysis.responses import Response, measured
from wattwire.model import words
from wattwire.model.derived import column


def contrast(
    evidence: Evidence,
    frame: pl.DataFrame,
    wanted: Answer,
    level: float,
    within: tuple[str, Any] | None = None,
) -> Result:
    """Return one contrast from the runs of `frame` at confidence `level`, by default a ratio.

    `within` fixes the level of another factor. The contrasts of a response are differences if any
    run has no logarithm. Contrasts of shares are always differences, because ratios near 0 are
    uninformative.
    """
    scope = "usable" if frame is evidence.usable else "all"
    if within is not None and frame.height and frame["block"].n_unique() == 1:
        # A single block gives no error within treatments, so use the main effects at this level.
        frame = frame.filter(rows_at(frame, dict([within])))
        scope, within = f"{scope} at {within}", None
    refusal = _refusal(frame, wanted.response) or without_value(evidence, frame, wanted, within)
    refusal = _without_run(evidence, frame, wanted) or refusal
    refusal = refusal or _without_scatter(evidence, frame, wanted, within)
    if refusal is not None:
        return refusal
    arguments = (wanted.factor, wanted.level, wanted.baseline, level, within)
    names = (
        evidence.title(wanted.factor, wanted.level), evidence.title(wanted.factor, wanted.baseline)
    )  # fmt: skip
    fit = cached_fit(evidence, frame, wanted.response, scope)
    if isinstance(fit, stats.NotPositive) or wanted.response.share:
        fit = cached_fit(evidence, frame, wanted.response, scope, "plain")
        if isinstance(fit, dependent_rows.Dependent):
            return fit
        # Most runs of a rare loss have none, so the typical difference of shares would be 0.
        by_ranks = None
        if not wanted.response.share:
            by_ranks = _typical_difference(evidence, frame, wanted, level, within)
        if by_ranks is not None:
            return by_ranks
        if not isinstance(fit, stats.Fit):
            return fit
        return _within_shares(stats.difference(fit, *arguments, names), wanted.response)
    return stats.ratio(fit, *arguments, names) if isinstance(fit, stats.Fit) else fit


def _without_scatter(
    evidence: Evidence, frame: pl.DataFrame, wanted: Answer, within: tuple[str, Any] | None
) -> stats.Exact | None:
    """Return the values of both sides if they are equal in each pair, or are constant shares.

    An interval would come from the scatter of other levels alone, and would enlarge the family.
    """
    if within is not None:
        frame = frame.filter(rows_at(frame, dict([within])))
    response, levels = wanted.response, [wanted.level, wanted.baseline]
    pairs, block_numbers = matched(evidence, frame, response, wanted.factor, levels, "plain")
    if not len(pairs) or not np.isfinite(pairs).all():
        return None
    equal = bool((pairs[:, 0] == pairs[:, 1]).all())
    constant = bool((np.ptp(pairs, axis=0) == 0).all())
    if not (equal or constant and response.share):
        return None
    level, baseline = map(float, pairs.mean(axis=0))
    blocks = len(set(block_numbers.tolist()))
    in_blocks = "the only block" if blocks == 1 else f"all {blocks} blocks"
    values = [
        words.percent(value) if response.share else f"{words.number(value)} {response.unit}".strip()
        for value in (level, baseline)
    ]
    upper, lower = (evidence.title(wanted.factor, level) for level in levels)
    if equal:
        mean = "" if constant else "mean "
        reason = f"the same for {upper} and {lower} in {in_blocks} ({mean}{values[0]})"
    else:
        reason = f"{upper} {values[0]} and {lower} {values[1]} in {in_blocks}, without scatter"
    return stats.Exact(reason, level, baseline, len(pairs), blocks)


def _without_run(
    evidence: Evidence, frame: pl.DataFrame, wanted: Answer
) -> stats.NotComputable | None:
    """Return an error that names the level without a run or value; None if both levels have one."""
    run_levels = set(levels_of(frame, wanted.factor)) if frame.height else set()
    for level in (wanted.level, wanted.baseline):
        if run_levels and not any(same_level(level, run_level) for run_level in run_levels):
            title = evidence.title(wanted.factor, level)
            is_planned = any(
                same_level(level, all_levels(entry).get(wanted.factor))
                for entry in evidence.planned
            )
            return stats.NotComputable(
                f"no valid run of {title}" if is_planned else f"{title} was not run"
            )
        at_level = {wanted.factor: level}
        reason = not_compared.why_emulated(evidence, frame, wanted.response, at_level)
        reason = reason or not_compared.why_absent(evidence, frame, wanted.response, at_level)
        if reason:
            return reason
    return None


def _within_shares(result: Result, response: Response) -> Result:
    """Return the result. The interval of a difference of shares is clipped to −1 … 1."""
    if not response.share or not isinstance(result, stats.Difference):
        return result
    interval = result.interval
    low, high = max(-1.0, interval.low), min(1.0, interval.high)
    return replace(result, interval=replace(interval, low=low, high=high))


def _typical_difference(
    evidence: Evidence,
    frame: pl.DataFrame,
    wanted: Answer,
    level: float,
    within: tuple[str, Any] | None,
) -> stats.Difference | None:
    """Return the difference by ranks, or None if there are too few values for `level`.

    A value is a block's mean difference of the treatments that have both levels in it, because the
    runs of a block may depend on each other. Runs of the only block that differ only in this factor
    form two samples. An outlier shifts a mean by its whole error, but a rank by only one position.
    """
    compared_levels = [wanted.level, wanted.baseline]
    if within is not None:
        frame = frame.filter(rows_at(frame, dict([within])))
    pairs, blocks = matched(
        evidence, frame, wanted.response, wanted.factor, compared_levels, "plain"
    )
    of_blocks = [pairs[blocks == block].mean(axis=0) for block in np.unique(blocks)]
    means = np.array(of_blocks).reshape(-1, 2)
    kind, runs, strata = "blocks", 2 * len(pairs), len(means)
    interval = stats.paired_shift_by_ranks(means[:, 0], means[:, 1], level)
    if frame["block"].n_unique() == 1 and evidence.varied == [wanted.factor]:
        values = not_compared.comparable_values(evidence, frame, wanted.response)
        upper, lower = (
            values[rows_at(frame, {wanted.factor: compared_level}) & np.isfinite(values)]
            for compared_level in compared_levels
        )
        kind, runs, strata = "two samples", len(upper) + len(lower), 1
        interval = stats.shift_by_ranks(upper, lower, level)
    if (
        not isinstance(interval, stats.Interval)
        or interval.level < level
        or interval.low == interval.high
    ):
        return None
    return stats.Difference(
        wanted.factor, wanted.level, wanted.baseline, interval, strata, runs, len(means), kind
    )


def rank_companion(
    evidence: Evidence, wanted: Answer, level: float
) -> stats.Interval | stats.TooFew | stats.NotComputable:
    """Return the rank-based ratio, from one pair of log means per block.

    A pair uses only the treatments that have both levels in the block.
    """
    refusal = _refusal(evidence.usable, wanted.response)
    refusal = refusal or without_value(evidence, evidence.usable, wanted, None)
    if refusal is not None:
        return refusal
    fit = usable_fit(evidence, wanted.response)
    if isinstance(fit, (stats.NotPositive, dependent_rows.Dependent)):
        return fit
    log_means = block_table(
        evidence, wanted.response, wanted.factor, [wanted.level, wanted.baseline]
    )
    if not np.isfinite(log_means).all():
        return stats.NotComputable("unbounded in a block (loss)")
    return stats.paired_ratio_by_ranks(
        np.exp(log_means[:, 0] - log_means[:, 1]), np.ones(len(log_means)), level
    )


def _refusal(frame: pl.DataFrame, response: Response) -> stats.NotComputable | None:
    if frame.height == 0:
        return stats.NotComputable("no valid run")
    if not measured(frame, response):
        if response.energy:
            return stats.NotComputable("not available, because no meter measured energy")
        return stats.NotComputable("not measured in this campaign")
    shares = column(frame, response.column)
    if response.share and not (shares > 0).any():
        unknown = int(np.isnan(shares).sum())
        none = f"none in any of {frame.height - unknown} runs"
        if unknown:
            return stats.NotComputable(f"{none}; unknown in {words.plural(unknown, 'run')}")
        return stats.Never(none)
    return None


def without_value(
    evidence: Evidence, frame: pl.DataFrame, wanted: Answer, within: tuple[str, Any] | None
) -> stats.NotComputable | None:
    """Return the reason if runs at either level have no comparable value, else None."""
    held_levels = {} if within is None else {within[0]: within[1]}
    for level in (wanted.level, wanted.baseline):
        reason = not_compared.why_not(
            evidence, frame, wanted.response, {wanted.factor: level, **held_levels}
        )
        if reason:
            return reason
    return None
