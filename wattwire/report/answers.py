"""The study's questions answered: ratios inside blocks, their family, their sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.report import words
from wattwire.report.controls import noise
from wattwire.report.evidence import Evidence, FloatArray, column, levels_of, same_level
from wattwire.report.responses import Response, measured, resolve

CONFIDENCE = 0.95
Result = stats.Ratio | stats.TooFew | stats.NotComputable


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
        """The ratio's interval. Raises ValueError where there is no number."""
        if not isinstance(self.result, stats.Ratio):
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
    """|log ratio| of two identical labels, by the response's column, where there are controls."""

    def outcome(self, answer: Answer) -> str:
        """ "different", "equivalent", "undecided", or "within noise": claimed by no one.

        A difference is not claimed where two identical labels differed by as much.
        """
        found = stats.verdict(answer.interval, self.margin)
        effect = abs(math.log(answer.interval.estimate))
        if found == "different" and effect <= self.noise.get(answer.response.column, 0.0):
            return "within noise"
        return found

    def computed(self) -> list[Answer]:
        """Answers that carry a number."""
        return [item for item in self.items if isinstance(item.result, stats.Ratio)]


def baseline_of(evidence: Evidence, factor: str) -> Any:
    """The level that a factor's other levels are compared with: named in the study, or first."""
    named = evidence.study.get("answers", {}).get("baseline", {}).get(factor)
    levels = evidence.factors.get(factor, ())
    for level in levels:
        if named is not None and same_level(level, named):
            return level
    return levels[0] if levels else None


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
    return Answers(tuple(items), family, level, margin, blocks, family_of_all, noise(evidence))


def _family(evidence: Evidence, frame: pl.DataFrame, drafts: Sequence[Answer]) -> int:
    """How many different answers get a number: by what could be run and metered, not by how."""
    found = {
        (draft.response.column, draft.factor, str(draft.level))
        for draft in drafts
        if isinstance(contrast(evidence, frame, draft, CONFIDENCE), stats.Ratio)
    }
    return max(1, len(found))


def _draft(
    evidence: Evidence, question: str, response: Response, factor: str, level: Any
) -> Answer:
    pending = stats.NotComputable("not computed")
    baseline = baseline_of(evidence, factor)
    return Answer(question, response, factor, level, baseline, pending, pending)


def _wanted(evidence: Evidence) -> list[tuple[str, Response, str, Any]]:
    found = []
    for question in evidence.study.get("question", []):
        for name in question.get("responses", []):
            for factor in question.get("factors", []):
                for level in evidence.factors.get(factor, ()):
                    if not same_level(level, baseline_of(evidence, factor)):
                        response = resolve(name, evidence.described)
                        found.append((str(question.get("id", "")), response, factor, level))
    return found


def contrast(
    evidence: Evidence,
    frame: pl.DataFrame,
    wanted: Answer,
    level: float,
    within: tuple[str, Any] | None = None,
) -> Result:
    """One ratio from the runs of `frame`, at `level`; `within` holds another factor fixed."""
    scope = "usable" if frame is evidence.usable else "all"
    if within is not None and frame.height and frame["block"].n_unique() == 1:
        # One block has no error within treatments: main effects among the runs at that level.
        at_level = [same_level(level, within[1]) for level in levels_of(frame, within[0])]
        frame, scope, within = frame.filter(pl.Series(at_level)), f"{scope} at {within}", None
    refused = _refused(frame, wanted.response)
    if refused is not None:
        return refused
    key = (wanted.response.column, scope)
    if key not in evidence.fits:
        evidence.fits[key] = fit_of(evidence, frame, wanted.response)
    fit = evidence.fits[key]
    if not isinstance(fit, stats.Fit):
        return fit
    return stats.ratio(fit, wanted.factor, wanted.level, wanted.baseline, level, within)


def rank_companion(
    evidence: Evidence, wanted: Answer, level: float
) -> stats.Interval | stats.TooFew | stats.NotComputable:
    """The ratio by ranks: one pair per block, over the treatments that hold both levels there."""
    refused = _refused(evidence.usable, wanted.response)
    if refused is not None:
        return refused
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
    frame = evidence.usable
    others = [name for name in evidence.varied if name != factor]
    keys = list(zip(*[levels_of(frame, name) for name in others], strict=True))
    values, sides = column(frame, response.column), levels_of(frame, factor)
    place_of = {
        side: next((i for i, one in enumerate(levels) if same_level(side, one)), None)
        for side in set(sides)
    }
    cells: dict[Any, dict[Any, dict[int, float]]] = {}
    for at, block in enumerate(frame["block"].to_list()):
        place = place_of[sides[at]]
        if place is not None and values[at] > 0:
            key = keys[at] if keys else ()
            cells.setdefault(block, {}).setdefault(key, {})[place] = math.log(values[at])
    rows = []
    for treatments in cells.values():
        whole = [one for one in treatments.values() if len(one) == len(levels)]
        if whole:
            rows.append([float(np.mean([one[i] for one in whole])) for i in range(len(levels))])
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(levels))


def _refused(frame: pl.DataFrame, response: Response) -> stats.NotComputable | None:
    if frame.height == 0:
        return stats.NotComputable("no usable run")
    if not measured(frame, response):
        if response.energy:
            return stats.NotComputable("cannot be answered here: no meter measured energy")
        return stats.NotComputable("not measured in this campaign")
    if response.share:
        values = column(frame, response.column)
        hit = int((values > 0).sum())
        return stats.NotComputable(
            f"a share, not a ratio: above zero in {hit} of {len(values)} runs; see the counts"
        )
    return None


def fit_of(
    evidence: Evidence,
    frame: pl.DataFrame,
    response: Response,
    covariate: FloatArray | None = None,
    scale: str = "log",
) -> stats.Fit | stats.TooFew | stats.NotComputable:
    """The blocked model of a response over all varied factors, on the log or the plain scale."""
    values = column(frame, response.column)
    known = values == values  # NaN marks runs that could not give this response
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
    evidence: Evidence, response: Response
) -> stats.Fit | stats.TooFew | stats.NotComputable:
    """The model behind the answers in one response, over the usable runs."""
    key = (response.column, "usable")
    if key not in evidence.fits:
        evidence.fits[key] = fit_of(evidence, evidence.usable, response)
    return evidence.fits[key]


def _planned(evidence: Evidence, factor: str, level: Any) -> Any:
    for planned in evidence.factors[factor]:
        if same_level(planned, level):
            return planned
    return level


def sentence_of_all(evidence: Evidence, answer: Answer, answers: Answers) -> str | None:
    """The answer with the set-aside runs counted all the same; None where it has no number."""
    if not isinstance(answer.with_all, stats.Ratio):
        return None
    other = replace(answer, result=answer.with_all)
    return "Counting the runs set aside as well: " + sentence(
        evidence, other, answers.family_of_all
    )


def sentence(evidence: Evidence, answer: Answer, family: int) -> str:
    """The answer in words: who, how many times what, with interval, level, runs and blocks."""
    level = evidence.title(answer.factor, answer.level)
    baseline = evidence.title(answer.factor, answer.baseline)
    result = answer.result
    if not isinstance(result, stats.Ratio):
        return f"{level} against {baseline}, {answer.response.title}: {result}."
    interval = result.interval
    together = (
        f"simultaneous {words.confidence(CONFIDENCE)} interval"
        if family > 1
        else (f"{words.confidence(interval.level)} interval")
    )
    ratio, low, high = words.limits(interval.estimate, interval.low, interval.high)
    return (
        f"{level} {answer.response.had} {ratio} times the "
        f"{answer.response.title} of {baseline} ({together} {low} to "
        f"{high}, {words.plural(result.block_count, 'block')}, "
        f"{words.plural(result.run_count, 'run')})."
    )


def headline(evidence: Evidence, answers: Answers) -> str:
    """The page's first sentence: the primary factor's first answer that is not about energy."""
    if evidence.usable.height == 0:
        return _no_runs(evidence)
    prefix = ""
    untried, runs = evidence.untried(evidence.designed), len(evidence.designed)
    if untried:
        prefix = f"Incomplete, {runs - untried} of {runs} runs of the design so far. "
    candidates = [item for item in answers.computed() if not item.response.energy]
    candidates.sort(key=lambda item: item.factor != evidence.primary)
    if not candidates:
        return prefix + _without_contrast(evidence, answers)
    words_of_it = sentence(evidence, candidates[0], answers.family)
    outcome = answers.outcome(candidates[0])
    if outcome == "within noise":
        words_of_it += " Two identical labels differed by as much: no difference is claimed."
    elif outcome == "undecided":
        words_of_it += " The two cannot be told apart: 1 lies inside the interval."
    if answers.block_count == 1:
        prefix += "One block, main effects only, no interval per treatment: "
    return prefix + words_of_it


def _codes(evidence: Evidence) -> list[str]:
    """The reasons why runs were set aside, in words."""
    codes = {r["code"] for run in evidence.runs.values() for r in run.get("reasons", [])}
    return sorted(code.replace("_", " ") for code in codes)


def _no_runs(evidence: Evidence) -> str:
    reasons = _codes(evidence)
    because = f" ({words.listed(reasons)})" if reasons else ""
    planned = words.plural(len(evidence.designed), "run")
    done = len(evidence.designed) - evidence.untried(evidence.designed)
    tried = f"{words.count(done)} tried, none usable," if done else "none tried"
    return f"This campaign answers nothing yet: {tried} of {planned} of the design{because}."


def _without_contrast(evidence: Evidence, answers: Answers) -> str:
    pending = [item for item in answers.items if not item.response.energy]
    pending.sort(key=lambda item: item.factor != evidence.primary)
    told = next(filter(None, (sentence_of_all(evidence, a, answers) for a in pending)), None)
    if told and evidence.set_aside.height:
        tried = evidence.usable.height + evidence.set_aside.height
        codes = words.listed(_codes(evidence))
        return (
            f"{evidence.set_aside.height} of {words.plural(tried, 'run')} were set aside ({codes})"
            f" and those left answer nothing. {told}"
        )
    if answers.items:
        return f"No question can be answered with a number: {answers.items[0].result}."
    return (
        f"{words.plural(evidence.usable.height, 'run')} measured; the study asks for no comparison."
    )


def moderated(evidence: Evidence, answers: Answers) -> list[tuple[Answer, str, Any, Result]]:
    """For questions over several factors: the first factor's ratio at each level of the others."""
    found: list[tuple[Answer, str, Any, Result]] = []
    asked = {str(q.get("id", "")): q.get("factors", []) for q in evidence.study.get("question", [])}
    for item in answers.computed():
        factors: Sequence[str] = asked.get(item.question, [])
        if len(factors) < 2 or item.factor != factors[0]:
            continue
        for other in factors[1:]:
            for level in evidence.factors.get(other, ()):
                result = contrast(evidence, evidence.usable, item, CONFIDENCE, (other, level))
                found.append((item, other, level, result))
    return found
