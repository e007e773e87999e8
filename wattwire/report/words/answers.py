"""Answers in words: one sentence each, and the page's first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import special

from wattwire import stats
from wattwire.analysis import not_compared
from wattwire.analysis.best_alternative import choices
from wattwire.analysis.contrasts import CONFIDENCE, NUMBER, Answer, Answers
from wattwire.analysis.controls import asked_responses
from wattwire.analysis.dataset import Evidence, levels_of, same_level
from wattwire.analysis.interactions import by_level, changes
from wattwire.model import words
from wattwire.model.derived import column
from wattwire.model.verdict import ended_unsent
from wattwire.report.sections.counts import failed_words
from wattwire.report.words import best_alternative

BY_RANKS = ("pairs", "two samples")
FAR_APART = 10.0
"""From so large a ratio on, or its reciprocal, both sides stand beside it."""
FEW_DEGREES, ENOUGH_DEGREES = 1, 4
"""Up to so many degrees of freedom an interval comes with a warning; what that compares with."""


def sentence_of_all(evidence: Evidence, answer: Answer, answers: Answers) -> str | None:
    """The answer with the set-aside runs counted all the same; None where it has no number."""
    if not isinstance(answer.with_all, NUMBER):
        return None
    other = replace(answer, result=answer.with_all)
    return "Counting the runs set aside as well: " + sentence(
        evidence, other, answers.family_of_all
    )


def sentence(evidence: Evidence, answer: Answer, family: int) -> str:
    """The answer in words: who, how many times what, with interval, level, runs and blocks.

    A difference is told in the response's unit.
    """
    level = evidence.title(answer.factor, answer.level)
    baseline = evidence.title(answer.factor, answer.baseline)
    result = answer.result
    if isinstance(result, stats.Difference):
        return _of_difference(evidence, answer, result, family)
    if not isinstance(result, stats.Ratio):
        return f"{level} against {baseline}, {answer.response.title}: {result}."
    interval = result.interval
    ratio, low, high = words.limits(interval.estimate, interval.low, interval.high)
    return (
        f"{level} {answer.response.had} {ratio} times the "
        f"{answer.response.title} of {baseline} ({_together(interval, family)} {low} to "
        f"{high}, {_basis(result)}{_far_apart(evidence, answer, interval)})."
    )


def _far_apart(evidence: Evidence, answer: Answer, interval: stats.Interval) -> str:
    """Both sides in the response's unit, where a ratio is so large that it hides them; else ""."""
    if 1 / FAR_APART < interval.estimate < FAR_APART:
        return ""
    values = column(evidence.usable, answer.response.column)
    levels = levels_of(evidence.usable, answer.factor)
    means = []
    for side in (answer.level, answer.baseline):
        mine = values[[same_level(one, side) for one in levels]]
        mine = mine[np.isfinite(mine) & (mine > 0)]
        if not mine.size:
            return ""
        means.append(words.number(float(np.exp(np.mean(np.log(mine))))))
    return f", {means[0]} against {means[1]} {answer.response.unit}".rstrip()


def _of_difference(
    evidence: Evidence, answer: Answer, result: stats.Difference, family: int
) -> str:
    interval, sides = result.interval, ""
    unit = f" {answer.response.unit}" if answer.response.unit else ""
    if answer.response.share:
        unit, sides = " percentage points", f", {_of_each_side(evidence, answer)}"
        low, centre, high = (100 * v for v in (interval.low, interval.estimate, interval.high))
        interval = replace(interval, low=low, estimate=centre, high=high)
    place = "above" if interval.estimate > 0 else "below"
    lies = "typically lies" if result.kind in BY_RANKS else "lies on average"
    return (
        f"The {answer.response.title} of {evidence.title(answer.factor, answer.level)} {lies} "
        f"{words.number(abs(interval.estimate))}{unit} {place} that of "
        f"{evidence.title(answer.factor, answer.baseline)} ({_together(interval, family)} "
        f"{words.number(interval.low)} to {words.number(interval.high)}{unit}, "
        f"{_basis(result)}{sides})."
    )


def _of_each_side(evidence: Evidence, answer: Answer) -> str:
    """The response's mean over the usable runs of either level, as "0.93 % against 0 %"."""
    values = column(evidence.usable, answer.response.column)
    levels = levels_of(evidence.usable, answer.factor)
    means = []
    for side in (answer.level, answer.baseline):
        mine = values[[same_level(one, side) for one in levels]]
        mine = mine[np.isfinite(mine)]
        means.append(words.percent(float(np.mean(mine))) if mine.size else words.MISSING)
    return f"mean {means[0]} against {means[1]}"


def _together(interval: stats.Interval, family: int) -> str:
    if family > 1:
        return f"simultaneous {words.confidence(CONFIDENCE)} interval"
    return f"{words.confidence(interval.level)} interval"


def _basis(result: stats.Ratio | stats.Difference) -> str:
    blocks = words.plural(result.block_count, "block")
    if result.kind == "pairs":
        return f"by ranks of {words.plural(result.strata, 'pair')} in {blocks}"
    if result.kind == "pair means":
        return f"means of {words.plural(result.strata, 'pair')} in {blocks}"
    if result.kind == "two samples":
        return f"by ranks of {words.plural(result.run_count, 'run')}"
    return f"{blocks}, {words.plural(result.run_count, 'run')}"


def few_degrees(answers: Answers) -> str:
    """How little can be told where hardly anything is left for the error; empty where enough is."""
    numbers = [item.interval for item in (*answers.computed(), *answers.differences())]
    few = [one for one in numbers if one.degrees and one.degrees <= FEW_DEGREES]
    if not few:
        return ""
    least = few[0]
    here, enough = special.stdtrit([least.degrees, ENOUGH_DEGREES], 0.5 + least.level / 2)
    blocks = words.plural(answers.block_count, "block")
    leaves = "leaves" if answers.block_count == 1 else "leave"
    return (
        f"{blocks} of so few treatments {leaves} {_degrees(least)} of freedom for the error: a "
        f"limit stands {words.number(float(here))} standard errors from its estimate, where "
        f"{ENOUGH_DEGREES} degrees would put it at {words.number(float(enough))}, and that error "
        "is itself hardly known. Only a very large difference can show, and one that does not "
        "may be there all the same: measure more blocks."
    )


def _degrees(interval: stats.Interval) -> str:
    return words.plural(round(interval.degrees or 0), "degree")


def headline(evidence: Evidence, answers: Answers) -> str:
    """The page's first sentence, after those it does not speak for; then whose calls failed."""
    failed = failed_words(evidence)
    apart = not_compared.headline(evidence, asked_responses(evidence))
    told = [
        words.edited_words(evidence.edited),
        "" if all_ended(evidence) else apart,
        first_sentence(evidence, answers),
        failed,
    ]
    return " ".join(sentence for sentence in told if sentence)


def first_sentence(evidence: Evidence, answers: Answers) -> str:
    """The primary factor's first answer that is not about energy."""
    if evidence.usable.height == 0:
        return _no_runs(evidence)
    if ended := all_ended(evidence):
        return ended
    prefix = ""
    untried, runs = evidence.untried(evidence.designed), len(evidence.designed)
    if untried:
        prefix = f"Incomplete, {runs - untried} of {runs} runs of the design so far. "
    chosen = best_alternative.headline(evidence, choices(evidence, answers))
    if chosen:
        return prefix + chosen
    numbers = [*answers.computed(), *answers.differences()]
    candidates = [item for item in numbers if not item.response.energy]
    candidates.sort(
        key=lambda item: (item.factor != evidence.primary, answers.outcome(item) == "undecided")
    )
    if not candidates:
        return prefix + _without_contrast(evidence, answers)
    words_of_it = sentence(evidence, candidates[0], answers.family)
    outcome = answers.outcome(candidates[0])
    if outcome == "within noise":
        words_of_it += " Two identical labels may differ by as much: no difference is claimed."
    elif outcome == "undecided":
        same = 1 if isinstance(candidates[0].result, stats.Ratio) else 0
        words_of_it += f" The two cannot be told apart: {same} lies inside the interval."
    words_of_it += _depending(evidence, answers, candidates[0])
    if 0 < (candidates[0].interval.degrees or 0) <= FEW_DEGREES:
        degrees = _degrees(candidates[0].interval)
        words_of_it += f" So few runs tell very little: the error has {degrees} of freedom."
    if answers.block_count == 1:
        prefix += "One block, main effects only, no interval per treatment: "
    return prefix + words_of_it


def _depending(evidence: Evidence, answers: Answers, answer: Answer) -> str:
    """That a ratio is another one at other levels of a factor, with the two that differ most."""
    told = ""
    for change in changes(by_level(evidence, answers, [answer])):
        ends = sorted(change.levels, key=lambda one: one[1].estimate)
        at = (
            f"{words.number(interval.estimate)} at {evidence.title(change.other, level)}"
            for level, interval in (ends[0], ends[-1])
        )
        told += f" It depends on {words.factor_title(change.other)}: {' and '.join(at)}."
    return told


def all_ended(evidence: Evidence) -> str:
    """That the nodes of every usable run ended without a record of a message, with the first
    reason; empty where a run measured something, or where there is none."""
    frame = evidence.usable
    if not frame.height or not all(map(ended_unsent, frame.iter_rows(named=True))):
        return ""
    documents = [evidence.runs.get(run, {}) for run in frame["run"].to_list()]
    ready = all(node.get("ready") for one in documents for node in one.get("nodes", []))
    how = {str(outcome).replace("_", " ") for outcome in frame["outcome"]}
    before = "anything was sent" if ready else "READY"
    which = words.plural(frame.height, "usable run" if evidence.set_aside.height else "run")
    which = f"All {which}" if frame.height > 1 else "The only" + which.removeprefix("1")
    why = next((str(one["outcome_detail"]) for one in documents if one.get("outcome_detail")), "")
    unsent = (frame["sent"] == 0).all() if "sent" in frame.columns else True
    when = f"before {before}" if unsent else "and left no record of what they sent"
    told = f"{which} {' or '.join(sorted(how))} {when}"
    return f"{told}: {why.removesuffix(f' {when}')}." if why else f"{told}."


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
    return nothing_to_compare(evidence)


def nothing_to_compare(evidence: Evidence) -> str:
    """Why there is no answer where no question has two levels, and what to give instead."""
    runs = words.plural(evidence.usable.height, "run")
    asked = [pair for q in evidence.study.get("question", []) for pair in evidence.held(q)]
    if asked and not evidence.imported:
        names = dict.fromkeys(f"{words.factor_title(n)} {words.plain(level)}" for n, level in asked)
        told = (
            f"{runs} measured, all with {words.listed(list(names))}: there is nothing to compare."
        )
        return f"{told} Give one of these two levels or more."
    if not evidence.factors or evidence.varied:
        return f"{runs} measured; the study asks for no comparison: a [[question]] names what of."
    held = [f"{words.factor_title(name)} {words.plain(levels[0])}" for name, levels in
            evidence.factors.items() if levels]  # fmt: skip
    told = f"{runs} measured, all with {words.listed(held)}: there is nothing to compare."
    if not evidence.imported:
        return f"{told} Give one of these two levels or more."
    if "comparable" not in evidence.study:
        return told
    columns = evidence.study["comparable"]
    which = f": {', '.join(columns)}" if columns else ""
    return f"{told} Import again, with --factor for a column in which runs differ{which}."
