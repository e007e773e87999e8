"""Report treatments and questions without an answer, and the reason for each.

Such treatments are skipped or have no valid run. Such questions have no number. The page's first
lines name the treatments that are missing from a comparison, in addition to the audit trail.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wattwire.analysis.answering.answer_types import NUMBER, Answers
from wattwire.analysis.comparing.common import judges_variants
from wattwire.analysis.dataset import Evidence, all_levels, same_level
from wattwire.analysis.document import Document
from wattwire.analysis.metrics_by_role import BOTH, is_measured
from wattwire.analysis.offloading.emulated import is_emulated
from wattwire.analysis.responses import measured, question_responses, resolve
from wattwire.analysis.topics.answers.numbers import AnsweredStudy
from wattwire.model import words
from wattwire.model.derived import column
from wattwire.model.study import Study
from wattwire.model.variants import FACTOR
from wattwire.report.parts import Column, Table
from wattwire.report.words import headline as of_answers
from wattwire.report.words import not_compared
from wattwire.report.words.phrases import Phrase, Phrases, joined

PHRASES = Phrases(
    "unanswered",
    {
        # Sentences in the first lines of the page.
        "requested_lost": ("This page lacks requested answers and gives no reason ({requested})."),
        "requested": "question {question}: {response} by {factor}",
        "skipped": "Skipped {treatments:listed}: {reason}.",
        "no_answer": "No answer for {treatments:listed}: {reason}.",
        "causes": "{causes:listed}",
        "cause": "{cause} in {runs:count} of {tried:plural run}",
        "only_treatment": "the only treatment",
        "others": (
            "{treatments:plural treatment has/treatments have} no answer; see “Without an answer”."
        ),
        "more": (
            "{treatments:plural more treatment has/more treatments have} no answer; see "
            "“Without an answer”."
        ),
        "question": "question {question}",
        "questions": "questions {questions:listed}",
        "no_answer_about": "No answer to {question} about {factor}: {reason}.",
        "no_answer_to": "No answer to {question}: {reason}.",
        "no_answer_in": "No answer to {question} in {responses:listed}: {reason}.",
        "no_interval": "No interval for {question} in {responses:listed}: {reason}.",
        "not_measured": "not measured in this campaign",
        "and_other_reasons": "{reason}, and {others:plural other reason}",
        # Texts in the table of treatments without an answer.
        "title": "Without an answer",
        "row_skipped": "skipped",
        "row_no_answer": "no answer",
    },
)

NAMED_MAX = 6
"""Maximum number of treatments that the page's first sentence names."""
REASONS_NAMED = 3
"""Maximum number of reasons that a sentence on responses without a number states."""
IN_WORDS = {
    "other_load": "machine busy",
    "steal": "CPU time stolen by the host of this virtual machine",
    "stall": "machine stalled",
    "temperature": "machine too hot",
    "clock_step": "clock adjusted",
    "sums": "inconsistent counts",
    "sample_file": "no valid sample file",
    "port_in_use": "a port in use before GO",
    "permission": "a missing permission before GO",
    "missing_library": "a missing library before GO",
}
"""Codes of exclusion reasons → text."""
IMPORTED = "imported"
"""Code of each exclusion reason of imported data. Its detail states the reason."""
WITH_DATA = ("", "completed", "imported")
"""Outcomes that are no reason for a missing number."""
PAIR = ("middleware", "language")
"""The two factors that together identify a cell."""
ADVICE = re.compile("; install (it|them) and try again$")
Levels = Mapping[str, Any]


@dataclass(frozen=True)
class Missing:
    """Treatments without an answer that share a `reason`, by their shortest names."""

    names: tuple[str, ...]
    reason: str
    left_out: bool = False
    """Whether the treatments were never measured."""

    @property
    def sentence(self) -> Phrase:
        """Return a sentence such as "CELL: no answer, machine busy in 4 of 4 runs."."""
        return PHRASES(
            "skipped" if self.left_out else "no_answer", treatments=self.names, reason=self.reason
        )


def headline(evidence: Evidence, document: Document) -> Phrase:
    """Return the headline of the page.

    It consists of a warning about lost answers, the first sentence, the treatments without an
    answer, and the emulated devices.
    """
    first = of_answers.headline(evidence, document)
    missing = in_short(treatments(evidence))
    warning = lost(evidence, document.result(AnsweredStudy).contrasts)
    return joined([warning, first, missing, not_compared.emulated(evidence)])


# -- treatments --------------------------------------------------------------------------------


def treatments(evidence: Evidence) -> list[Missing]:
    """Return the treatments of the design without an answer, by reason.

    The result omits treatments that the study excludes, and treatments whose runs are still to
    come.
    """
    designed: dict[str, Levels] = {}
    keys: dict[str, str] = {}
    for entry in evidence.designed:
        levels = all_levels(entry)
        key = keys[entry["run"]] = _key(levels)
        designed[key] = levels
    skipped_entries = [
        entry for entry in evidence.skipped if not _excluded(evidence.study, all_levels(entry))
    ]
    all_treatments = [*designed.values(), *map(all_levels, skipped_entries)]
    missing = []
    runs = _without_number(evidence, keys)
    for name, members in _named_groups(evidence, [designed[key] for key in runs], all_treatments):
        member_runs = [run for levels in members for run in runs[_key(levels)]]
        missing.append(Missing((name,), _causes(evidence, member_runs)))
    skipped: dict[str, list[Levels]] = {}
    for entry in skipped_entries:
        skipped.setdefault(str(entry["skipped"]), []).append(all_levels(entry))
    for reason, skipped_treatments in skipped.items():
        names = tuple(
            name for name, _ in _named_groups(evidence, skipped_treatments, all_treatments)
        )
        why = ADVICE.sub("", reason)
        why = why.removeprefix(f"{names[0]}: ") if len(names) == 1 else why
        missing.append(Missing(names, why, left_out=True))
    return missing


def _key(levels: Levels) -> str:
    return repr(sorted(levels.items()))


def _as_list(level: Any) -> list[Any]:
    return level if isinstance(level, list) else [level]


def _excluded(study: Study, levels: Levels) -> bool:
    return any(
        all(
            any(same_level(levels.get(key), wanted) for wanted in _as_list(level))
            for key, level in rule.items()
            if key != "because"
        )
        for rule in study.excludes
    )


def _without_number(evidence: Evidence, keys: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the tried runs of each treatment without a number, by the treatment's key.

    `keys` has the treatment's key of each designed run.
    """
    columns = [
        column(evidence.usable, response.column) for response in question_responses(evidence)
    ]
    known = [values for values in columns if not np.isnan(values).all()]
    number_counts = np.zeros(evidence.usable.height) if known else np.ones(evidence.usable.height)
    number_counts += is_emulated(evidence.usable)  # their section of the page has their numbers
    for values in known:
        number_counts += ~np.isnan(values)
    usable = evidence.usable["run"].to_list() if evidence.usable.height else []
    answered = {
        keys.get(run) for run, count in zip(usable, number_counts.tolist(), strict=True) if count
    }
    excluded = evidence.excluded["run"].to_list() if evidence.excluded.height else []
    tried: dict[str, list[str]] = {}
    for run in (*usable, *excluded):
        if run in keys and keys[run] not in answered:
            tried.setdefault(keys[run], []).append(run)
    return {key: tried[key] for key in dict.fromkeys(keys.values()) if key in tried}


def _causes(evidence: Evidence, runs: Sequence[str]) -> Phrase:
    """Return the exclusion reasons or outcomes of the runs, most frequent first."""
    counts: Counter[str] = Counter()
    for run in runs:
        document = evidence.runs.get(run, {})
        reasons = document.get("reasons", [])
        codes = sorted({str(reason["code"]) for reason in reasons if reason["code"] != IMPORTED})
        codes += [str(reason["detail"]) for reason in reasons if reason["code"] == IMPORTED]
        outcome = str(document.get("outcome", "")).replace("_", " ")
        counts.update(
            [IN_WORDS.get(code, code.replace("_", " ")) for code in codes]
            or ["no number" if outcome in WITH_DATA else outcome]
        )
    causes = [
        PHRASES("cause", cause=cause, runs=count, tried=len(runs))
        for cause, count in counts.most_common()
    ]
    return PHRASES("causes", causes=causes)


def _named_groups(
    evidence: Evidence, missing: Sequence[Levels], all_treatments: Sequence[Levels]
) -> list[tuple[str, list[Levels]]]:
    """Return (short name, treatments) of each group in `missing`.

    If all treatments of a level are missing, they form a group with the level's name. Every other
    treatment is a group by itself.
    """
    remaining, named = list(missing), []
    combinations: list[tuple[str, ...]] = [(name,) for name in evidence.varied]
    combinations += [PAIR] if set(PAIR) <= set(evidence.varied) else []
    for factors in combinations:
        totals = Counter(_level_words(treatment, factors) for treatment in all_treatments)
        for levels, count in Counter(
            _level_words(treatment, factors) for treatment in remaining
        ).items():
            if count == totals[levels] and len(totals) > 1:
                matching = [
                    treatment
                    for treatment in remaining
                    if _level_words(treatment, factors) == levels
                ]
                remaining = [
                    treatment
                    for treatment in remaining
                    if _level_words(treatment, factors) != levels
                ]
                level = evidence.title(factors[0], matching[0].get(factors[0]))
                named.append(("/".join(levels) if factors == PAIR else level, matching))
    named += [
        (evidence.treatment_title(treatment) or PHRASES("only_treatment"), [treatment])
        for treatment in remaining
    ]
    return named


def _level_words(levels: Levels, factors: Sequence[str]) -> tuple[str, ...]:
    return tuple(words.plain(levels.get(name)) for name in factors)


def in_short(missing_treatments: Sequence[Missing]) -> Phrase:
    """Return sentences on the treatments for the headline, with a count of those not named."""
    texts, named_count = [], 0
    for missing in missing_treatments:
        if named_count + len(missing.names) <= NAMED_MAX:
            texts.append(missing.sentence)
            named_count += len(missing.names)
    more = sum(len(missing.names) for missing in missing_treatments) - named_count
    if more:
        texts.append(PHRASES("more" if texts else "others", treatments=more))
    return joined(texts)


def table(missing_treatments: Sequence[Missing]) -> Table | None:
    """Return the table of treatments without an answer, or None if there are none."""
    rows = [
        {
            "name": name,
            "what": PHRASES("row_skipped" if missing.left_out else "row_no_answer"),
            "reason": missing.reason,
        }
        for missing in missing_treatments
        for name in missing.names
    ]
    if not rows:
        return None
    columns = [Column("name", "treatment"), Column("what", ""), Column("reason", "reason")]
    return Table("without-answer", PHRASES("title"), columns, rows)


# -- questions ---------------------------------------------------------------------------------


def questions(evidence: Evidence, answers: Answers) -> list[Phrase]:
    """Return a sentence per fixed factor, and one per reason for responses without a number."""
    texts: list[Phrase] = []
    gaps: list[_Gap] = []
    if not evidence.usable.height:
        return texts
    for number, question in enumerate(evidence.study.questions, 1):
        name = PHRASES("question", question=question.id or number)
        held = evidence.held(question)
        is_partly_held = len(held) < len(question.factors)
        for factor, level in held:
            why = words.nothing_to_compare(factor, words.plain(level))
            texts.append(
                PHRASES("no_answer_about", question=name, factor=factor, reason=why)
                if is_partly_held
                else PHRASES("no_answer_to", question=name, reason=why)
            )
        for response_name in question.responses:
            response = resolve(response_name, evidence.described)
            items = [
                item
                for item in answers.items
                if item.question == question.id and item.response == response
            ]
            reasons = dict.fromkeys(str(item.result) for item in items)
            has_counts = response.share and measured(evidence.usable, response)
            if has_counts or any(isinstance(item.result, NUMBER) for item in items):
                continue
            if not items and (question.factors or is_measured(evidence, response, BOTH)):
                continue
            id_text, is_known = str(question.id or number), measured(evidence.usable, response)
            gaps.append(_Gap(is_known, (id_text,), (response.title,), tuple(reasons)))
    return [*texts, *(gap.sentence for gap in _merged(gaps))]


@dataclass(frozen=True)
class _Gap:
    """Responses of questions without a number, for the same reasons."""

    is_measured: bool
    questions: tuple[str, ...]
    responses: tuple[str, ...]
    reasons: tuple[str, ...]

    @property
    def sentence(self) -> Phrase:
        named, others = self.reasons[:REASONS_NAMED], len(self.reasons) - REASONS_NAMED
        why = joined(named, "; ") if named else PHRASES("not_measured")
        if others > 0:
            why = PHRASES("and_other_reasons", reason=why, others=others)
        is_single = len(self.questions) == 1
        name = (
            PHRASES("question", question=self.questions[0])
            if is_single
            else PHRASES("questions", questions=self.questions)
        )
        return PHRASES(
            "no_interval" if self.is_measured else "no_answer_in",
            question=name,
            responses=self.responses,
            reason=why,
        )


def _merged(gaps: Sequence[_Gap]) -> list[_Gap]:
    """Return the gaps with the responses of a question, then the questions, that have the same
    reasons, merged.
    """
    by_question: dict[Any, _Gap] = {}
    for gap in gaps:
        key = gap.is_measured, gap.questions, gap.reasons
        first = by_question.get(key)
        responses = (*first.responses, *gap.responses) if first else gap.responses
        by_question[key] = replace(gap, responses=responses)
    merged: dict[Any, _Gap] = {}
    for gap in by_question.values():
        key = gap.is_measured, gap.responses, gap.reasons
        first = merged.get(key)
        questions = (*first.questions, *gap.questions) if first else gap.questions
        merged[key] = replace(gap, questions=questions)
    return list(merged.values())


def lost(evidence: Evidence, answers: Answers) -> Phrase:
    """Return a warning about requested answers that lack both a number and a reason.

    The cause is an error of the program or an edited campaign, so the warning comes first. The
    result is "" if there are no such answers.
    """
    answered = {(item.question, item.factor, item.response.column) for item in answers.items}
    missing = []
    for number, question in enumerate(evidence.study.questions, 1):
        held = dict(evidence.held(question))
        if judges_variants(evidence):  # their verdict has the reason
            held[FACTOR] = None
        for factor in question.factors:
            if factor in held or evidence.factors.get(factor) == ():
                continue
            for name in question.responses:
                response = resolve(name, evidence.described)
                if (question.id, factor, response.column) not in answered:
                    missing.append(
                        PHRASES(
                            "requested",
                            question=question.id or number,
                            response=response.title,
                            factor=words.factor_title(factor),
                        )
                    )
    return PHRASES("requested_lost", requested=joined(missing, "; ")) if missing else Phrase()
