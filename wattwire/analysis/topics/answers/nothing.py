"""Compute what is stated instead of answers: no result, ended nodes, or nothing to compare."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from wattwire.analysis.dataset import Evidence
from wattwire.model import words
from wattwire.model.derived import column
from wattwire.model.verdict import ended_unsent

UNRECORDED, UNSENT, UNREADY = "unrecorded", "before sending", "before READY"


@dataclass(frozen=True)
class NoResult:
    """A campaign without a valid run, of whose planned runs some were tried."""

    tried: int
    planned: int
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Ended:
    """A campaign in whose valid runs no node left a record of a message.

    `when` is UNRECORDED, UNSENT or UNREADY. `why` is the reason of the first run that states one.
    """

    runs: int
    has_excluded: bool
    outcomes: tuple[str, ...]
    when: str
    why: str


@dataclass(frozen=True)
class NothingToCompare:
    """A campaign whose questions compare no levels, because all runs have the levels `held`.

    They are empty if the study requests no comparison, although levels differ. `unnamed` are the
    factors whose levels differ and that no question names, such as a setting that replaced the
    cells of a study. `columns` are those of an imported table that can be factors; None if the
    study cannot be imported again with one.
    """

    runs: int = 0
    held: tuple[str, ...] = ()
    is_imported: bool = False
    columns: tuple[str, ...] | None = None
    unnamed: tuple[str, ...] = ()


def no_result(evidence: Evidence) -> NoResult | None:
    """Return the reasons why no run is valid; None if one is."""
    if evidence.usable.height:
        return None
    planned = len(evidence.designed)
    tried = planned - evidence.untried(evidence.designed)
    return NoResult(tried, planned, exclusion_reasons(evidence))


def exclusion_reasons(evidence: Evidence) -> tuple[str, ...]:
    """Return the distinct reasons for excluded runs, sorted."""
    codes = {reason["code"] for run in evidence.runs.values() for reason in run.get("reasons", [])}
    return tuple(sorted(code.replace("_", " ") for code in codes))


def ended(evidence: Evidence) -> Ended | None:
    """Return how the nodes of all valid runs ended without a record of a message.

    The result is None if a run has values or if no run is valid.
    """
    frame = evidence.usable
    if not frame.height or not all(map(ended_unsent, frame.iter_rows(named=True))):
        return None
    documents = [evidence.runs.get(run, {}) for run in frame["run"].to_list()]
    details = (str(document.get("outcome_detail") or "") for document in documents)
    is_unsent = "sent" not in frame.columns or not np.isnan(column(frame, "sent")).any()
    nodes = (node for document in documents for node in document.get("nodes", []))
    when = (UNSENT if all(node.get("ready") for node in nodes) else UNREADY) if is_unsent else ""
    return Ended(
        frame.height,
        evidence.excluded.height > 0,
        tuple(sorted({str(outcome).replace("_", " ") for outcome in frame["outcome"]})),
        when or UNRECORDED,
        next(filter(None, details), ""),
    )


def nothing_to_compare(evidence: Evidence) -> NothingToCompare:
    """Return why no question compares two levels."""
    runs = evidence.usable.height
    questions = evidence.study.questions
    named = {factor for question in questions for factor in question.factors}
    unnamed = tuple(factor for factor in evidence.varied if factor not in named)
    held = [pair for question in questions for pair in evidence.held(question)]
    if held and not evidence.imported:
        return NothingToCompare(runs, _names(held), unnamed=unnamed)
    if not evidence.factors or evidence.varied:
        return NothingToCompare(runs, unnamed=unnamed)
    levels = [(name, levels[0]) for name, levels in evidence.factors.items() if levels]
    return NothingToCompare(runs, _names(levels), evidence.imported, evidence.study.comparable)


def _names(held: Iterable[tuple[str, object]]) -> tuple[str, ...]:
    names = (f"{words.factor_title(name)} {words.plain(level)}" for name, level in held)
    return tuple(dict.fromkeys(names))
