"""Find the treatments of the design without an answer, and the reason for each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wattwire.analysis.dataset import Evidence, all_levels, same_level
from wattwire.analysis.emulated import is_emulated
from wattwire.analysis.responses import question_responses
from wattwire.model import words
from wattwire.model.derived import column
from wattwire.model.study import Study

IMPORTED = "imported"
"""Code of each exclusion reason of imported data. Its detail states the reason."""
WITH_DATA = ("", "completed", "imported")
"""Outcomes that are no reason for a missing number."""
NO_NUMBER = "no number"
"""Cause of a run that has data, but no number."""
PAIR = ("middleware", "language")
"""The two factors that together identify a cell."""
ADVICE = re.compile("; install (it|them) and try again$")
Levels = Mapping[str, Any]


@dataclass(frozen=True)
class Cause:
    """The number of `tried` runs with a cause: a code of exclusion reasons, or an outcome."""

    code: str
    runs: int
    tried: int


@dataclass(frozen=True)
class Missing:
    """Treatments without an answer for one reason, by their shortest names.

    The name is "" for the only treatment. `reason` is that of skipped treatments, which were never
    measured. Others have `causes`, most frequent first.
    """

    names: tuple[str, ...]
    causes: tuple[Cause, ...] = ()
    reason: str = ""

    @property
    def is_skipped(self) -> bool:
        """Whether the treatments were never measured."""
        return not self.causes


@dataclass(frozen=True)
class Row:
    """A treatment without an answer."""

    name: str
    missing: Missing


def treatments_without_answer(evidence: Evidence) -> Iterator[Missing]:
    """Yield the treatments of the design without an answer, by reason.

    They omit treatments that the study excludes, and treatments whose runs are still to come.
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
    runs = _without_number(evidence, keys)
    for name, members in _named_groups(evidence, [designed[key] for key in runs], all_treatments):
        member_runs = [run for levels in members for run in runs[_key(levels)]]
        yield Missing((name,), tuple(_causes(evidence, member_runs)))
    skipped: dict[str, list[Levels]] = {}
    for entry in skipped_entries:
        skipped.setdefault(str(entry["skipped"]), []).append(all_levels(entry))
    for reason, skipped_treatments in skipped.items():
        names = tuple(
            name for name, _ in _named_groups(evidence, skipped_treatments, all_treatments)
        )
        why = ADVICE.sub("", reason)
        why = why.removeprefix(f"{names[0]}: ") if len(names) == 1 else why
        yield Missing(names, reason=why)


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


def _causes(evidence: Evidence, runs: Sequence[str]) -> Iterator[Cause]:
    """Yield the exclusion reasons or outcomes of the runs, most frequent first."""
    counts: Counter[str] = Counter()
    for run in runs:
        document = evidence.runs.get(run, {})
        reasons = document.get("reasons", [])
        codes = sorted({str(reason["code"]) for reason in reasons if reason["code"] != IMPORTED})
        codes += [str(reason["detail"]) for reason in reasons if reason["code"] == IMPORTED]
        outcome = str(document.get("outcome", ""))
        counts.update(codes or [NO_NUMBER if outcome in WITH_DATA else outcome])
    for code, count in counts.most_common():
        yield Cause(code, count, len(runs))


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
    return named + [(evidence.treatment_title(treatment), [treatment]) for treatment in remaining]


def _level_words(levels: Levels, factors: Sequence[str]) -> tuple[str, ...]:
    return tuple(words.plain(levels.get(name)) for name in factors)
