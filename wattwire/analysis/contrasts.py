"""The study's questions answered: ratios inside blocks, and the family they hold in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wattwire import stats
from wattwire.analysis import not_compared
from wattwire.analysis.controls import noise
from wattwire.analysis.dataset import Evidence, levels_of, levels_run, same_level
from wattwire.analysis.responses import Response, measured, resolve
from wattwire.model.derived import FloatArray, column

CONFIDENCE = 0.95
Result = stats.Ratio | stats.Difference | stats.TooFew | stats.NotComputable
NUMBER = (stats.Ratio, stats.Difference)


@dataclass(frozen=True)
class Answer:
    """One level against its baseline in one response; `with_all` includes set-aside runs."""

    question: str
    response: Response
    factor: str
    level: Any
    baseline: Any
    result: Result
    with_all: Result
    by_ranks: stats.Interval | stats.TooFew | stats.NotComputable | None = None

    @property
    def interval(self) -> stats.Interval:
        """The interval of ratio or difference. Raises ValueError where there is no number."""
        if not isinstance(self.result, NUMBER):
            raise ValueError(f"{self.response.title}: {self.result}")
        return self.result.interval


@dataclass(frozen=True)
class Answers:
    """Every answer of the study and the family they hold in together."""

    items: tuple[Answer, ...]
    family: int
    level: float
    margin: float | None
    block_count: int
    family_of_all: int = 1
    noise: dict[str, float] = field(default_factory=dict)
    """Noise floor as a |log ratio|, by the response's column, where there are control runs."""
    plain_noise: dict[str, float] = field(default_factory=dict)
    """Noise floor as a |difference| in the response's unit."""

    def outcome(self, answer: Answer) -> str:
        """ "different", "equivalent", "undecided", or "within noise": claimed by no one.

        A difference is not claimed where two identical labels may differ by as much.
        """
        if isinstance(answer.result, stats.Difference):
            return self._of_difference(answer)
        found = stats.verdict(answer.interval, self.margin)
        effect = abs(math.log(answer.interval.estimate))
        if found == "different" and effect <= self.noise.get(answer.response.column, 0.0):
            return "within noise"
        return found

    def _of_difference(self, answer: Answer) -> str:
        """The margin is a share: a difference in the response's unit is never equivalent."""
        if not answer.interval.excludes(0.0):
            return "undecided"
        noise = self.plain_noise.get(answer.response.column, 0.0)
        return "within noise" if abs(answer.interval.estimate) <= noise else "different"

    def computed(self) -> list[Answer]:
        """Answers that are a ratio."""
        return [item for item in self.items if isinstance(item.result, stats.Ratio)]

    def differences(self) -> list[Answer]:
        """Answers that are a difference, since a run of theirs has no logarithm."""
        return [item for item in self.items if isinstance(item.result, stats.Difference)]


def planned_baseline(evidence: Evidence, factor: str) -> Any:
    """The level that a factor's other levels are compared with: named in the study, or first."""
    named = evidence.study.get("answers", {}).get("baseline", {}).get(factor)
    levels = evidence.factors.get(factor, ())
    for level in levels:
        if named is not None and same_level(level, named):
            return level
    return levels[0] if levels else None


def baseline_of(evidence: Evidence, factor: str) -> Any:
    """Return the planned baseline, or where it has no usable run the first level that has one.

    Against a level without data no answer has a number. The first one is taken, not the best:
    a baseline chosen by its response would void the intervals (`lowest` compares with the best).
    """
    if factor not in evidence.baselines:
        planned = planned_baseline(evidence, factor)
        seen = set(levels_of(evidence.usable, factor))
        candidates = (planned, *evidence.factors.get(factor, ()))
        evidence.baselines[factor] = next(
            (one for one in candidates if any(same_level(one, level) for level in seen)), planned
        )
    return evidence.baselines[factor]


def baseline_in(evidence: Evidence, factor: str, response: Response) -> Any:
    """Return the level that others are compared with in one response.

    That of all responses, or where runs of it have no value to compare the first level whose runs
    all have one, as long as there is another such level to compare with it.
    """
    baseline = baseline_of(evidence, factor)
    if not not_compared.without_value(evidence.usable, response).any():
        return baseline
    whole = [
        level
        for level in dict.fromkeys((baseline, *levels_run(evidence, factor)))
        if not not_compared.why_not(evidence, evidence.usable, response, {factor: level})
    ]
    return whole[0] if len(whole) > 1 else baseline


def answer_all(evidence: Evidence) -> Answers:
    """Answer each question of the study with simultaneous intervals over all of them."""
    wanted = _wanted(evidence)
    drafts = [_draft(evidence, *item) for item in wanted]
    everything = evidence.usable
    if evidence.set_aside.height:
        everything = pl.concat([evidence.usable, evidence.set_aside], how="diagonal_relaxed")
    family = _family(evidence, evidence.usable, drafts)
    # Looking at the width again and again costs coverage; a higher level inside pays for it.
    inner = CONFIDENCE
    if evidence.study.get("plan", {}).get("stop_width"):
        inner = stats.sequential.INNER_CONFIDENCE
    level = stats.bonferroni(inner, family)
    family_of_all = _family(evidence, everything, drafts)
    level_of_all = stats.bonferroni(inner, family_of_all)
    items = []
    for draft in drafts:
        items.append(
            replace(
                draft,
                result=contrast(evidence, evidence.usable, draft, level),
                with_all=contrast(evidence, everything, draft, level_of_all),
                by_ranks=rank_companion(evidence, draft, level),
            )
        )
    blocks = evidence.usable["block"].n_unique() if evidence.usable.height else 0
    margin = evidence.study.get("answers", {}).get("margin")
    return Answers(
        tuple(items), family, level, margin, blocks, family_of_all,
        noise(evidence), noise(evidence, "plain"),
    )  # fmt: skip


def _family(evidence: Evidence, frame: pl.DataFrame, drafts: Sequence[Answer]) -> int:
    """How many different answers get a number: by what could be run and metered, not by how."""
    found = {
        (draft.response.column, draft.factor, str(draft.level))
        for draft in drafts
        if isinstance(contrast(evidence, frame, draft, CONFIDENCE), NUMBER)
    }
    return max(1, len(found))


def _draft(
    evidence: Evidence, question: str, response: Response, factor: str, level: Any
) -> Answer:
    pending = stats.NotComputable("not computed")
    baseline = baseline_in(evidence, factor, response)
    return Answer(question, response, factor, level, baseline, pending, pending)


def _wanted(evidence: Evidence) -> list[tuple[str, Response, str, Any]]:
    found = []
    for question in evidence.study.get("question", []):
        for name in question.get("responses", []):
            for factor in question.get("factors", []):
                response = resolve(name, evidence.described)
                baseline = baseline_in(evidence, factor, response)
                for level in evidence.factors.get(factor, ()):
                    if not same_level(level, baseline):
                        found.append((str(question.get("id", "")), response, factor, level))
    return found


def contrast(
    evidence: Evidence,
    frame: pl.DataFrame,
    wanted: Answer,
    level: float,
    within: tuple[str, Any] | None = None,
) -> Result:
    """One ratio from the runs of `frame`, at `level`; `within` holds another factor fixed.

    Where a run has no logarithm, all contrasts of that response are differences; so are those of
    a share, whose ratio says little where it is near 0.
    """
    scope = "usable" if frame is evidence.usable else "all"
    if within is not None and frame.height and frame["block"].n_unique() == 1:
        # One block has no error within treatments: main effects among the runs at that level.
        at_level = [same_level(level, within[1]) for level in levels_of(frame, within[0])]
        frame, scope, within = frame.filter(pl.Series(at_level)), f"{scope} at {within}", None
    refused = _refused(frame, wanted.response) or without_value(evidence, frame, wanted, within)
    if refused is not None:
        return refused
    asked = (wanted.factor, wanted.level, wanted.baseline, level, within)
    names = (
        evidence.title(wanted.factor, wanted.level), evidence.title(wanted.factor, wanted.baseline)
    )  # fmt: skip
    fit = _remembered(evidence, frame, wanted.response, scope)
    if isinstance(fit, stats.NotPositive) or wanted.response.share:
        ranked = _typical_difference(evidence, frame, wanted, level, within)
        if ranked is not None:
            return ranked
        fit = _remembered(evidence, frame, wanted.response, scope, "plain")
        return stats.difference(fit, *asked, names) if isinstance(fit, stats.Fit) else fit
    return stats.ratio(fit, *asked, names) if isinstance(fit, stats.Fit) else fit


def _typical_difference(
    evidence: Evidence,
    frame: pl.DataFrame,
    wanted: Answer,
    level: float,
    within: tuple[str, Any] | None,
) -> stats.Difference | None:
    """The difference by ranks: a pair is a treatment that holds both levels in one block.

    Runs of one block that differ in nothing else are two samples. Where ranks are too few for
    `level`, the mean over pairs by t; None where that has none either. One run gone wrong moves
    a mean by all it is off, and ranks by one place.
    """
    both = [wanted.level, wanted.baseline]
    if within is not None:
        at_level = [same_level(level, within[1]) for level in levels_of(frame, within[0])]
        frame = frame.filter(pl.Series(at_level))
    pairs, blocks = matched(evidence, frame, wanted.response, wanted.factor, both, "plain")
    kind, runs, strata = "pairs", 2 * len(pairs), len(pairs)
    found = stats.paired_shift_by_ranks(pairs[:, 0], pairs[:, 1], level)
    if frame["block"].n_unique() == 1 and evidence.varied == [wanted.factor]:
        values, sides = column(frame, wanted.response.column), levels_of(frame, wanted.factor)
        upper, lower = (
            values[[same_level(one, side) for one in sides] & np.isfinite(values)] for side in both
        )
        kind, runs, strata = "two samples", len(upper) + len(lower), 1
        found = stats.shift_by_ranks(upper, lower, level)
    if isinstance(found, stats.Interval) and found.level < level and kind == "pairs":
        found = stats.TooFew(len(pairs), len(pairs) + 1, "pairs for so high a level")
    if isinstance(found, stats.TooFew) and frame["block"].n_unique() > 1:
        # The error of these pairs alone: one run gone wrong elsewhere, or here, shows in no other.
        (found,), kind = stats.block_intervals([pairs[:, 0] - pairs[:, 1]], level), "pair means"
    if not isinstance(found, stats.Interval) or found.level < level or found.low == found.high:
        return None
    return stats.Difference(
        wanted.factor, wanted.level, wanted.baseline, found, strata, runs,
        len(set(blocks.tolist())), kind,
    )  # fmt: skip


def rank_companion(
    evidence: Evidence, wanted: Answer, level: float
) -> stats.Interval | stats.TooFew | stats.NotComputable:
    """The ratio by ranks: one pair per block, over the treatments that hold both levels there."""
    refused = _refused(evidence.usable, wanted.response)
    refused = refused or without_value(evidence, evidence.usable, wanted, None)
    if refused is not None:
        return refused
    fit = usable_fit(evidence, wanted.response)
    if isinstance(fit, stats.NotPositive):
        return fit
    sides = block_table(evidence, wanted.response, wanted.factor, [wanted.level, wanted.baseline])
    if not np.isfinite(sides).all():
        return stats.NotComputable("unbounded in a block (loss)")
    return stats.paired_ratio_by_ranks(
        np.exp(sides[:, 0] - sides[:, 1]), np.ones(len(sides)), level
    )


def block_table(
    evidence: Evidence, response: Response, factor: str, levels: Sequence[Any]
) -> FloatArray:
    """Mean log response of each block at each level, shape (blocks, levels).

    The mean is over the combinations of the other factors that hold every level in that block;
    a block without one is left out. +inf stands for a response without a bound (loss).
    """
    means, block = matched(evidence, evidence.usable, response, factor, levels)
    size = int(block.max()) + 1 if block.size else 0
    table = np.zeros((size, len(levels)))
    np.add.at(table, block, means)
    held = np.bincount(block, minlength=size)
    return np.asarray(table[held > 0] / held[held > 0, None], dtype=np.float64)


def matched(
    evidence: Evidence,
    frame: pl.DataFrame,
    response: Response,
    factor: str,
    levels: Sequence[Any],
    scale: str = "log",
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Means of a block's runs that differ in `factor` alone, and the number of their block.

    Shapes (combinations, levels), of those that hold every level, and (combinations,).
    """
    values, sides = column(frame, response.column), levels_of(frame, factor)
    if scale == "log":
        values = np.log(np.where(values > 0, values, math.nan))
    place_of = {
        side: next((i for i, one in enumerate(levels) if same_level(side, one)), -1)
        for side in set(sides)
    }
    place = np.array([place_of[side] for side in sides], dtype=np.int64)
    kept = np.flatnonzero((place >= 0) & ~np.isnan(values)).tolist()
    others = [levels_of(frame, name) for name in evidence.varied if name != factor]
    blocks = frame["block"].to_list()
    # A cell is a block's combination of the other factors, numbered as its first value comes.
    cells: dict[tuple[Any, ...], int] = {}
    rows = list(zip(blocks, *others, strict=True))
    cell = np.array([cells.setdefault(rows[at], len(cells)) for at in kept], dtype=np.int64)
    shape = (len(cells), len(levels))
    slot, size = cell * len(levels) + place[kept], len(cells) * len(levels)
    counts = np.bincount(slot, minlength=size).reshape(shape)
    sums = np.bincount(slot, values[kept], size).reshape(shape)
    whole = (counts > 0).all(axis=1)
    met = {block: at for at, block in enumerate(dict.fromkeys(key[0] for key in cells))}
    block = np.array([met[key[0]] for key in cells], dtype=np.int64)[whole]
    return np.asarray(sums[whole] / counts[whole], dtype=np.float64), block


def _refused(frame: pl.DataFrame, response: Response) -> stats.NotComputable | None:
    if frame.height == 0:
        return stats.NotComputable("no usable run")
    if not measured(frame, response):
        if response.energy:
            return stats.NotComputable("cannot be answered here: no meter measured energy")
        return stats.NotComputable("not measured in this campaign")
    if response.share and not (column(frame, response.column) > 0).any():
        return stats.NotComputable(f"none in any of {frame.height} runs")
    return None


def without_value(
    evidence: Evidence, frame: pl.DataFrame, wanted: Answer, within: tuple[str, Any] | None
) -> stats.NotComputable | None:
    """Return which side has runs without a value to compare; None where neither has."""
    held = {} if within is None else {within[0]: within[1]}
    for level in (wanted.level, wanted.baseline):
        found = not_compared.why_not(
            evidence, frame, wanted.response, {wanted.factor: level, **held}
        )
        if found:
            return found
    return None


def fit_of(
    evidence: Evidence,
    frame: pl.DataFrame,
    response: Response,
    covariate: FloatArray | None = None,
    scale: str = "log",
) -> stats.Fit | stats.TooFew | stats.NotComputable:
    """The blocked model of a response over all varied factors, on the log or the plain scale.

    Treatments of which a run has no value to compare are left out of it, whole.
    """
    values = column(frame, response.column)
    known = not_compared.compared(evidence, frame, response)
    factors = {}
    for name in evidence.varied:
        had = levels_of(frame, name)
        planned = {level: _planned(evidence, name, level) for level in set(had)}
        factors[name] = [planned[level] for level in had]
    kept = [i for i, keep in enumerate(known) if keep]
    places = frame["block"].to_list()
    blocks = [places[i] for i in kept]
    factors = {name: [levels[i] for i in kept] for name, levels in factors.items()}
    if scale == "plain":
        return stats.fit_plain(values[known], blocks, factors)
    return stats.fit_log(
        values[known], blocks, factors, None if covariate is None else covariate[known]
    )


def usable_fit(
    evidence: Evidence, response: Response, scale: str = "log"
) -> stats.Fit | stats.TooFew | stats.NotComputable:
    """The model behind the answers in one response, over the usable runs."""
    return _remembered(evidence, evidence.usable, response, "usable", scale)


def answering_fit(
    evidence: Evidence, response: Response
) -> stats.Fit | stats.TooFew | stats.NotComputable:
    """The model that the answers really rest on: plain where a run has no logarithm."""
    fit = usable_fit(evidence, response)
    plain = isinstance(fit, stats.NotPositive) or response.share
    return usable_fit(evidence, response, "plain") if plain else fit


def _remembered(
    evidence: Evidence, frame: pl.DataFrame, response: Response, scope: str, scale: str = "log"
) -> stats.Fit | stats.TooFew | stats.NotComputable:
    key = (response.column, scope if scale == "log" else f"{scope}, {scale}")
    if key not in evidence.fits:
        evidence.fits[key] = fit_of(evidence, frame, response, scale=scale)
    found: stats.Fit | stats.TooFew | stats.NotComputable = evidence.fits[key]
    return found


def _planned(evidence: Evidence, factor: str, level: Any) -> Any:
    for planned in evidence.factors[factor]:
        if same_level(planned, level):
            return planned
    return level
