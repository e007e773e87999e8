"""Answer the study's questions with contrasts within blocks and simultaneous intervals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wattwire import stats
from wattwire.analysis import not_compared
from wattwire.analysis.controls import noise
from wattwire.analysis.dataset import Evidence, levels_of, levels_run, order_of, same_level
from wattwire.analysis.responses import Response, measured, resolve
from wattwire.model import words
from wattwire.model.derived import FloatArray, column

CONFIDENCE = 0.95
CHANGE_MIN = 1.25
"""Minimum quotient of a ratio's values at two levels that counts as a change."""
Result = stats.Ratio | stats.Difference | stats.TooFew | stats.NotComputable
NUMBER = (stats.Ratio, stats.Difference)


@dataclass(frozen=True)
class Answer:
    """Comparison of a level with its baseline in a response.

    `with_all` is the result with excluded runs included.
    """

    question: str
    response: Response
    factor: str
    level: Any
    baseline: Any
    result: Result
    with_all: Result
    by_ranks: stats.Interval | stats.TooFew | stats.NotComputable | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """The column of the response, the factor and the level as text."""
        return self.response.column, self.factor, str(self.level)

    @property
    def interval(self) -> stats.Interval:
        """The interval of the ratio or difference. Raise ValueError if there is no interval."""
        if not isinstance(self.result, NUMBER):
            raise ValueError(f"{self.response.title}: {self.result}")
        return self.result.interval


@dataclass(frozen=True)
class Answers:
    """All answers of the study.

    The intervals are simultaneous over the family of all numeric answers.
    """

    items: tuple[Answer, ...]
    family: int
    level: float
    margin: float | None
    block_count: int
    family_of_all: int = 1
    noise: dict[str, float] = field(default_factory=dict)
    """Noise floor as a |log ratio|, by the response's column; empty without control runs."""
    plain_noise: dict[str, float] = field(default_factory=dict)
    """Noise floor as a |difference| in the response's unit."""

    dependent: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    """Key of an answer → the other factor between whose levels its conclusions disagree."""

    def outcome(self, answer: Answer) -> str:
        """Return "different", "equivalent", "undecided", "within noise" or "depends".

        "Within noise" means that identical A/A labels may differ by as much as the levels do.
        "Depends" means that levels of another factor contradict each other, so that no conclusion
        over all of them holds.
        """
        return "depends" if answer.key in self.dependent else self.conclusion(answer)

    def conclusion(self, answer: Answer) -> str:
        """Return the outcome of the result alone, without regard to the levels of other factors.

        A difference is never "equivalent", because the margin is a share.
        """
        interval, column = answer.interval, answer.response.column
        if isinstance(answer.result, stats.Difference):
            conclusion = "different" if interval.excludes(0.0) else "undecided"
            effect, noise = abs(interval.estimate), self.plain_noise.get(column, 0.0)
        else:
            conclusion = stats.conclusion(interval, self.margin)
            effect, noise = abs(math.log(interval.estimate)), self.noise.get(column, 0.0)
        return "within noise" if conclusion == "different" and effect <= noise else conclusion

    def computed(self) -> list[Answer]:
        """Return the answers that are ratios."""
        return [item for item in self.items if isinstance(item.result, stats.Ratio)]

    def differences(self) -> list[Answer]:
        """Return the answers that are differences because a run's value has no logarithm."""
        return [item for item in self.items if isinstance(item.result, stats.Difference)]


def planned_baseline(evidence: Evidence, factor: str) -> Any:
    """Return the factor's baseline level: the study's baseline, or else the first level."""
    stated = evidence.study.answers.baseline.get(factor)
    levels = evidence.factors.get(factor, ())
    for level in levels:
        if stated is not None and same_level(level, stated):
            return level
    return levels[0] if levels else None


def baseline_of(evidence: Evidence, factor: str) -> Any:
    """Return the planned baseline, or the first level with a valid run if the baseline has none.

    Without data at the baseline, no answer would have a number. The first level is used instead of
    the best level, because choosing the baseline by its response would invalidate the intervals.
    (`lowest` compares with the best.)
    """
    if factor not in evidence.baselines:
        planned = planned_baseline(evidence, factor)
        levels_with_runs = set(levels_of(evidence.usable, factor))
        candidates = (planned, *evidence.factors.get(factor, ()))
        evidence.baselines[factor] = next(
            (
                candidate
                for candidate in candidates
                if any(same_level(candidate, level) for level in levels_with_runs)
            ),
            planned,
        )
    return evidence.baselines[factor]


def baseline_in(evidence: Evidence, factor: str, response: Response) -> Any:
    """Return the baseline level for one response.

    If runs of the common baseline have no comparable value, it is the first level whose runs all
    have a comparable value, provided that there is a second such level to compare with.
    """
    baseline = baseline_of(evidence, factor)
    if not not_compared.without_value(evidence, evidence.usable, response).any():
        return baseline
    comparable = [
        level
        for level in dict.fromkeys((baseline, *levels_run(evidence, factor)))
        if not not_compared.why_not(evidence, evidence.usable, response, {factor: level})
    ]
    return comparable[0] if len(comparable) > 1 else baseline


def answer_all(evidence: Evidence) -> Answers:
    """Answer each question of the study, with intervals that are simultaneous over all answers."""
    planned = _planned_contrasts(evidence)
    drafts = [_draft(evidence, *item) for item in planned]
    all_runs = evidence.usable
    if evidence.excluded.height:
        all_runs = pl.concat([evidence.usable, evidence.excluded], how="diagonal_relaxed")
    family = _family(evidence, evidence.usable, drafts)
    confidence = interval_confidence(evidence)
    level = stats.bonferroni(confidence, family)
    family_of_all = _family(evidence, all_runs, drafts)
    level_of_all = stats.bonferroni(confidence, family_of_all)
    items = []
    for draft in drafts:
        items.append(
            replace(
                draft,
                result=contrast(evidence, evidence.usable, draft, level),
                with_all=contrast(evidence, all_runs, draft, level_of_all),
                by_ranks=rank_companion(evidence, draft, level),
            )
        )
    blocks = evidence.usable["block"].n_unique() if evidence.usable.height else 0
    margin = evidence.study.answers.margin
    answers = Answers(
        tuple(items), family, level, margin, blocks, family_of_all,
        noise(evidence), noise(evidence, "plain"),
    )  # fmt: skip
    numbers = [*answers.computed(), *answers.differences()]
    others = {item.key: _disagreeing(evidence, answers, item) for item in numbers}
    return replace(answers, dependent={key: other for key, other in others.items() if other})


def _disagreeing(evidence: Evidence, answers: Answers, answer: Answer) -> str:
    """Return the first other varied factor whose levels contradict each other or the answer."""
    is_ratio = isinstance(answer.result, stats.Ratio)
    for other in evidence.varied:
        results = [
            contrast(evidence, evidence.usable, answer, CONFIDENCE, (other, level))
            for level in (evidence.factors[other] if other != answer.factor else ())
        ]
        numbers = [result for result in results if isinstance(result, NUMBER)]
        strata = [replace(answer, result=result) for result in numbers]
        conclusions = [(answers.conclusion(item), item.interval) for item in strata]
        margin = answers.margin if is_ratio else None
        if contradict(conclusions, answers.conclusion(answer), margin, 1.0 if is_ratio else 0.0):
            return other
    return ""


def contradict(
    levels: Sequence[tuple[str, stats.Interval]],
    pooled: str,
    margin: float | None,
    no_effect: float = 1.0,
) -> bool:
    """Return whether the conclusions at `levels` contradict each other or the `pooled` conclusion.

    Levels contradict each other if one is higher and another lower than the baseline, or if one is
    equivalent and another differs, with ratios at least CHANGE_MIN apart. A level contradicts an
    equivalent conclusion if its whole interval is beyond the margin. Without a margin, as for
    differences, no conclusion is "equivalent".
    """
    different = [interval for conclusion, interval in levels if conclusion == "different"]
    if len({interval.estimate > no_effect for interval in different}) > 1:
        return True
    if margin is None:
        return False
    equivalent = [interval for conclusion, interval in levels if conclusion == "equivalent"]
    if any(_far_apart(*pair) for pair in itertools.product(equivalent, different)):
        return True
    return pooled == "equivalent" and any(
        interval.low > 1 + margin or interval.high < 1 / (1 + margin) for interval in different
    )


def _far_apart(one: stats.Interval, other: stats.Interval) -> bool:
    """Return whether two ratios are at least CHANGE_MIN apart and their intervals are disjoint."""
    distance = abs(math.log(one.estimate / other.estimate))
    is_disjoint = one.high < other.low or other.high < one.low
    return is_disjoint and distance >= math.log(CHANGE_MIN)


def interval_confidence(evidence: Evidence) -> float:
    """Return the confidence level of an interval before the correction for its family.

    Repeated looks at the width reduce the coverage, so the level is then above CONFIDENCE.
    """
    has_looks = bool(evidence.study.plan.stop_width)
    return stats.sequential.INNER_CONFIDENCE if has_looks else CONFIDENCE


def _family(evidence: Evidence, frame: pl.DataFrame, drafts: Sequence[Answer]) -> int:
    """Return the number of distinct numeric answers, at least 1.

    The number depends on the available runs and meters, not on the measured values.
    """
    answered = {
        (draft.response.column, draft.factor, str(draft.level))
        for draft in drafts
        if isinstance(contrast(evidence, frame, draft, CONFIDENCE), NUMBER)
    }
    return max(1, len(answered))


def _draft(
    evidence: Evidence, question: str, response: Response, factor: str, level: Any
) -> Answer:
    pending = stats.NotComputable("not computed")
    baseline = baseline_in(evidence, factor, response)
    return Answer(question, response, factor, level, baseline, pending, pending)


def _planned_contrasts(evidence: Evidence) -> list[tuple[str, Response, str, Any]]:
    planned = []
    for question in evidence.study.questions:
        for name in question.responses:
            for factor in question.factors:
                response = resolve(name, evidence.described)
                baseline = baseline_in(evidence, factor, response)
                for level in evidence.factors.get(factor, ()):
                    if not same_level(level, baseline):
                        planned.append((question.id, response, factor, level))
    return planned


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
        at_level = [same_level(level, within[1]) for level in levels_of(frame, within[0])]
        frame, scope, within = frame.filter(pl.Series(at_level)), f"{scope} at {within}", None
    refusal = _refusal(frame, wanted.response) or without_value(evidence, frame, wanted, within)
    refusal = _without_run(evidence, frame, wanted) or refusal
    refusal = refusal or _without_scatter(evidence, frame, wanted, within)
    if refusal is not None:
        return refusal
    arguments = (wanted.factor, wanted.level, wanted.baseline, level, within)
    names = (
        evidence.title(wanted.factor, wanted.level), evidence.title(wanted.factor, wanted.baseline)
    )  # fmt: skip
    fit = _cached_fit(evidence, frame, wanted.response, scope)
    if isinstance(fit, stats.NotPositive) or wanted.response.share:
        by_ranks = _typical_difference(evidence, frame, wanted, level, within)
        if by_ranks is not None:
            return _within_shares(by_ranks, wanted.response)
        fit = _cached_fit(evidence, frame, wanted.response, scope, "plain")
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
        at_level = [same_level(level, within[1]) for level in levels_of(frame, within[0])]
        frame = frame.filter(pl.Series(at_level))
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
    """Return an error that names the level without a run; None if both levels have runs."""
    run_levels = set(levels_of(frame, wanted.factor)) if frame.height else set()
    for level in (wanted.level, wanted.baseline):
        if run_levels and not any(same_level(level, run_level) for run_level in run_levels):
            return stats.NotComputable(f"no valid run of {evidence.title(wanted.factor, level)}")
        reason = not_compared.why_emulated(evidence, frame, wanted.response, {wanted.factor: level})
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
    """Return the difference by ranks. A pair is a treatment with both levels in one block.

    Runs of a block that differ only in this factor form two samples. If there are too few pairs for
    `level`, the result is the mean over pairs with a t interval, or None without an interval. An
    outlier shifts a mean by its whole error, but a rank by only one position.
    """
    compared_levels = [wanted.level, wanted.baseline]
    if within is not None:
        at_level = [same_level(level, within[1]) for level in levels_of(frame, within[0])]
        frame = frame.filter(pl.Series(at_level))
    pairs, blocks = matched(
        evidence, frame, wanted.response, wanted.factor, compared_levels, "plain"
    )
    kind, runs, strata = "pairs", 2 * len(pairs), len(pairs)
    interval = stats.paired_shift_by_ranks(pairs[:, 0], pairs[:, 1], level)
    if frame["block"].n_unique() == 1 and evidence.varied == [wanted.factor]:
        values, run_levels = column(frame, wanted.response.column), levels_of(frame, wanted.factor)
        upper, lower = (
            values[
                [same_level(run_level, compared_level) for run_level in run_levels]
                & np.isfinite(values)
            ]
            for compared_level in compared_levels
        )
        kind, runs, strata = "two samples", len(upper) + len(lower), 1
        interval = stats.shift_by_ranks(upper, lower, level)
    if isinstance(interval, stats.Interval) and interval.level < level and kind == "pairs":
        interval = stats.TooFew(len(pairs), len(pairs) + 1, "pairs for this confidence level")
    if isinstance(interval, stats.TooFew) and frame["block"].n_unique() > 1:
        # The error comes only from these pairs, so an outlier does not affect other contrasts.
        (interval,), kind = stats.block_intervals([pairs[:, 0] - pairs[:, 1]], level), "pair means"
    if (
        not isinstance(interval, stats.Interval)
        or interval.level < level
        or interval.low == interval.high
    ):
        return None
    return stats.Difference(
        wanted.factor, wanted.level, wanted.baseline, interval, strata, runs,
        len(set(blocks.tolist())), kind,
    )  # fmt: skip


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
    if isinstance(fit, stats.NotPositive):
        return fit
    log_means = block_table(
        evidence, wanted.response, wanted.factor, [wanted.level, wanted.baseline]
    )
    if not np.isfinite(log_means).all():
        return stats.NotComputable("unbounded in a block (loss)")
    return stats.paired_ratio_by_ranks(
        np.exp(log_means[:, 0] - log_means[:, 1]), np.ones(len(log_means)), level
    )


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
    values, run_levels = column(frame, response.column), levels_of(frame, factor)
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
        apart = f"; unknown in {words.plural(unknown, 'run')}" if unknown else ""
        return stats.NotComputable(f"none in any of {frame.height - unknown} runs{apart}")
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
        return stats.fit_plain(values[known], blocks, factors, order=order)
    return stats.fit_log(
        values[known], blocks, factors, None if covariate is None else covariate[known], order
    )


def usable_fit(
    evidence: Evidence, response: Response, scale: str = "log"
) -> stats.Fit | stats.TooFew | stats.NotComputable:
    """Return the cached model of one response over the valid runs."""
    return _cached_fit(evidence, evidence.usable, response, "usable", scale)


def answering_fit(
    evidence: Evidence, response: Response
) -> stats.Fit | stats.TooFew | stats.NotComputable:
    """Return the model that the answers use; untransformed if a run has no logarithm."""
    fit = usable_fit(evidence, response)
    plain = isinstance(fit, stats.NotPositive) or response.share
    return usable_fit(evidence, response, "plain") if plain else fit


def _cached_fit(
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
