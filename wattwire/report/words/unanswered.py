"""What has no answer, and why: treatments left out or without a usable run, questions without a
number.

A candidate that is missing from a comparison is named beside it, not in the audit trail alone.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wattwire.analysis.contrasts import NUMBER, Answers
from wattwire.analysis.controls import asked_responses
from wattwire.analysis.dataset import Evidence, all_levels, same_level
from wattwire.analysis.metrics_by_role import BOTH, is_measured
from wattwire.analysis.responses import measured, resolve
from wattwire.model import words
from wattwire.model.derived import column
from wattwire.report.parts import Column, Table
from wattwire.report.words import answers as sentences

NAMED_MAX = 6
"""Up to so many treatments stand in the page's first sentence."""
IN_WORDS = {
    "other_load": "machine busy",
    "steal": "CPU time taken by the host of this virtual machine",
    "stall": "machine stood still",
    "temperature": "machine too hot",
    "clock_step": "clock set",
    "sums": "counts that disagree",
    "sample_file": "no valid sample file",
}
"""Codes of reasons why a run is excluded, in words."""
PAIR = ("middleware", "language")
"""Two factors that name a cell together."""
ADVICE = "; install it and try again"
Levels = Mapping[str, Any]


@dataclass(frozen=True)
class Missing:
    """Treatments by their shortest names, without an answer for one `reason`."""

    names: tuple[str, ...]
    reason: str
    left_out: bool = False
    """Whether they were never run."""

    @property
    def sentence(self) -> str:
        """As "CELL: no answer, machine busy in 4 of 4 runs."."""
        what = "left out" if self.left_out else "no answer"
        return f"{words.listed(list(self.names))}: {what}, {self.reason}."


def headline(evidence: Evidence, answers: Answers) -> str:
    """The page's first sentence, and after it the treatments that it does not speak for."""
    told = sentences.headline(evidence, answers)
    return " ".join(filter(None, (lost(evidence, answers) + told, in_short(treatments(evidence)))))


# -- treatments --------------------------------------------------------------------------------


def treatments(evidence: Evidence) -> list[Missing]:
    """Return the treatments of the design that no answer speaks for, by their reason.

    What the study itself excludes was not asked for, and what was not tried yet may still come.
    """
    designed = {_key(levels): levels for levels in map(all_levels, evidence.designed)}
    lacking = [
        entry for entry in evidence.skipped if not _excluded(evidence.study, all_levels(entry))
    ]
    everything = [*designed.values(), *map(all_levels, lacking)]
    found = []
    runs = _without_number(evidence, designed)
    for name, members in _named(evidence, [designed[key] for key in runs], everything):
        mine = [run for levels in members for run in runs[_key(levels)]]
        found.append(Missing((name,), _why(evidence, mine)))
    skipped: dict[str, list[Levels]] = {}
    for entry in lacking:
        skipped.setdefault(str(entry["skipped"]), []).append(all_levels(entry))
    for reason, treatments_ in skipped.items():
        names = tuple(name for name, _ in _named(evidence, treatments_, everything))
        why = reason.removesuffix(ADVICE)
        why = why.removeprefix(f"{names[0]}: ") if len(names) == 1 else why
        found.append(Missing(names, why, left_out=True))
    return found


def _key(levels: Levels) -> str:
    return json.dumps(levels, sort_keys=True, default=str)


def _excluded(study: Mapping[str, Any], levels: Levels) -> bool:
    some = study.get("exclude", {}).get("treatments", [])
    return any(
        all(same_level(levels.get(key), level) for key, level in one.items() if key != "because")
        for one in some
    )


def _without_number(evidence: Evidence, designed: Mapping[str, Levels]) -> dict[str, list[str]]:
    """Tried runs by treatment, of the treatments whose runs give no number at all."""
    keys = {entry["run"]: _key(all_levels(entry)) for entry in evidence.designed}
    columns = [column(evidence.usable, one.column) for one in asked_responses(evidence)]
    known = [values for values in columns if not np.isnan(values).all()]
    told = np.zeros(evidence.usable.height) if known else np.ones(evidence.usable.height)
    for values in known:
        told += ~np.isnan(values)
    usable = evidence.usable["run"].to_list() if evidence.usable.height else []
    answered = {keys.get(run) for run, count in zip(usable, told.tolist(), strict=True) if count}
    excluded = evidence.set_aside["run"].to_list() if evidence.set_aside.height else []
    tried: dict[str, list[str]] = {}
    for run in (*usable, *excluded):
        if run in keys and keys[run] not in answered:
            tried.setdefault(keys[run], []).append(run)
    return {key: tried[key] for key in designed if key in tried}


def _why(evidence: Evidence, runs: Sequence[str]) -> str:
    """The reasons why runs are excluded, or how they ended, the most frequent first."""
    counts: Counter[str] = Counter()
    for run in runs:
        document = evidence.runs.get(run, {})
        codes = {str(reason["code"]) for reason in document.get("reasons", [])}
        ended = str(document.get("outcome", "")).replace("_", " ")
        counts.update(
            [IN_WORDS.get(code, code.replace("_", " ")) for code in codes] or [ended or "no number"]
        )
    tried = words.plural(len(runs), "run")
    return words.listed(
        [f"{what} in {words.count(count)} of {tried}" for what, count in counts.most_common()]
    )


def _named(
    evidence: Evidence, missing: Sequence[Levels], all_: Sequence[Levels]
) -> list[tuple[str, list[Levels]]]:
    """Short names of `missing` and who has each: a level whose treatments are all missing, or one
    treatment."""
    left, named = list(missing), []
    combinations: list[tuple[str, ...]] = [(name,) for name in evidence.varied]
    combinations += [PAIR] if set(PAIR) <= set(evidence.varied) else []
    for factors in combinations:
        totals = Counter(_at(one, factors) for one in all_)
        for levels, count in Counter(_at(one, factors) for one in left).items():
            if count == totals[levels] and len(totals) > 1:
                mine = [one for one in left if _at(one, factors) == levels]
                left = [one for one in left if _at(one, factors) != levels]
                level = evidence.title(factors[0], mine[0].get(factors[0]))
                named.append(("/".join(levels) if factors == PAIR else level, mine))
    named += [(evidence.treatment_title(one) or "the only treatment", [one]) for one in left]
    return named


def _at(levels: Levels, factors: Sequence[str]) -> tuple[str, ...]:
    return tuple(words.plain(levels.get(name)) for name in factors)


def in_short(found: Sequence[Missing]) -> str:
    """All of them for the page's first sentence, the names of many only counted; "" for none."""
    told, named = [], 0
    for one in found:
        if named + len(one.names) <= NAMED_MAX:
            told.append(one.sentence)
            named += len(one.names)
    more = sum(len(one.names) for one in found) - named
    if more:
        also = " more" if told else ""
        told.append(
            f"{words.count(more)}{also} of the design without an answer: see “Without an answer”."
        )
    return " ".join(told)


def table(found: Sequence[Missing]) -> Table | None:
    """Every treatment without an answer; None where each has one."""
    rows = [
        {"name": name, "what": "left out" if one.left_out else "no answer", "reason": one.reason}
        for one in found
        for name in one.names
    ]
    if not rows:
        return None
    columns = [Column("name", "treatment"), Column("what", ""), Column("reason", "reason")]
    return Table("without-answer", "Without an answer", columns, rows)


# -- questions ---------------------------------------------------------------------------------


def questions(evidence: Evidence, answers: Answers) -> list[str]:
    """Return a sentence for each question's factor that is held at one level, and for each of its
    responses that has no number, with the reasons."""
    told: list[str] = []
    if not evidence.usable.height:
        return told
    for number, question in enumerate(evidence.study.get("question", []), 1):
        name = f"question {question.get('id') or number}"
        held = evidence.held(question)
        some = len(held) < len(question.get("factors", []))
        for factor, level in held:
            about = f" about {factor}" if some else ""
            why = words.nothing_to_compare(factor, words.plain(level))
            told.append(f"No answer to {name}{about}: {why}.")
        for asked in question.get("responses", []):
            response = resolve(asked, evidence.described)
            items = [
                item
                for item in answers.items
                if item.question == str(question.get("id", "")) and item.response == response
            ]
            reasons = dict.fromkeys(str(item.result) for item in items)
            counted = response.share and measured(evidence.usable, response)
            if counted or any(isinstance(item.result, NUMBER) for item in items):
                continue
            if not items and (question.get("factors") or is_measured(evidence, response, BOTH)):
                continue
            why = next(iter(reasons), "not measured in this campaign")
            others = len(reasons) - 1
            why += f", and {words.plural(others, 'other reason')}" if others > 0 else ""
            what = "No interval for" if measured(evidence.usable, response) else "No answer to"
            told.append(f"{what} {name} in {response.title}: {why}.")
    return told


def lost(evidence: Evidence, answers: Answers) -> str:
    """Return a warning about what was asked and has neither an answer nor a reason; "" for none.

    That is a fault of ours or of an edited campaign, so that it stands before all else.
    """
    there = {(item.question, item.factor, item.response.column) for item in answers.items}
    told = []
    for number, question in enumerate(evidence.study.get("question", []), 1):
        held = dict(evidence.held(question))
        for factor in question.get("factors", []):
            if factor in held or evidence.factors.get(factor) == ():
                continue
            for name in question.get("responses", []):
                response = resolve(name, evidence.described)
                if (str(question.get("id", "")), factor, response.column) not in there:
                    told.append(f"question {question.get('id') or number}: {response.title} by "
                                f"{words.factor_title(factor)}")  # fmt: skip
    if not told:
        return ""
    return f"This page lacks answers that were asked for, without a reason ({'; '.join(told)}). "
