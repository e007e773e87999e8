"""The page's section of answers to the study's questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis.best_alternative import choices
from wattwire.analysis.contrasts import (
    CONFIDENCE,
    NUMBER,
    Answer,
    Answers,
    Result,
    baseline_of,
    planned_baseline,
)
from wattwire.analysis.dataset import Evidence, same_level
from wattwire.analysis.document import change_entry
from wattwire.analysis.interactions import AtLevel, by_level, changes
from wattwire.analysis.responses import Response
from wattwire.model import words
from wattwire.model.derived import column
from wattwire.report import figures
from wattwire.report.parts import Column, Figure, Section, Table, Text
from wattwire.report.tables import differences, sensitivity, short_answers
from wattwire.report.tables.best_alternative import table as alternatives_table
from wattwire.report.words import best_alternative, correlation, stopping
from wattwire.report.words.answers import few_degrees, nothing_to_compare, sentence, sentence_of_all
from wattwire.report.words.changes import change_sentence

RANK_BLOCKS_MIN = 6
CHANGES_MAX = 6
"""Number of interactions that get a sentence of their own; the table below lists all of them."""
SENTENCES_MAX, LOWEST_LISTED, HIGHEST_LISTED = 8, 3, 2
"""A factor with more answers than SENTENCES_MAX has sentences for its extreme ones only."""


def section(
    evidence: Evidence, answers: Answers, document: Mapping[str, Any] | None = None
) -> Section:
    """Return the section that answers each question, with the family its intervals hold in.

    It begins with a short table of all answers in `document` (report/analysis.json).
    """
    part = Section("answers", "Answers")
    summary = short_answers.table(document) if document else None
    part.parts += [summary] if summary else []
    if not answers.items:
        part.parts.append(Text(nothing_to_compare(evidence)))
        return part
    if answers.block_count == 1:
        part.parts.append(
            Text(
                "One block: no interval per treatment; drift cannot be separated. The ratios "
                "below are main effects over the factorial: the other factors act as "
                "replication and their interactions are part of the error.",
                "warning",
            )
        )
    stop_sentence = stopping.sentence(evidence)
    if stop_sentence:
        part.parts.append(Text(stop_sentence))
    degrees_warning = few_degrees(answers)
    if degrees_warning:
        part.parts.append(Text(degrees_warning, "warning"))
    part.parts += [Text(text, "warning") for text in _substituted_baselines(evidence, answers)]
    gap_sentences = gaps(evidence, answers)
    if gap_sentences:
        part.parts.append(Text(" ".join(gap_sentences), "warning"))
    chosen = choices(evidence, answers)
    for question in evidence.study.questions:
        question_answers = [answer for answer in answers.items if answer.question == question.id]
        part.parts.append(Text(f"{question.id}  {question.text}", "question"))
        part.parts.extend(best_alternative.sentences(evidence, question, chosen))
        if question_answers or not question.beside:
            part.parts.extend(_question_words(evidence, question_answers, answers))
        part.parts.extend(correlation.sentences(evidence, question))
    part.parts += [Text(note, "item") for note in best_alternative.notes(evidence, chosen)]
    alternatives = alternatives_table(evidence, chosen)
    part.parts += [alternatives] if alternatives else []
    computed = answers.computed()
    if computed:
        part.parts.append(_ratio_figure(evidence, computed, answers))
    part.parts.append(_answer_table(evidence, answers))
    if answers.differences():
        part.parts.append(differences.table(evidence, answers))
    part.parts.extend(sensitivity.parts(evidence, answers))
    part.parts.extend(_interaction_parts(evidence, by_level(evidence, answers)))
    return part


def _interaction_parts(evidence: Evidence, at_levels: Sequence[AtLevel]) -> list[Text | Table]:
    """Return sentences and tables on whether answers hold at all levels of the other factors."""
    sentences = [change_sentence(change_entry(evidence, change)) for change in changes(at_levels)]
    parts: list[Text | Table] = [Text(text, "warning") for text in sentences[:CHANGES_MAX]]
    ratios = [row for row in at_levels if not isinstance(row.answer.result, stats.Difference)]
    shifts = [row for row in at_levels if isinstance(row.answer.result, stats.Difference)]
    if any(isinstance(row.result, stats.Ratio) for row in ratios):
        parts.append(_ratios_by_level(evidence, ratios))
    if any(isinstance(row.result, stats.Difference) for row in shifts):
        parts.append(differences.by_level(evidence, shifts))
    if at_levels and not any(isinstance(row.result, NUMBER) for row in at_levels):
        parts.append(Text(f"Whether a ratio changes with another factor: {at_levels[0].result}."))
    return parts


def _substituted_baselines(evidence: Evidence, answers: Answers) -> list[str]:
    """Return a sentence for each baseline without values, naming the level that replaces it."""
    sentences = []
    for factor in dict.fromkeys(item.factor for item in answers.items):
        planned, used = planned_baseline(evidence, factor), baseline_of(evidence, factor)
        if not same_level(planned, used):
            sentences.append(
                f"{evidence.title(factor, planned)} has no usable run, so the baseline is "
                f"{evidence.title(factor, used)}, the first level with one."
            )
    for answer in answers.items:
        common = baseline_of(evidence, answer.factor)
        if not same_level(common, answer.baseline):
            sentences.append(
                f"In {answer.response.title}, runs of {evidence.title(answer.factor, common)} "
                "have no comparable value, so the baseline is "
                f"{evidence.title(answer.factor, answer.baseline)}, the first level without "
                "such runs."
            )
    return list(dict.fromkeys(sentences))


def gaps(evidence: Evidence, answers: Answers) -> list[str]:
    """Return sentences on usable runs that ended badly or lack a response.

    Ratios over the remaining runs would otherwise look better than the treatments are.
    """
    frame = evidence.usable
    sentences = []
    for outcome in sorted(set(frame["outcome"].to_list()) - {"completed"}):
        runs = frame.filter(pl.col("outcome") == outcome).height
        sentences.append(
            f"{words.plural(runs, 'usable run')} ended as {outcome.replace('_', ' ')}."
        )
    for response in dict.fromkeys(answer.response for answer in answers.items):
        missing = int(np.isnan(column(frame, response.column)).sum())
        if 0 < missing < frame.height:
            runs_text = words.plural(missing, "usable run")
            sentences.append(f"{runs_text} without {response.title}: missing from its ratios.")
    return sentences


def _question_words(
    evidence: Evidence, question_answers: Sequence[Answer], answers: Answers
) -> list[Text]:
    if not question_answers:
        return [Text("Not answered: this campaign holds its factors at one level.")]
    numbers = [answer for answer in question_answers if isinstance(answer.result, NUMBER)]
    uncomputed = [answer for answer in question_answers if not isinstance(answer.result, NUMBER)]
    difference_responses = [
        answer.response
        for answer in question_answers
        if isinstance(answer.result, stats.Difference)
    ]
    sentences = [
        differences.why(evidence, response) for response in dict.fromkeys(difference_responses)
    ]
    groups: dict[tuple[Response, str], list[Answer]] = {}
    for answer in numbers:
        groups.setdefault((answer.response, answer.factor), []).append(answer)
    for group in groups.values():
        sentences += _level_sentences(evidence, group, answers)
    # Answers that share a reason for having no number need only one sentence.
    reasons = dict.fromkeys((answer.response.title, str(answer.result)) for answer in uncomputed)
    reason_sentences = [f"{title[:1].upper()}{title[1:]}: {reason}." for title, reason in reasons]
    omitted_count = len(reason_sentences) - SENTENCES_MAX
    sentences += reason_sentences[:SENTENCES_MAX] + (
        [f"{omitted_count} more have no number; see the table."] * (omitted_count > 0)
    )
    if evidence.excluded.height:
        sentences += filter(
            None, (sentence_of_all(evidence, answer, answers) for answer in uncomputed)
        )
    return [Text(text, "item") for text in sentences]


def _level_sentences(evidence: Evidence, group: Sequence[Answer], answers: Answers) -> list[str]:
    """Return one sentence per level of a factor in a response.

    Of more than SENTENCES_MAX levels, only the lowest and highest have one; another sums up the
    rest.
    """
    shown = list(group)
    ranked = sorted(group, key=lambda answer: answer.interval.estimate)
    if len(group) > SENTENCES_MAX:
        shown = [*ranked[:LOWEST_LISTED], *ranked[-HIGHEST_LISTED:]]
    sentences = []
    for answer in shown:
        text = sentence(evidence, answer, answers.family)[:-1]
        sentences.append(f"{text}: {words.OUTCOMES[answers.outcome(answer)]}.")
    if len(group) == len(shown):
        return sentences
    rest = ranked[LOWEST_LISTED:-HIGHEST_LISTED]
    ends = [words.number(rest[index].interval.estimate) for index in (0, -1)]
    is_ratio = isinstance(rest[0].result, stats.Ratio)
    unit = " times" if is_ratio else f" {rest[0].response.unit}".rstrip()
    outcomes = Counter(words.OUTCOMES[answers.outcome(answer)] for answer in rest)
    outcome_counts = words.listed(
        [f"{count} {outcome}" for outcome, count in outcomes.most_common()]
    )
    table_title = "All answers" if is_ratio else "Answers as differences"
    first, response = rest[0], rest[0].response
    sentences.append(
        f"The other {words.plural(len(rest), 'level')} of {words.factor_title(first.factor)} in "
        f"{response.title} range from {ends[0]} to {ends[1]}{unit}: {outcome_counts} (see the "
        f"table “{table_title}”). The baseline of all is "
        f"{evidence.title(first.factor, first.baseline)}{_default_note(evidence, first.factor)}."
    )
    return sentences


def _default_note(evidence: Evidence, factor: str) -> str:
    named = factor in evidence.study.answers.baseline
    return "" if named else ", the first level: the study names no other (answers.baseline)"


def _ratio_figure(evidence: Evidence, computed: Sequence[Answer], answers: Answers) -> Figure:
    points: list[dict[str, Any]] = []
    for answer in _distinct(computed):
        interval = answer.interval
        first = all(p["response"] != answer.response.title for p in points)
        point: dict[str, Any] = {
            "name": f"{evidence.title(answer.factor, answer.level)} / "
            f"{evidence.title(answer.factor, answer.baseline)}",
            "response": answer.response.title,
            "one": 1 if first else None,
            "ratio": figures.rounded(interval.estimate),
            "low": figures.rounded(interval.low),
            "high": figures.rounded(interval.high),
        }
        if answers.margin is not None and first:
            point |= {"margin_low": 1 / (1 + answers.margin), "margin_high": 1 + answers.margin}
        points.append(point)
    margin = (
        f" The grey band is the study's margin of ± {words.percent(answers.margin)}."
        if answers.margin is not None
        else ""
    )
    return Figure(
        "ratios",
        "Ratios with their intervals",
        "Geometric-mean ratios; the bars are simultaneous "
        f"{words.confidence(CONFIDENCE)} intervals over the family of {answers.family}.{margin}",
        figures.ratios_chart(points, answers.margin),
    )


def _distinct(items: Sequence[Answer]) -> list[Answer]:
    seen: dict[tuple[str, str, str], Answer] = {}
    for item in items:
        seen.setdefault((item.response.column, item.factor, str(item.level)), item)
    return sorted(seen.values(), key=lambda answer: answer.response.title)


def _answer_table(evidence: Evidence, answers: Answers) -> Table:
    rows = []
    for answer in answers.items:
        result = answer.result
        row: dict[str, Any] = {
            "question": answer.question,
            "response": answer.response.title,
            "factor": words.factor_title(answer.factor),
            "level": evidence.title(answer.factor, answer.level),
            "baseline": evidence.title(answer.factor, answer.baseline),
            "ratio": _ratio_of(result, answer.response.share),
        }
        if isinstance(result, stats.Ratio):
            row |= {
                "outcome": words.OUTCOMES[answers.outcome(answer)],
                "level_exact": words.confidence(result.interval.level),
                "model": result.kind,
                "degrees": int(result.interval.degrees or 0),
                "runs": result.run_count,
                "blocks": result.block_count,
            }
        if answers.block_count >= RANK_BLOCKS_MIN and not isinstance(result, stats.Difference):
            row["by_ranks"] = answer.by_ranks
            if isinstance(answer.by_ranks, stats.Interval):
                row["rank_level"] = words.confidence(answer.by_ranks.level)
        if evidence.excluded.height:
            with_all = answer.with_all
            row["with_all"] = _ratio_of(with_all, answer.response.share)
        rows.append(row)
    columns = [
        Column("question", ""),
        Column("response", "response"),
        Column("factor", "factor"),
        Column("level", "level"),
        Column("baseline", "against"),
        Column("ratio", "ratio [interval]", "measured"),
        Column("outcome", "outcome"),
        Column("level_exact", "exact level"),
        Column("model", "model"),
        Column("degrees", "df", "measured"),
        Column("runs", "runs", "measured"),
        Column("blocks", "blocks", "measured"),
    ]
    if answers.block_count >= RANK_BLOCKS_MIN:
        columns.append(Column("by_ranks", "Hodges–Lehmann by ranks", "measured"))
        columns.append(Column("rank_level", "its exact level"))
    if evidence.excluded.height:
        columns.append(Column("with_all", "with the excluded runs", "measured"))
    family = evidence.study.answers.family or "all answers below, together"
    registration = "Registered in the study"
    if evidence.imported:
        registration = "Chosen after the data were recorded, so exploratory"
    edits = [f"{words.listed(list(evidence.edited))} edited"] if evidence.edited else []
    edits += ["validity limits changed"] if evidence.validity_changed else []
    if edits:
        registration = f"{words.listed(edits)} afterwards, so exploratory"
    return Table(
        "answers",
        "All answers",
        columns,
        rows,
        f"Family: {family} ({words.plural(answers.family, 'interval')}, together at "
        f"{words.confidence(CONFIDENCE)}, Bonferroni). {registration}. Estimand: ratio of "
        "geometric means inside blocks, averaged with equal weight over the combinations of the "
        "other factors. “Different”: the interval excludes 1. “Equivalent”: the interval is inside "
        "the study's margin. “Not larger than the A/A noise”: the interval excludes 1, but two "
        "identical labels may differ by as much (far end of their interval; see the control runs). "
        "“No difference detected”: all others; this does not show that there is no difference.",
    )


def _ratio_of(result: Result, is_share: bool) -> Any:
    """Return the ratio's interval, or the reason why there is no ratio.

    Differences have a table of their own.
    """
    if isinstance(result, stats.Difference):
        if is_share:
            return stats.NotComputable("a share: compared by its difference, see below")
        return stats.NotComputable(
            "no ratio: a run's value has no logarithm; see the differences below"
        )
    return result.interval if isinstance(result, stats.Ratio) else result


def _ratios_by_level(evidence: Evidence, at_levels: Sequence[AtLevel]) -> Table:
    rows = []
    for at_level in at_levels:
        answer, result = at_level.answer, at_level.result
        rows.append(
            {
                "response": answer.response.title,
                "contrast": f"{evidence.title(answer.factor, answer.level)} / "
                f"{evidence.title(answer.factor, answer.baseline)}",
                "at": evidence.title(at_level.other, at_level.level),
                "ratio": result.interval if isinstance(result, stats.Ratio) else result,
                "strata": result.strata if isinstance(result, stats.Ratio) else None,
            }
        )
    return Table(
        "ratios-by-level",
        "Ratios by level of the other factors",
        [
            Column("response", "response"),
            Column("contrast", "contrast"),
            Column("at", "at"),
            Column("ratio", "ratio [interval]", "measured"),
            Column("strata", "combinations", "measured"),
        ],
        rows,
        f"Exploratory: {words.confidence(CONFIDENCE)} intervals, not corrected for multiple "
        "comparisons.",
    )
