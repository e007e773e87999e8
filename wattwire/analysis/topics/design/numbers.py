"""Describe the study's goal and questions, and count what was run and how long it took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wattwire.analysis.charts import rounded
from wattwire.analysis.dataset import Evidence, all_levels, held_levels
from wattwire.analysis.responses import resolve
from wattwire.model import words
from wattwire.model.derived import column
from wattwire.model.questions import Question
from wattwire.model.stored_study import Part
from wattwire.model.study.study import Goal
from wattwire.model.variants import FACTOR, SAME_THING

HELD = ("cell", "middleware", "language", "pattern", "payload_bytes", "rate_hz", "interval_s",
        "clients")  # fmt: skip
"""Factors that the section lists if all runs share a level. The audit trail lists the others."""
GIB = 1 << 30


@dataclass(frozen=True)
class FactorOfQuestion:
    """A factor of a question. `held_at` is its only level, None if it has several."""

    title: str
    held_at: str | None = None


@dataclass(frozen=True)
class AskedQuestion:
    """A question with its factors, and the titles of its responses and of their correlates."""

    id: str
    text: str
    factors: tuple[FactorOfQuestion, ...]
    responses: tuple[str, ...]
    correlates: tuple[str, ...] = ()


@dataclass(frozen=True)
class FactorLevels:
    """The planned levels of a factor."""

    title: str
    levels: tuple[str, ...]


@dataclass(frozen=True)
class SetLevel:
    """A level that a variant sets."""

    key: str
    level: str


@dataclass(frozen=True)
class VariantLevels:
    """The levels of a variant that any variant changes."""

    name: str
    levels: tuple[SetLevel, ...]


@dataclass(frozen=True)
class RunCounts:
    """The numbers of planned runs, and of the valid, the other and the untried ones among them."""

    planned: int = 0
    valid: int = 0
    not_valid: int = 0
    untried: int = 0


@dataclass(frozen=True)
class TimeTaken:
    """Seconds of all attempts: in their phases, before them, and from the first to the last.

    `wall_clock_s` is None if no attempt has clocks.
    """

    measured_s: float
    waited_s: float
    wall_clock_s: float | None


@dataclass(frozen=True)
class MachineFacts:
    """Processor, memory and kernel of a machine; unknown facts are "" or None."""

    cpu_name: str = ""
    cpus: str = ""
    memory_gib: float | None = None
    kernel: str = ""


@dataclass(frozen=True)
class Design:
    """What the study asks, and what was run.

    `shared` has the levels that all runs share. `window_s` is the median length of the valid runs'
    windows with their warm-up, None if unknown. `machines` has different machines only.
    """

    part: Part | None = None
    goal: Goal | None = None
    questions: tuple[AskedQuestion, ...] = ()
    factors: tuple[FactorLevels, ...] = ()
    shared: tuple[str, ...] = ()
    variants: tuple[VariantLevels, ...] = ()
    treatments: int = 0
    blocks: int = 0
    runs: RunCounts = RunCounts()
    controls: RunCounts = RunCounts()
    skipped: int = 0
    window_s: float | None = None
    time: TimeTaken | None = None
    machines: tuple[MachineFacts, ...] = ()


def design(evidence: Evidence) -> Design:
    """Return what the study asks, and what was run."""
    planned = evidence.planned
    return Design(
        evidence.study.part,
        evidence.study.goal,
        tuple(_asked(evidence, question) for question in evidence.study.questions),
        tuple(_factors(evidence)),
        *_held(evidence),
        treatments=len({repr(sorted(all_levels(entry).items())) for entry in planned}),
        blocks=len({entry.get("block") for entry in planned}),
        runs=_design_runs(evidence),
        controls=_control_runs(evidence),
        skipped=len(evidence.skipped),
        window_s=_median_window_s(evidence),
        time=_time_taken(evidence),
        machines=tuple(dict.fromkeys(_machines(evidence.reader.machine))),
    )


def _median_window_s(evidence: Evidence) -> float | None:
    """Return the median length (s) of the valid runs' windows; None if unknown."""
    windows_s = column(evidence.usable, "window_s")
    known_s = windows_s[np.isfinite(windows_s)]
    return float(np.median(known_s)) if known_s.size else None


def _asked(evidence: Evidence, question: Question) -> AskedQuestion:
    held = dict(evidence.held(question))
    factors = tuple(
        FactorOfQuestion(
            words.factor_title(name), words.plain(held[name]) if name in held else None
        )
        for name in question.factors
    )
    responses, correlates = (
        tuple(resolve(name, evidence.described).title for name in names)
        for names in (question.responses, question.beside)
    )
    return AskedQuestion(question.id, question.text, factors, responses, correlates)


def _factors(evidence: Evidence) -> Iterator[FactorLevels]:
    for name, levels in evidence.factors.items():
        titles = tuple(_level(evidence, name, level) for level in levels)
        yield FactorLevels(words.factor_title(name), titles)


def _level(evidence: Evidence, factor: str, level: Any) -> str:
    """Return a level with its unit or title. A count has no noun, because the heading has it."""
    titled = factor in words.FACTOR_UNITS or words.plain(level) in evidence.titles.get(factor, {})
    return evidence.title(factor, level) if titled else words.plain(level)


def _held(evidence: Evidence) -> tuple[tuple[str, ...], tuple[VariantLevels, ...]]:
    """Return the titles of the shared HELD levels, and each planned variant's levels."""
    fixed = evidence.study.fixed
    held = held_levels(evidence)
    planned = {str(level) for level in evidence.factors.get(FACTOR, ())}
    levels_of_variant = {
        name: variant.levels for name, variant in evidence.study.variants.items() if name in planned
    }
    changed = {key for levels in levels_of_variant.values() for key in levels}
    changed |= {name for pair in SAME_THING if pair & changed for name in pair}
    shared = tuple(
        evidence.title(name, held[name])
        for name in HELD
        if held.get(name) not in (None, "") and name not in changed
    )
    variants = []
    for name, levels in levels_of_variant.items() if changed else ():
        all_settings = {key: level for key, level in fixed.items() if key in changed} | levels
        set_levels = (SetLevel(key, words.plain(level)) for key, level in all_settings.items())
        variants.append(VariantLevels(name, tuple(set_levels)))
    return shared, tuple(variants)


def _design_runs(evidence: Evidence) -> RunCounts:
    return RunCounts(
        len(evidence.designed),
        evidence.usable.height,
        evidence.excluded.height,
        evidence.untried(evidence.designed),
    )


def _control_runs(evidence: Evidence) -> RunCounts:
    planned, valid = len(evidence.controls_planned), evidence.controls.height
    untried = evidence.untried(evidence.controls_planned)
    return RunCounts(planned, valid, planned - untried - valid, untried)


def _time_taken(evidence: Evidence) -> TimeTaken | None:
    """Return the time of all attempts, or None if they have no durations."""
    measured_s, waited_s, begins_ns, ends_ns = 0.0, 0.0, [], []
    for attempt in evidence.attempts.select("run", "attempt").iter_rows(named=True):
        document = evidence.document(attempt["run"], attempt["attempt"])
        phases = (document.get("seconds") or {}).values()
        measured_s += sum(float(s) for s in phases if isinstance(s, (int, float)))
        before = document.get("conditions_before") or {}
        attempt_waited_s = float(before.get("waited_s") or 0.0)
        waited_s += attempt_waited_s
        clocks = document.get("clocks") or {}
        if clocks.get("begin") and clocks.get("end"):
            begins_ns.append(clocks["begin"][0]["realtime_ns"] - int(attempt_waited_s * 1e9))
            ends_ns.append(clocks["end"][-1]["realtime_ns"])
    if not measured_s:
        return None
    wall_clock_s = (max(ends_ns) - min(begins_ns)) / 1e9 if ends_ns else None
    return TimeTaken(measured_s, waited_s, wall_clock_s)


def _machines(machine: Mapping[str, Any]) -> Iterator[MachineFacts]:
    """Yield the facts of each host with known facts.

    Memory is rounded to the printed digits, so that machines that print alike are equal.
    """
    for host in machine.get("hosts", {}).values():
        facts = {str(fact["key"]): fact.get("value") for fact in host.get("facts", [])}
        memory, kernel = _first(facts, "memory"), _first(facts, "kernel")
        known = MachineFacts(
            str(facts.get("cpu_name") or ""),
            str(facts.get("cpus") or ""),
            rounded(memory / GIB, 3) if isinstance(memory, (int, float)) else None,
            str(kernel or ""),
        )
        if known != MachineFacts():
            yield known


def _first(facts: Mapping[str, Any], beginning: str) -> Any:
    """Return the first fact whose key begins like this and that is not empty; None without one."""
    return next((facts[key] for key in facts if key.startswith(beginning) and facts[key]), None)
