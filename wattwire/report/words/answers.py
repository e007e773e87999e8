"""Sentences for single answers, and the first sentence of the page."""

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
"""From this ratio on, and up to its reciprocal, a sentence also states both sides' means."""
FEW_DEGREES, ENOUGH_DEGREES = 1, 4
"""Most degrees of freedom that call for a warning, and the number that it compares with."""


def sentence_of_all(evidence: Evidence, answer: Answer, answers: Answers) -> str | None:
    """Return the answer with excluded runs counted as well; None where it has no number."""
    if not isinstance(answer.with_all, NUMBER):
        return None
    counted = replace(answer, result=answer.with_all)
    return "With the excluded runs: " + sentence(evidence, counted, answers.family_of_all)


def sentence(evidence: Evidence, answer: Answer, family: int) -> str:
    """Return the answer in words: levels, ratio, interval, confidence level, runs and blocks.

    A difference is stated in the response's unit.
    """
    level = evidence.title(answer.factor, answer.level)
    baseline = evidence.title(answer.factor, answer.baseline)
    result = answer.result
    if isinstance(result, stats.Difference):
        return _difference_sentence(evidence, answer, result, family)
    if not isinstance(result, stats.Ratio):
        return f"{level} against {baseline}, {answer.response.title}: {result}."
    interval = result.interval
    ratio, low, high = words.limits(interval.estimate, interval.low, interval.high)
    return (
        f"{level} {answer.response.had} {ratio} times the "
        f"{answer.response.title} of {baseline} ({_interval_name(interval, family)} {low} to "
        f"{high}, {_basis(result)}{_side_means(evidence, answer, interval)})."
    )


def _side_means(evidence: Evidence, answer: Answer, interval: stats.Interval) -> str:
    """Return both sides' geometric means with unit where a large ratio hides them; else ""."""
    if 1 / FAR_APART < interval.estimate < FAR_APART:
        return ""
    values = column(evidence.usable, answer.response.column)
    levels = levels_of(evidence.usable, answer.factor)
    means = []
    for side in (answer.level, answer.baseline):
        side_values = values[[same_level(run_level, side) for run_level in levels]]
        side_values = side_values[np.isfinite(side_values) & (side_values > 0)]
        if not side_values.size:
            return ""
        means.append(words.number(float(np.exp(np.mean(np.log(side_values))))))
    return f", {means[0]} against {means[1]} {answer.response.unit}".rstrip()


def _difference_sentence(
    evidence: Evidence, answer: Answer, result: stats.Difference, family: int
) -> str:
    interval, sides = result.interval, ""
    unit = f" {answer.response.unit}" if answer.response.unit else ""
    if answer.response.share:
        unit, sides = " percentage points", f", {_mean_of_each_side(evidence, answer)}"
        low, centre, high = (
            100 * value for value in (interval.low, interval.estimate, interval.high)
        )
        interval = replace(interval, low=low, estimate=centre, high=high)
    place = "above" if interval.estimate > 0 else "below"
    verb = "is typically" if result.kind in BY_RANKS else "is on average"
    return (
        f"The {answer.response.title} of {evidence.title(answer.factor, answer.level)} {verb} "
        f"{words.number(abs(interval.estimate))}{unit} {place} that of "
        f"{evidence.title(answer.factor, answer.baseline)} ({_interval_name(interval, family)} "
        f"{words.number(interval.low)} to {words.number(interval.high)}{unit}, "
        f"{_basis(result)}{sides})."
    )


def _mean_of_each_side(evidence: Evidence, answer: Answer) -> str:
    """Return the response's mean over each level's usable runs, as "mean 0.93 % against 0 %"."""
    values = column(evidence.usable, answer.response.column)
    levels = levels_of(evidence.usable, answer.factor)
    means = []
    for side in (answer.level, answer.baseline):
        side_values = values[[same_level(run_level, side) for run_level in levels]]
        side_values = side_values[np.isfinite(side_values)]
        means.append(
            words.percent(float(np.mean(side_values))) if side_values.size else words.MISSING
        )
    return f"mean {means[0]} against {means[1]}"


def _interval_name(interval: stats.Interval, family: int) -> str:
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
    """Return a warning where hardly any degrees of freedom are left; "" where enough are."""
    intervals = [item.interval for item in (*answers.computed(), *answers.differences())]
    few = [
        interval for interval in intervals if interval.degrees and interval.degrees <= FEW_DEGREES
    ]
    if not few:
        return ""
    least = few[0]
    few_limit, enough_limit = special.stdtrit(
        [least.degrees, ENOUGH_DEGREES], 0.5 + least.level / 2
    )
    blocks = words.plural(answers.block_count, "block")
    leaves = "leaves" if answers.block_count == 1 else "leave"
    return (
        f"{blocks} with few treatments {leaves} {_degrees(least)} of freedom for the error: an "
        f"interval extends {words.number(float(few_limit))} standard errors to each side; with "
        f"{ENOUGH_DEGREES} degrees it would extend {words.number(float(enough_limit))}, and the "
        "standard error itself is imprecise. Only a very large difference can be detected: measure "
        "more blocks to detect smaller ones."
    )


def _degrees(interval: stats.Interval) -> str:
    return words.plural(round(interval.degrees or 0), "degree")


def headline(evidence: Evidence, answers: Answers) -> str:
    """Return the headline: edited files, what is not compared, first sentence, failed calls."""
    failed = failed_words(evidence)
    uncompared = not_compared.headline(evidence, asked_responses(evidence))
    texts = [
        words.edited_words(evidence.edited),
        "" if all_ended(evidence) else uncompared,
        first_sentence(evidence, answers),
        failed,
    ]
    return " ".join(text for text in texts if text)


def first_sentence(evidence: Evidence, answers: Answers) -> str:
    """Return the primary factor's first answer that is not about energy, or why there is none."""
    if evidence.usable.height == 0:
        return _no_runs(evidence)
    if ended := all_ended(evidence):
        return ended
    prefix = ""
    untried, runs = evidence.untried(evidence.designed), len(evidence.designed)
    if untried:
        prefix = f"Incomplete, {runs - untried} of {runs} runs of the design so far. "
    best = best_alternative.headline(evidence, choices(evidence, answers))
    if best:
        return prefix + best
    numbers = [*answers.computed(), *answers.differences()]
    candidates = [item for item in numbers if not item.response.energy]
    candidates.sort(
        key=lambda item: (item.factor != evidence.primary, answers.outcome(item) == "undecided")
    )
    if not candidates:
        return prefix + _without_contrast(evidence, answers)
    text = sentence(evidence, candidates[0], answers.family)
    outcome = answers.outcome(candidates[0])
    if outcome == "within noise":
        text += " The effect is not larger than the A/A noise: no difference is claimed."
    elif outcome == "undecided":
        no_effect = 1 if isinstance(candidates[0].result, stats.Ratio) else 0
        text += f" No difference detected: the interval includes {no_effect}."
    text += _depending(evidence, answers, candidates[0])
    if 0 < (candidates[0].interval.degrees or 0) <= FEW_DEGREES:
        degrees = _degrees(candidates[0].interval)
        text += f" The runs are too few for a precise estimate: the error has {degrees} of freedom."
    if answers.block_count == 1:
        prefix += "One block, main effects only, no interval per treatment: "
    return prefix + text


def _depending(evidence: Evidence, answers: Answers, answer: Answer) -> str:
    """Return on which factors a ratio depends, with its two extreme levels; "" for none."""
    text = ""
    for change in changes(by_level(evidence, answers, [answer])):
        ends = sorted(change.levels, key=lambda pair: pair[1].estimate)
        extremes = (
            f"{words.number(interval.estimate)} at {evidence.title(change.other, level)}"
            for level, interval in (ends[0], ends[-1])
        )
        text += f" By {words.factor_title(change.other)}: {' and '.join(extremes)}."
    return text


def all_ended(evidence: Evidence) -> str:
    """Return that the nodes of every usable run ended without a record of a message, and why.

    The reason is the first that a run gives. Empty where a run measured something, or where no
    run is usable.
    """
    frame = evidence.usable
    if not frame.height or not all(map(ended_unsent, frame.iter_rows(named=True))):
        return ""
    documents = [evidence.runs.get(run, {}) for run in frame["run"].to_list()]
    ready = all(node.get("ready") for document in documents for node in document.get("nodes", []))
    outcomes = {str(outcome).replace("_", " ") for outcome in frame["outcome"]}
    stage = "anything was sent" if ready else "READY"
    which = words.plural(frame.height, "usable run" if evidence.excluded.height else "run")
    which = f"All {which}" if frame.height > 1 else "The only" + which.removeprefix("1")
    why = next(
        (
            str(document["outcome_detail"])
            for document in documents
            if document.get("outcome_detail")
        ),
        "",
    )
    unsent = not np.isnan(column(frame, "sent")).any() if "sent" in frame.columns else True
    when = f"before {stage}" if unsent else "and left no record of what they sent"
    summary = f"{which} {' or '.join(sorted(outcomes))} {when}"
    return f"{summary}: {why.removesuffix(f' {when}')}." if why else f"{summary}."


def _exclusion_reasons(evidence: Evidence) -> list[str]:
    """Return the reasons for which runs were excluded, in words."""
    codes = {reason["code"] for run in evidence.runs.values() for reason in run.get("reasons", [])}
    return sorted(code.replace("_", " ") for code in codes)


def _no_runs(evidence: Evidence) -> str:
    reasons = _exclusion_reasons(evidence)
    because = f" ({words.listed(reasons)})" if reasons else ""
    planned = words.plural(len(evidence.designed), "planned run")
    done = len(evidence.designed) - evidence.untried(evidence.designed)
    none_usable = ", none usable" if done else ""
    return f"No results yet: {words.count(done)} of {planned} tried{none_usable}{because}."


def _without_contrast(evidence: Evidence, answers: Answers) -> str:
    pending = [item for item in answers.items if not item.response.energy]
    pending.sort(key=lambda item: item.factor != evidence.primary)
    of_all = next(
        filter(None, (sentence_of_all(evidence, item, answers) for item in pending)), None
    )
    if of_all and evidence.excluded.height:
        tried = evidence.usable.height + evidence.excluded.height
        codes = words.listed(_exclusion_reasons(evidence))
        return (
            f"{evidence.excluded.height} of {words.plural(tried, 'run')} were excluded ({codes}), "
            f"and the remaining runs give no result. {of_all}"
        )
    if answers.items:
        return f"No question has a numeric answer: {answers.items[0].result}."
    return nothing_to_compare(evidence)


def nothing_to_compare(evidence: Evidence) -> str:
    """Return why there is no answer where no question has two levels, and what to change."""
    runs = words.plural(evidence.usable.height, "run")
    held_levels = [pair for q in evidence.study.questions for pair in evidence.held(q)]
    if held_levels and not evidence.imported:
        names = dict.fromkeys(
            f"{words.factor_title(name)} {words.plain(level)}" for name, level in held_levels
        )
        statement = (
            f"{runs} measured, all with {words.listed(list(names))}: there is nothing to compare."
        )
        return f"{statement} Give one of these factors two or more levels."
    if not evidence.factors or evidence.varied:
        return (
            f"{runs} measured; the study requests no comparison. Add a [[question]] with the "
            "factors to compare."
        )
    held = [f"{words.factor_title(name)} {words.plain(levels[0])}" for name, levels in
            evidence.factors.items() if levels]  # fmt: skip
    statement = f"{runs} measured, all with {words.listed(held)}: there is nothing to compare."
    if not evidence.imported:
        return f"{statement} Give one of these factors two or more levels."
    columns = evidence.study.comparable
    if columns is None:
        return statement
    which = f": {', '.join(columns)}" if columns else ""
    return f"{statement} Import again, with --factor for a column in which runs differ{which}."
