"""Sentences on single answers, and the first sentence of the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from scipy import special

from wattwire import stats
from wattwire.analysis.answering.answer_types import NUMBER, Answer, Answers
from wattwire.analysis.answering.confidence import CONFIDENCE, has_few_degrees
from wattwire.analysis.comparing.common import judges_variants
from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.analysis.responses import question_responses
from wattwire.analysis.topics.interactions.numbers import by_level, changes, partly_answered
from wattwire.analysis.topics.loss.numbers import failed_calls, never_sent
from wattwire.analysis.topics.ranking.numbers import ranking
from wattwire.model import words
from wattwire.model.derived import column
from wattwire.model.flows import COLUMN
from wattwire.model.verdict import ended_unsent
from wattwire.report.topic_page import Sentences
from wattwire.report.words import comparing, not_compared
from wattwire.report.words.headline import (
    along_factor,
    exact_shares,
    extreme_answer,
    other_levels,
    winner_sentence,
)
from wattwire.report.words.headlines import flow_headline, growth_clause, single_treatment
from wattwire.report.words.phrases import Phrase, Phrases, joined

PHRASES = Phrases(
    "answer",
    {
        # A single answer with levels, ratio or difference, interval, runs and blocks.
        "ratio": (
            "{level} {verb} {interval:estimate} times the {response} of {baseline} "
            "({name} {interval:limits}, {basis}{means})"
        ),
        "ratio_of_flow": (
            "The {response} with {level} was {interval:estimate} times that with {baseline} "
            "({name} {interval:limits}, {basis}{means})"
        ),
        "side_means": ", {level_mean:number} against {baseline_mean:number}{unit}",
        "difference": (
            "The {response} {verb} {amount:number}{unit} {place} for {level} than for "
            "{baseline} ({name} {low:number} to {high:number}{unit}, {basis}{means})"
        ),
        "no_mean_difference": (
            "The {response} {verb} the same for {level} and {baseline} "
            "({name} {low:number} to {high:number}{unit}, {basis}{means})"
        ),
        "typically": "is typically",
        "on_average": "is on average",
        "above": "higher",
        "below": "lower",
        "percentage_points": " percentage points",
        "side_shares": ", mean {level_mean:percent} against {baseline_mean:percent}",
        "simultaneous": "simultaneous {confidence:confidence} interval",
        "single": "{confidence:confidence} interval",
        "by_ranks_of_blocks": "by ranks of {blocks:plural block}, {runs:plural run}",
        "by_ranks_of_runs": "by ranks of {runs:plural run}",
        "blocks_and_runs": "{blocks:plural block}, {runs:plural run}",
        "blocks_of_means": "means of {blocks:plural block}, {runs:plural run}",
        "no_number": "{level} against {baseline}, {response}: {reason}",
        "stated": "{claim}.",
        "at_level": "At {level}, {claim}.",
        "averaged": "{claim}, on average over the levels of {factors:listed}.",
        "with_excluded": "With the excluded runs: {answer}",
        "few_degrees": (
            "{blocks:plural block with few treatments leaves/blocks with few treatments leave} "
            "{degrees:plural degree} of freedom for the error. An interval extends "
            "{few_limit:number} standard errors to each side of the estimate, compared with "
            "{enough_limit:number} for {enough} degrees of freedom, and the standard error itself "
            "is imprecise. Only a very large difference can be detected. {advice} to detect "
            "smaller differences."
        ),
        "more_blocks": "Measure more blocks",
        "more_repetitions": "Import more repetitions",
        # The first sentence of the page, and the sentences before and after it.
        "incomplete": ("Incomplete: the campaign has {tried} of {runs} runs of the design so far."),
        # Without a decision, the sentence has no number, which a reader would take for one.
        "within_noise": (
            "The difference of {level} and {baseline} in {response} is not larger than the A/A "
            "noise, so no difference is claimed."
        ),
        "no_difference": (
            "No difference of {level} and {baseline} in {response} was detected, because the "
            "interval includes {no_effect}."
        ),
        "no_common_answer": (
            "No common answer for the {response} of {level} and {baseline}: it depends on {other}."
        ),
        "depends": (
            "The result depends on {other}: {lowest:number} at {lowest_level} and "
            "{highest:number} at {highest_level}."
        ),
        "too_few_to_tell": (
            "Too few repetitions to tell whether {level} and {baseline} differ in {response}: "
            "{blocks:plural block leaves/blocks leave} {degrees:plural degree} of freedom for the "
            "error. {advice}."
        ),
        # Sentences in place of an answer.
        "all_ended": "{which} {outcomes} {when}.",
        "all_ended_because": "{which} {outcomes} {when}: {why}.",
        "all_usable_runs": "All {runs:plural valid run}",
        "all_runs": "All {runs:plural run}",
        "only_usable_run": "The only valid run",
        "only_run": "The only run",
        "before_sending": "before anything was sent",
        "before_ready": "before READY",
        "unrecorded": "and left no record of sent messages",
        "no_run_tried": (
            "No results yet: {tried:count} of {planned:plural planned run} were tried{because}."
        ),
        "no_run_usable": (
            "No results yet: {tried:count} of {planned:plural planned run} were tried, but none is "
            "valid{because}."
        ),
        "because": " ({reasons:listed})",
        "answer_of_all_runs": (
            "The answers exclude {excluded} of {tried:plural run} ({reasons:listed}), and the "
            "remaining runs give no result. {answer}"
        ),
        "no_numeric_answer": "No question has a numeric answer: {reason}.",
        "nothing_to_compare": (
            "{runs:plural run was/runs were} measured, all with the same levels ({held:listed}), "
            "so there is nothing to compare."
        ),
        "add_levels": "Specify two or more levels for one of these factors.",
        "no_comparison": (
            "{runs:plural run was/runs were} measured, but the study requests no comparison. "
            "Add a [[question]] with the factors to compare."
        ),
        "import_again": "Import again with --factor COLUMN for a column in which runs differ.",
        "import_again_with": (
            "Import again with --factor COLUMN for a column in which runs differ: {columns}."
        ),
    },
)

LOSS, RANKING = Sentences("loss"), Sentences("ranking")
UNDECIDED = ("within noise", "undecided")
"""Outcomes without a decision, in their order in the headline."""
LEVELS_NAMED = 3
"""Maximum number of levels whose ratio the headline states if another level refuses the answer."""
BY_RANKS = ("blocks", "two samples")
FAR_APART = 10.0
"""A sentence also states both means if the ratio is at least this value or at most its reciprocal.
"""
AGREEMENT = 0.02
"""Largest |log| of a ratio over the quotient of the means that a sentence states."""
ROUNDING = 1e-12
"""Share of the largest value of a response up to which a difference is a rounding error."""
ENOUGH_DEGREES = 4
"""A warning of few degrees of freedom compares the interval with the one for this number."""


def sentence_of_all(evidence: Evidence, answer: Answer, answers: Answers) -> Phrase | None:
    """Return the answer that includes excluded runs, or None if it has no number."""
    if not isinstance(answer.with_all, NUMBER):
        return None
    counted = replace(answer, result=answer.with_all)
    return PHRASES("with_excluded", answer=sentence(evidence, counted, answers.family_of_all))


def sentence(evidence: Evidence, answer: Answer, family: int) -> Phrase:
    """Return the answer as a sentence.

    The sentence has levels, ratio, interval, confidence level, runs and blocks. Differences have
    the unit of the response.
    """
    return PHRASES("stated", claim=claim(evidence, answer, family))


def claim(evidence: Evidence, answer: Answer, family: int) -> Phrase:
    """Return the same as `sentence`, without the full stop."""
    response, result = answer.response.title, answer.result
    if isinstance(result, stats.Difference):
        return _difference_claim(evidence, answer, result, family)
    if _is_below_one(answer):
        answer = replace(answer, level=answer.baseline, baseline=answer.level)
    level = evidence.title(answer.factor, answer.level)
    baseline = evidence.title(answer.factor, answer.baseline)
    if not isinstance(result, stats.Ratio):
        return PHRASES(
            "no_number", level=level, baseline=baseline, response=response, reason=str(result)
        )
    interval = _above_one(result.interval)
    if COLUMN.fullmatch(answer.response.column):  # "of a flow of a level" would be ambiguous
        return PHRASES(
            "ratio_of_flow",
            response=response,
            level=level,
            interval=interval,
            baseline=baseline,
            name=_interval_name(interval, family),
            basis=_basis(result),
            means=_side_means(evidence, answer, interval),
        )
    return PHRASES(
        "ratio",
        level=level,
        verb=answer.response.had,
        interval=interval,
        response=response,
        baseline=baseline,
        name=_interval_name(interval, family),
        basis=_basis(result),
        means=_side_means(evidence, answer, interval),
    )


def _is_below_one(answer: Answer) -> bool:
    """Return whether the sentence swaps the sides, so that no reader has to invert the ratio."""
    result = answer.result
    return isinstance(result, stats.Ratio) and _above_one(result.interval) is not result.interval


def _above_one(interval: stats.Interval) -> stats.Interval:
    """Return the interval of the ratio, or of the inverse ratio if the ratio is below 1."""
    if interval.estimate >= 1 or not interval.low > 0:
        return interval
    low, centre, high = 1 / interval.high, 1 / interval.estimate, 1 / interval.low
    return replace(interval, low=low, estimate=centre, high=high)


def _side_means(evidence: Evidence, answer: Answer, interval: stats.Interval) -> str:
    """Return the geometric means of both levels over their common treatments, with their unit.

    The result is "" unless the levels differ by at least the factor FAR_APART. It is also "" if the
    quotient of the means is not the ratio, which happens if runs are missing in some blocks.
    """
    if 1 / FAR_APART < interval.estimate < FAR_APART:
        return ""
    logs: list[tuple[float, float]] = []
    for sides in _common_treatments(evidence, answer):
        values = [column(side, answer.response.column) for side in sides]
        if all((np.isfinite(side) & (side > 0)).all() for side in values):
            logs.append((float(np.mean(np.log(values[0]))), float(np.mean(np.log(values[1])))))
    if not logs:
        return ""
    means = np.exp(np.mean(logs, axis=0))
    if abs(math.log(means[0] / means[1] / interval.estimate)) > AGREEMENT:
        return ""
    unit = f" {answer.response.unit}" if answer.response.unit else ""
    return PHRASES(
        "side_means", level_mean=float(means[0]), baseline_mean=float(means[1]), unit=unit
    )


def _common_treatments(
    evidence: Evidence, answer: Answer
) -> list[tuple[pl.DataFrame, pl.DataFrame]]:
    """Return the runs at the level and at the baseline, for each treatment that has both."""
    groups = by_treatment(evidence, evidence.usable)
    index = evidence.varied.index(answer.factor)
    level, baseline = (
        evidence.word(answer.factor, side) for side in (answer.level, answer.baseline)
    )
    partners = {key: (*key[:index], baseline, *key[index + 1 :]) for key in groups}
    return [
        (groups[key], groups[partner])
        for key, partner in partners.items()
        if key[index] == level and partner in groups
    ]


def _difference_claim(
    evidence: Evidence, answer: Answer, result: stats.Difference, family: int
) -> Phrase:
    interval, means = result.interval, ""
    unit: Phrase | str = f" {answer.response.unit}" if answer.response.unit else ""
    if answer.response.unit == "%":
        unit = PHRASES("percentage_points")
    if answer.response.share:
        unit, means = PHRASES("percentage_points"), _mean_of_each_side(evidence, answer)
        low, centre, high = (
            100 * value for value in (interval.low, interval.estimate, interval.high)
        )
        interval = replace(interval, low=low, estimate=centre, high=high)
    if _is_rounding(evidence, answer, result):
        return PHRASES(
            "no_mean_difference",
            response=answer.response.title,
            verb=PHRASES("typically" if result.kind in BY_RANKS else "on_average"),
            level=evidence.title(answer.factor, answer.level),
            baseline=evidence.title(answer.factor, answer.baseline),
            name=_interval_name(interval, family),
            low=interval.low,
            high=interval.high,
            unit=unit,
            basis=_basis(result),
            means=means,
        )
    return PHRASES(
        "difference",
        response=answer.response.title,
        level=evidence.title(answer.factor, answer.level),
        verb=PHRASES("typically" if result.kind in BY_RANKS else "on_average"),
        amount=abs(interval.estimate),
        unit=unit,
        place=PHRASES("above" if interval.estimate > 0 else "below"),
        baseline=evidence.title(answer.factor, answer.baseline),
        name=_interval_name(interval, family),
        low=interval.low,
        high=interval.high,
        basis=_basis(result),
        means=means,
    )


def _is_rounding(evidence: Evidence, answer: Answer, result: stats.Difference) -> bool:
    """Return whether a difference is only the rounding error of sums of the runs' values."""
    values = column(evidence.usable, answer.response.column)
    largest = float(np.max(np.abs(values[np.isfinite(values)]), initial=0.0))
    return abs(result.interval.estimate) <= ROUNDING * largest


def _mean_of_each_side(evidence: Evidence, answer: Answer) -> Phrase:
    """Return the means at both levels over their common treatments.

    Example: ", mean 0.93 % against 0 %".
    """
    pairs = _common_treatments(evidence, answer)
    means = []
    for frames in zip(*pairs, strict=True) if pairs else ([], []):
        side_values = np.concatenate(
            [column(frame, answer.response.column) for frame in frames] or [np.array([])]
        )
        side_values = side_values[np.isfinite(side_values)]
        means.append(float(np.mean(side_values)) if side_values.size else None)
    return PHRASES("side_shares", level_mean=means[0], baseline_mean=means[1])


def _interval_name(interval: stats.Interval, family: int) -> Phrase:
    if family > 1:
        return PHRASES("simultaneous", confidence=CONFIDENCE)
    return PHRASES("single", confidence=interval.level)


def _basis(result: stats.Ratio | stats.Difference) -> Phrase:
    blocks = result.block_count
    if result.kind == "blocks":
        return PHRASES("by_ranks_of_blocks", blocks=blocks, runs=result.run_count)
    if result.kind == "two samples":
        return PHRASES("by_ranks_of_runs", runs=result.run_count)
    if result.averaged:
        return PHRASES("blocks_of_means", blocks=blocks, runs=result.run_count)
    return PHRASES("blocks_and_runs", blocks=blocks, runs=result.run_count)


def _advice(evidence: Evidence) -> Phrase:
    return PHRASES("more_repetitions" if evidence.imported else "more_blocks")


def few_degrees(evidence: Evidence, answers: Answers) -> Phrase:
    """Return a warning if the error has few degrees of freedom, otherwise ""."""
    intervals = [item.interval for item in (*answers.computed(), *answers.differences())]
    few = [interval for interval in intervals if has_few_degrees(interval.degrees)]
    if not few:
        return Phrase()
    least = min(few, key=lambda interval: interval.degrees or 0)
    few_limit, enough_limit = special.stdtrit(
        [least.degrees, ENOUGH_DEGREES], 0.5 + least.level / 2
    )
    return PHRASES(
        "few_degrees",
        blocks=answers.block_count,
        degrees=max(1, int(least.degrees or 0)),
        few_limit=float(few_limit),
        enough=ENOUGH_DEGREES,
        enough_limit=float(enough_limit),
        advice=_advice(evidence),
    )


def headline(evidence: Evidence, answers: Answers) -> Phrase:
    """Return the headline.

    The headline has sentences on edits, treatments without comparison and failed calls, and the
    first sentence of the answers.
    """
    failed = LOSS.calls_failed(failed_calls(evidence))
    # The share of lost messages does not include them, so they precede the answers.
    unsent = LOSS.never_sent(never_sent(evidence))
    edited = joined([words.edited_words(evidence.edited), unsent])
    first = first_sentence(evidence, answers)
    if evidence.study.flows:
        # What arrives of each flow precedes; the page has the notes below its title.
        return flow_headline.shortened(
            joined([edited, flow_headline.arrivals(evidence), first, failed])
        )
    if all_ended(evidence):
        return joined([edited, first, failed])
    responses = question_responses(evidence)
    uncompared = not_compared.headline(evidence, responses)
    cautions = not_compared.cautions(evidence, responses)
    remaining = _at_remaining_levels(evidence, answers)
    return joined([edited, uncompared, *remaining, first, cautions, failed])


def _at_remaining_levels(evidence: Evidence, answers: Answers) -> list[Phrase]:
    """Return the ratios at levels of another factor, if another level of it refuses the answer.

    One saturated rate would otherwise hide the answer at all other rates.
    """
    if judges_variants(evidence) or evidence.study.answers.best_of:
        return []
    refused = [item for item in partly_answered(evidence, answers) if not item.response.share]
    refused.sort(key=lambda item: item.factor != evidence.primary)
    rows = by_level(evidence, answers, refused[:1])
    numbers = [row for row in rows if isinstance(row.result, stats.Ratio)]
    refusing = {row.other for row in rows if not isinstance(row.result, stats.Ratio)}
    kept = [row for row in numbers if row.other in refusing]
    return [
        PHRASES(
            "at_level",
            level=evidence.title(row.other, row.level),
            claim=claim(evidence, replace(row.answer, result=row.result), 1),
        )
        for row in kept[:LEVELS_NAMED]
        if row.other == kept[0].other
    ]


def first_sentence(evidence: Evidence, answers: Answers) -> Phrase:
    """Return the first sentences of the page.

    They state the best alternative. If no alternative is ranked, they state whether one side of the
    primary factor's first answer that is not on energy is better in all responses, and this answer,
    or the reason for its absence.
    """
    if evidence.usable.height == 0:
        return _no_runs(evidence)
    if ended := all_ended(evidence):
        return ended
    untried, runs = evidence.untried(evidence.designed), len(evidence.designed)
    texts = [PHRASES("incomplete", tried=runs - untried, runs=runs)] if untried else []
    if judges_variants(evidence):
        return joined([*texts, comparing.verdict(evidence)])
    ranked = ranking(evidence, answers)
    if evidence.study.flows:
        growth = growth_clause.growth(evidence, answers)
        best: str = flow_headline.sentence(evidence, ranked.choices, growth)
    else:
        best = RANKING.headline(ranked.headline) if ranked.headline else ""
    if best:
        return joined([*texts, best])
    numbers = [*answers.computed(), *answers.differences()]
    candidates = [item for item in numbers if not item.response.energy]
    candidates.sort(
        key=lambda item: (item.factor != evidence.primary, _order_of(answers.outcome(item)))
    )
    if not candidates:
        values = single_treatment.sentence(evidence)
        return joined([*texts, values, _without_contrast(evidence, answers)])
    first = extreme_answer(evidence, answers, candidates[0])
    if has_few_degrees(first.interval.degrees):
        shares = exact_shares(answers, first)
        return joined([*texts, *shares, _too_few_to_tell(evidence, answers, first)])
    outcome = answers.outcome(first)
    if outcome == "depends":
        answer = PHRASES(
            "no_common_answer",
            response=first.response.title,
            level=evidence.title(first.factor, first.level),
            baseline=evidence.title(first.factor, first.baseline),
            other=words.factor_title(answers.dependent[first.key]),
        )
    elif outcome in UNDECIDED:
        answer = _undecided(evidence, answers, first, candidates)
    else:
        answer = _averaged(evidence, first, claim(evidence, first, answers.family))
    if outcome != "depends":
        shares = exact_shares(answers, first)
        answer = joined([winner_sentence(evidence, answers, first), *shares, answer])
    texts.append(answer)
    if evidence.imported and outcome == "different":  # no ranking names the other levels
        texts += other_levels(evidence, answers, first)
    if outcome == "depends":
        texts += _dependences(evidence, answers, first)
    else:
        texts += along_factor(evidence, answers, first) or _dependences(evidence, answers, first)
    return joined(texts)


def _averaged(evidence: Evidence, answer: Answer, of_answer: Phrase) -> Phrase:
    """Return the claim with the factors over whose levels the answer is a mean."""
    factors = [words.factor_title(name) for name in evidence.varied if name != answer.factor]
    if not isinstance(answer.result, NUMBER) or answer.result.strata < 2 or not factors:
        return PHRASES("stated", claim=of_answer)
    return PHRASES("averaged", claim=of_answer, factors=factors)


def _too_few_to_tell(evidence: Evidence, answers: Answers, first: Answer) -> Phrase:
    """Return a sentence without a number: an interval of so few degrees decides nothing."""
    return PHRASES(
        "too_few_to_tell",
        level=evidence.title(first.factor, first.level),
        baseline=evidence.title(first.factor, first.baseline),
        response=first.response.title,
        blocks=answers.block_count,
        degrees=max(1, int(first.interval.degrees or 0)),
        advice=_advice(evidence),
    )


def _undecided(
    evidence: Evidence, answers: Answers, first: Answer, candidates: Sequence[Answer]
) -> Phrase:
    """Return a sentence on `first`, after the first answer of another factor that is decided."""
    decided = [item for item in candidates if answers.outcome(item) == "different"]
    texts = [sentence(evidence, item, answers.family) for item in decided[:1]]
    level, baseline = (evidence.title(first.factor, at) for at in (first.level, first.baseline))
    response = first.response.title
    if answers.outcome(first) == "within noise":
        text = PHRASES("within_noise", level=level, baseline=baseline, response=response)
        return joined([*texts, text])
    no_effect = 1 if isinstance(first.result, stats.Ratio) else 0
    text = PHRASES(
        "no_difference", level=level, baseline=baseline, response=response, no_effect=no_effect
    )
    return joined([*texts, text])


def _order_of(outcome: str) -> int:
    """Return the position of an outcome in the headline, where decided answers come first."""
    return UNDECIDED.index(outcome) + 1 if outcome in UNDECIDED else 0


def _dependences(evidence: Evidence, answers: Answers, answer: Answer) -> list[Phrase]:
    """Return a sentence per factor that affects the ratio, with its two extreme levels."""
    texts = []
    power = -1 if _is_below_one(answer) else 1  # as in the sentence on the answer
    for change in changes(by_level(evidence, answers, [answer])):
        ratios = [(at.title, at.interval.estimate**power) for at in change.levels]
        ends = sorted(ratios, key=lambda pair: pair[1])
        (lowest_level, lowest), (highest_level, highest) = ends[0], ends[-1]
        texts.append(
            PHRASES(
                "depends",
                other=change.other_title,
                lowest=lowest,
                lowest_level=lowest_level,
                highest=highest,
                highest_level=highest_level,
            )
        )
    return texts


def all_ended(evidence: Evidence) -> Phrase:
    """Return a sentence if the nodes of all valid runs ended without a record of a message.

    The sentence gives the reason of the first run. It is "" if a run has values or if no run is
    valid.
    """
    frame = evidence.usable
    if not frame.height or not all(map(ended_unsent, frame.iter_rows(named=True))):
        return Phrase()
    documents = [evidence.runs.get(run, {}) for run in frame["run"].to_list()]
    ready = all(node.get("ready") for document in documents for node in document.get("nodes", []))
    outcomes = {str(outcome).replace("_", " ") for outcome in frame["outcome"]}
    why = next(
        (
            str(document["outcome_detail"])
            for document in documents
            if document.get("outcome_detail")
        ),
        "",
    )
    unsent = not np.isnan(column(frame, "sent")).any() if "sent" in frame.columns else True
    when = PHRASES(("before_sending" if ready else "before_ready") if unsent else "unrecorded")
    which = _which_runs(frame.height, bool(evidence.excluded.height))
    text = " or ".join(sorted(outcomes))
    if not why:
        return PHRASES("all_ended", which=which, outcomes=text, when=when)
    why = why.removesuffix(f" {when}")
    return PHRASES("all_ended_because", which=which, outcomes=text, when=when, why=why)


def _which_runs(runs: int, has_excluded: bool) -> Phrase:
    if runs > 1:
        return PHRASES("all_usable_runs" if has_excluded else "all_runs", runs=runs)
    return PHRASES("only_usable_run" if has_excluded else "only_run")


def _exclusion_reasons(evidence: Evidence) -> list[str]:
    """Return the distinct reasons for excluded runs, sorted."""
    codes = {reason["code"] for run in evidence.runs.values() for reason in run.get("reasons", [])}
    return sorted(code.replace("_", " ") for code in codes)


def _no_runs(evidence: Evidence) -> Phrase:
    reasons = _exclusion_reasons(evidence)
    because = PHRASES("because", reasons=reasons) if reasons else ""
    planned = len(evidence.designed)
    tried = planned - evidence.untried(evidence.designed)
    return PHRASES(
        "no_run_usable" if tried else "no_run_tried",
        tried=tried,
        planned=planned,
        because=because,
    )


def _without_contrast(evidence: Evidence, answers: Answers) -> Phrase:
    pending = [item for item in answers.items if not item.response.energy]
    pending.sort(key=lambda item: item.factor != evidence.primary)
    of_all = next(
        filter(None, (sentence_of_all(evidence, item, answers) for item in pending)), None
    )
    if of_all and evidence.excluded.height:
        return PHRASES(
            "answer_of_all_runs",
            excluded=evidence.excluded.height,
            tried=evidence.usable.height + evidence.excluded.height,
            reasons=_exclusion_reasons(evidence),
            answer=of_all,
        )
    if answers.items:
        return PHRASES("no_numeric_answer", reason=str(answers.items[0].result))
    return nothing_to_compare(evidence)


def nothing_to_compare(evidence: Evidence) -> Phrase:
    """Return the reason and a remedy if no question compares two levels."""
    runs = evidence.usable.height
    held_levels = [pair for q in evidence.study.questions for pair in evidence.held(q)]
    if held_levels and not evidence.imported:
        names = dict.fromkeys(
            f"{words.factor_title(name)} {words.plain(level)}" for name, level in held_levels
        )
        statement = PHRASES("nothing_to_compare", runs=runs, held=list(names))
        return joined([statement, PHRASES("add_levels")])
    if not evidence.factors or evidence.varied:
        return PHRASES("no_comparison", runs=runs)
    held = [f"{words.factor_title(name)} {words.plain(levels[0])}" for name, levels in
            evidence.factors.items() if levels]  # fmt: skip
    statement = PHRASES("nothing_to_compare", runs=runs, held=held)
    if not evidence.imported:
        return joined([statement, PHRASES("add_levels")])
    columns = evidence.study.comparable
    if columns is None:
        return statement
    if not columns:
        return joined([statement, PHRASES("import_again")])
    return joined([statement, PHRASES("import_again_with", columns=", ".join(columns))])
