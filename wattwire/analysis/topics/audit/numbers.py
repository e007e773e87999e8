"""Collect what happened to every run: its place in the order, its verdict and its exclusion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wattwire import stats
from wattwire.analysis.charts import Chart, Point, rounded, titles_of, tone_of
from wattwire.analysis.dataset import Evidence, all_levels, same_level
from wattwire.analysis.responses import Response, measured, ordered_response
from wattwire.analysis.topics.audit.setup_facts import (
    Conduct,
    MachineFact,
    Meter,
    conduct,
    machine_facts,
    meters,
)
from wattwire.model import words
from wattwire.model.derived import column


@dataclass(frozen=True)
class RunOrder:
    """A response of all attempts in the order of execution."""

    response: Response
    chart: Chart


@dataclass(frozen=True)
class LevelExclusions:
    """The excluded runs of a level of the primary factor."""

    level: str
    excluded: int
    runs: int


@dataclass(frozen=True)
class Exclusions:
    """The excluded runs, by level of the primary factor if it has several.

    `p` is that of Fisher's exact test for equal shares of two levels; None for other numbers of
    levels.
    """

    runs: int = 0
    excluded: int = 0
    factor_title: str = ""
    levels: tuple[LevelExclusions, ...] = ()
    p: float | None = None


@dataclass(frozen=True)
class Attempt:
    """An attempt with a problem, or one that another replaced, so that it does not count."""

    run: str
    attempt: int | None
    block: int | None
    treatment: str
    outcome: str
    verdict: str
    is_counting: bool
    reasons: str


@dataclass(frozen=True)
class Unusable:
    """Imported runs without a value, and the reason; None if it was not recorded."""

    reason: str | None
    count: int
    runs: str


@dataclass(frozen=True)
class SkippedTreatment:
    """A treatment without runs, and the reason."""

    treatment: str
    reason: str


@dataclass(frozen=True)
class Audit:
    """What happened to every run.

    `order` is None for imported runs, whose order only time stamps determine, and if no attempt has
    a value. A measured campaign has `attempts` and the number of `ordinary` ones, an imported one
    has `unusable` runs.
    """

    is_imported: bool = False
    order: RunOrder | None = None
    exclusions: Exclusions = Exclusions()
    attempts: tuple[Attempt, ...] = ()
    ordinary: int = 0
    unusable: tuple[Unusable, ...] = ()
    skipped: tuple[SkippedTreatment, ...] = ()
    meters: tuple[Meter, ...] = ()
    conduct: tuple[Conduct, ...] = ()
    machine: tuple[MachineFact, ...] = ()


def audit(evidence: Evidence) -> Audit:
    """Return what happened to every run, and what was measured with."""
    attempts = () if evidence.imported else tuple(_attempts(evidence))
    skipped = (
        SkippedTreatment(evidence.treatment_title(all_levels(entry)), str(entry["skipped"]))
        for entry in evidence.skipped
    )
    return Audit(
        evidence.imported,
        _order(evidence),
        _exclusions(evidence),
        attempts,
        evidence.attempts.height - len(attempts),
        tuple(_unusable(evidence)) if evidence.imported else (),
        tuple(dict.fromkeys(skipped)),
        tuple(meters(evidence)),
        tuple(conduct(evidence)),
        tuple(machine_facts(evidence.reader.machine)),
    )


def _order(evidence: Evidence) -> RunOrder | None:
    if evidence.imported:
        return None
    response = ordered_response(evidence)
    if not measured(evidence.attempts, response):
        return None
    chart = Chart(
        list(_points(evidence, response)),
        titles_of(evidence, evidence.primary),
        words.factor_title(evidence.primary),
    )
    return RunOrder(response, chart)


def _points(evidence: Evidence, response: Response) -> Iterator[Point]:
    """Yield a point per attempt of a planned run whose value is positive and finite."""
    positions = evidence.run_positions
    block_of = {entry["run"]: entry.get("block") for entry in evidence.planned}
    treatments = {entry["run"]: all_levels(entry) for entry in evidence.planned}
    block_starts: dict[Any, int] = {}
    for run, position in positions.items():
        block_starts.setdefault(block_of[run], position)
    frames = [frame for frame in (evidence.usable, evidence.controls) if frame.height]
    usable = {run for frame in frames for run in frame["run"].to_list()}
    values = column(evidence.attempts, response.column)
    for run, value in zip(evidence.attempts["run"].to_list(), values, strict=True):
        if run not in positions or not value > 0 or np.isinf(value):
            continue
        first_of_block = block_starts[block_of[run]]
        yield {
            "order": positions[run],
            "value": rounded(float(value)),
            "run": run,
            "edge": first_of_block - 0.5 if first_of_block > 1 else None,
            "treatment": evidence.treatment_title(treatments[run]),
            "used": "valid" if run in usable else "excluded",
            "colour": tone_of(evidence, treatments[run]),
        }


def _exclusions(evidence: Evidence) -> Exclusions:
    excluded = evidence.excluded.height
    runs = evidence.usable.height + excluded
    levels = evidence.factors.get(evidence.primary, ())
    if len(levels) < 2 or not excluded:
        return Exclusions(runs, excluded)
    design_runs = [*evidence.usable["run"].to_list(), *evidence.excluded["run"].to_list()]
    by_level = tuple(_exclusions_at(evidence, level, design_runs) for level in levels)
    p = None
    if len(by_level) == 2:
        one, other = by_level
        p = stats.same_share_p(one.excluded, one.runs, other.excluded, other.runs)
    return Exclusions(runs, excluded, words.factor_title(evidence.primary), by_level, p)


def _exclusions_at(evidence: Evidence, level: Any, design_runs: list[str]) -> LevelExclusions:
    runs = [
        run
        for run in design_runs
        if same_level(all_levels(evidence.runs[run]).get(evidence.primary), level)
    ]
    excluded = sum(evidence.runs[run].get("verdict") != "valid" for run in runs)
    return LevelExclusions(evidence.title(evidence.primary, level), excluded, len(runs))


def _attempts(evidence: Evidence) -> Iterator[Attempt]:
    """Yield the attempts that are not valid, not completed or not the ones that count."""
    for row in evidence.attempts.iter_rows(named=True):
        is_counting = evidence.runs[row["run"]].get("attempt") == row["attempt"]
        is_sound = row.get("verdict") == "valid" and row.get("outcome") == "completed"
        if is_sound and (row.get("used") or (row.get("control") and is_counting)):
            continue
        document = evidence.document(row["run"], row["attempt"])
        reasons = [_reason(reason) for reason in document.get("reasons", [])]
        if document.get("outcome_detail"):
            reasons.append(str(document["outcome_detail"]))
        yield Attempt(
            row["run"],
            row.get("attempt"),
            row.get("block"),
            evidence.treatment_title(all_levels(document)),
            str(row.get("outcome")),
            str(row.get("verdict")),
            is_counting,
            "; ".join(reasons),
        )


def _reason(reason: Mapping[str, Any]) -> str:
    return f"{reason.get('code', '')}: {reason.get('detail', '')}".strip(": ")


def _unusable(evidence: Evidence) -> Iterator[Unusable]:
    """Yield the imported runs without a value, grouped by reason."""
    runs: dict[str, list[str]] = {}
    for run in evidence.excluded["run"].to_list() if evidence.excluded.height else []:
        reasons = evidence.runs[run].get("reasons", [])
        reason = "; ".join(str(reason.get("detail", "")) for reason in reasons)
        runs.setdefault(reason, []).append(run)
    for reason, names in runs.items():
        yield Unusable(reason or None, len(names), ", ".join(names))
