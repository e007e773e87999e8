"""The part of the page that answers the study's questions."""

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
from wattwire.analysis.validity import CHANGED
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
"""So many ratios that depend on another factor have a sentence; the table below has all."""
SENTENCES_MAX, LOWEST_TOLD, HIGHEST_TOLD = 8, 3, 2
"""A factor with more answers than that has sentences for its lowest and its highest ones only."""


def section(
    evidence: Evidence, answers: Answers, document: Mapping[str, Any] | None = None
) -> Section:
    """The page's part that answers each question, with the family its intervals hold in.

    It begins with all answers of `document` (report/analysis.json) in short.
    """
    part = Section("answers", "Answers")
    short = short_answers.table(document) if document else None
    part.parts += [short] if short else []
    if not answers.items:
        part.parts.append(Text(nothing_to_compare(evidence)))
        return part
    if answers.block_count == 1:
        part.parts.append(
            Text(
                "One block: no interval per treatment; drift cannot be separated. The ratios "
                "below are main effects over the factorial: the other factors act as "
                "replication and their interactions stand in the error.",
                "warning",
            )
        )
    stopped = stopping.sentence(evidence)
    if stopped:
        part.parts.append(Text(stopped))
    few = few_degrees(answers)
    if few:
        part.parts.append(Text(few, "warning"))
    part.parts += [Text(one, "warning") for one in _stand_ins(evidence, answers)]
    missing = gaps(evidence, answers)
    if missing:
        part.parts.append(Text(" ".join(missing), "warning"))
    chosen = choices(evidence, answers)
    for question in evidence.study.get("question", []):
        mine = [a for a in answers.items if a.question == str(question.get("id", ""))]
        part.parts.append(Text(f"{question.get('id', '')}  {question.get('text', '')}", "question"))
        part.parts.extend(best_alternative.sentences(evidence, question, chosen))
        if mine or not question.get("beside"):
            part.parts.extend(_question_words(evidence, mine, answers))
        part.parts.extend(correlation.sentences(evidence, question))
    part.parts += [Text(note, "item") for note in best_alternative.notes(evidence, chosen)]
    ranked = alternatives_table(evidence, chosen)
    part.parts += [ranked] if ranked else []
    computed = answers.computed()
    if computed:
        part.parts.append(_ratio_figure(evidence, computed, answers))
    part.parts.append(_answer_table(evidence, answers))
    if answers.differences():
        part.parts.append(differences.table(evidence, answers))
    part.parts.extend(sensitivity.parts(evidence, answers))
    part.parts.extend(_by_level(evidence, by_level(evidence, answers)))
    return part


def _by_level(evidence: Evidence, inner: Sequence[AtLevel]) -> list[Text | Table]:
    """Whether the answers stand for all levels of the other factors."""
    found = [change_sentence(change_entry(evidence, one)) for one in changes(inner)]
    told: list[Text | Table] = [Text(one, "warning") for one in found[:CHANGES_MAX]]
    ratios = [row for row in inner if not isinstance(row.answer.result, stats.Difference)]
    shifts = [row for row in inner if isinstance(row.answer.result, stats.Difference)]
    if any(isinstance(row.result, stats.Ratio) for row in ratios):
        told.append(_ratios_by_level(evidence, ratios))
    if any(isinstance(row.result, stats.Difference) for row in shifts):
        told.append(differences.by_level(evidence, shifts))
    if inner and not any(isinstance(row.result, NUMBER) for row in inner):
        told.append(Text(f"Whether a ratio changes with another factor: {inner[0].result}."))
    return told


def _stand_ins(evidence: Evidence, answers: Answers) -> list[str]:
    """Which baselines have nothing to compare with, and which level stands in for each."""
    told = []
    for factor in dict.fromkeys(item.factor for item in answers.items):
        planned, used = planned_baseline(evidence, factor), baseline_of(evidence, factor)
        if not same_level(planned, used):
            told.append(
                f"{evidence.title(factor, planned)} has no run to compare with, so "
                f"{evidence.title(factor, used)}, the first level that has one, is the baseline."
            )
    for answer in answers.items:
        whole = baseline_of(evidence, answer.factor)
        if not same_level(whole, answer.baseline):
            told.append(
                f"In {answer.response.title} runs of {evidence.title(answer.factor, whole)} are "
                f"without a value to compare, so {evidence.title(answer.factor, answer.baseline)}, "
                "the first level that has none such, is the baseline."
            )
    return list(dict.fromkeys(told))


def gaps(evidence: Evidence, answers: Answers) -> list[str]:
    """Usable runs that ended badly or lack a response: ratios over the others flatter them."""
    frame = evidence.usable
    told = []
    for outcome in sorted(set(frame["outcome"].to_list()) - {"completed"}):
        runs = frame.filter(pl.col("outcome") == outcome).height
        told.append(f"{words.plural(runs, 'usable run')} ended as {outcome.replace('_', ' ')}.")
    for response in dict.fromkeys(answer.response for answer in answers.items):
        missing = int(np.isnan(column(frame, response.column)).sum())
        if 0 < missing < frame.height:
            counted = words.plural(missing, "usable run")
            told.append(f"Without {response.title}, so missing from its ratios: {counted}.")
    return told


def _question_words(evidence: Evidence, mine: Sequence[Answer], answers: Answers) -> list[Text]:
    if not mine:
        return [Text("Not answered: this campaign holds its factors at one level.")]
    numbers = [answer for answer in mine if isinstance(answer.result, NUMBER)]
    gaps = [answer for answer in mine if not isinstance(answer.result, NUMBER)]
    shifts = [answer.response for answer in mine if isinstance(answer.result, stats.Difference)]
    told = [differences.why(evidence, response) for response in dict.fromkeys(shifts)]
    alike: dict[tuple[Response, str], list[Answer]] = {}
    for answer in numbers:
        alike.setdefault((answer.response, answer.factor), []).append(answer)
    for group in alike.values():
        told += _of_levels(evidence, group, answers)
    # Answers that cannot be given for one and the same reason need one sentence, not twenty.
    reasons = dict.fromkeys((answer.response.title, str(answer.result)) for answer in gaps)
    why = [f"{title[:1].upper()}{title[1:]}: {reason}." for title, reason in reasons]
    more = len(why) - SENTENCES_MAX
    told += why[:SENTENCES_MAX] + ([f"{more} more have no number; see the table."] * (more > 0))
    if evidence.set_aside.height:
        told += filter(None, (sentence_of_all(evidence, answer, answers) for answer in gaps))
    return [Text(one, "item") for one in told]


def _of_levels(evidence: Evidence, group: Sequence[Answer], answers: Answers) -> list[str]:
    """A sentence a level; of many levels the lowest and the highest, and one for the rest."""
    told = list(group)
    ranked = sorted(group, key=lambda answer: answer.interval.estimate)
    if len(group) > SENTENCES_MAX:
        told = [*ranked[:LOWEST_TOLD], *ranked[-HIGHEST_TOLD:]]
    sentences = []
    for answer in told:
        words_of_it = sentence(evidence, answer, answers.family)[:-1]
        sentences.append(f"{words_of_it}: {words.OUTCOMES[answers.outcome(answer)]}.")
    if len(group) == len(told):
        return sentences
    rest = ranked[LOWEST_TOLD:-HIGHEST_TOLD]
    ends = [words.number(rest[at].interval.estimate) for at in (0, -1)]
    of_ratio = isinstance(rest[0].result, stats.Ratio)
    unit = " times" if of_ratio else f" {rest[0].response.unit}".rstrip()
    outcomes = Counter(words.OUTCOMES[answers.outcome(answer)] for answer in rest)
    counted = words.listed([f"{count} {outcome}" for outcome, count in outcomes.most_common()])
    table = "All answers" if of_ratio else "Answers as differences"
    first, response = rest[0], rest[0].response
    sentences.append(
        f"Between them lie {words.plural(len(rest), 'more level')} of "
        f"{words.factor_title(first.factor)} in {response.title}, {ends[0]} to {ends[1]}{unit}: "
        f"{counted}; each stands in the table “{table}”. All are compared with "
        f"{evidence.title(first.factor, first.baseline)}{_unnamed(evidence, first.factor)}."
    )
    return sentences


def _unnamed(evidence: Evidence, factor: str) -> str:
    named = factor in evidence.study.get("answers", {}).get("baseline", {})
    return "" if named else ", the first level, for the study names no other (answers.baseline)"


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
    return sorted(seen.values(), key=lambda a: a.response.title)


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
        if evidence.set_aside.height:
            every = answer.with_all
            row["with_all"] = _ratio_of(every, answer.response.share)
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
    if evidence.set_aside.height:
        columns.append(Column("with_all", "with the runs set aside", "measured"))
    family = evidence.study.get("answers", {}).get("family") or "all answers below, together"
    when = "Registered in the study"
    if evidence.imported:
        when = "Chosen after the data were recorded, so exploratory"
    later = [f"{words.listed(list(evidence.edited))} edited"] if evidence.edited else []
    later += ["validity limits changed"] if CHANGED in evidence.study else []
    if later:
        when = f"{words.listed(later)} afterwards, so exploratory"
    return Table(
        "answers",
        "All answers",
        columns,
        rows,
        f"Family: {family} ({words.plural(answers.family, 'interval')}, together at "
        f"{words.confidence(CONFIDENCE)}, Bonferroni). {when}. Estimand: ratio of "
        "geometric means inside blocks, averaged with equal weight over the combinations of the "
        "other factors. “Different” excludes 1, “equivalent” lies inside the study's margin, "
        "“not larger than the A/A noise” excludes 1 too, but two identical labels may differ by as "
        "much (far end of their interval; see the control runs); anything else is “no difference "
        "detected”, which does not say that there is none.",
    )


def _ratio_of(result: Result, is_share: bool) -> Any:
    """What stands in a cell for ratios: a difference stands in a table of its own."""
    if isinstance(result, stats.Difference):
        if is_share:
            return stats.NotComputable("a share: compared by its difference, see below")
        return stats.NotComputable("no ratio: a run has no logarithm; see the differences below")
    return result.interval if isinstance(result, stats.Ratio) else result


def _ratios_by_level(evidence: Evidence, inner: Sequence[AtLevel]) -> Table:
    rows = []
    for one in inner:
        answer, result = one.answer, one.result
        rows.append(
            {
                "response": answer.response.title,
                "contrast": f"{evidence.title(answer.factor, answer.level)} / "
                f"{evidence.title(answer.factor, answer.baseline)}",
                "at": evidence.title(one.other, one.level),
                "ratio": result.interval if isinstance(result, stats.Ratio) else result,
                "strata": result.strata if isinstance(result, stats.Ratio) else None,
            }
        )
    return Table(
        "ratios-by-level",
        "Does the ratio change with the other factors?",
        [
            Column("response", "response"),
            Column("contrast", "contrast"),
            Column("at", "at"),
            Column("ratio", "ratio [interval]", "measured"),
            Column("strata", "combinations", "measured"),
        ],
        rows,
        f"Exploratory: each interval stands alone at {words.confidence(CONFIDENCE)}.",
    )
