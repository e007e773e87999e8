"""What a campaign holds, read once and sorted: factors, usable runs, set-aside runs."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl

from wattwire.model import words
from wattwire.model.derived import (
    FloatArray,
    column,
    with_derived,
)
from wattwire.model.service_names import service_of
from wattwire.model.study import ONLY, TRACED
from wattwire.model.validity import with_current_names
from wattwire.model.warm_up import SETTLING
from wattwire.store import ImportedCampaign, Messages

LEVEL_TOLERANCE = 1e-12
"""Relative difference below which two numbers are one level, computed in two ways."""
_DECIMAL = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")


class CampaignReader(Protocol):
    """The part of the store's campaign that a report reads."""

    @property
    def path(self) -> Path: ...
    @property
    def study(self) -> dict[str, Any]: ...
    @property
    def plan(self) -> list[dict[str, Any]]: ...
    @property
    def machine(self) -> dict[str, Any]: ...
    def summary(self) -> pl.DataFrame: ...
    def run(self, run_id: str) -> dict[str, Any]: ...
    def recorded(self, run_id: str) -> Messages: ...


@dataclass
class Evidence:
    """A campaign's material for a page.

    `attempts` has a row per run attempt; `usable` the counting attempts with verdict ok,
    `set_aside` the counting ones without, `controls` the control runs with it, which are in
    neither of the two. `traced` holds the usable runs that counted system calls: they are in no
    other frame, `attempts` included. `factors` maps each factor to the levels planned, without
    those of treatments that nobody asked for.
    `levels_seen`, `titles_seen`, `words_seen`, `fits`, `groups` and `baselines` remember what
    was worked out once.
    """

    reader: CampaignReader
    study: dict[str, Any]
    plan: list[dict[str, Any]]
    attempts: pl.DataFrame
    usable: pl.DataFrame
    set_aside: pl.DataFrame
    controls: pl.DataFrame
    traced: pl.DataFrame
    factors: dict[str, tuple[Any, ...]]
    primary: str
    titles: Mapping[str, Mapping[str, str]]
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    levels_seen: dict[str, list[Any]] = field(default_factory=dict)
    fits: dict[tuple[str, str], Any] = field(default_factory=dict)
    groups: dict[int, tuple[pl.DataFrame, dict[tuple[str, ...], pl.DataFrame]]] = field(
        default_factory=dict
    )
    titles_seen: dict[tuple[str, type, str], str] = field(default_factory=dict)
    words_seen: dict[tuple[str, type, str], str] = field(default_factory=dict)
    baselines: dict[str, Any] = field(default_factory=dict)
    edited: tuple[str, ...] = ()
    """Frozen documents of the campaign that somebody changed afterwards."""
    stopping: dict[str, Any] | None = None
    """The last look of a campaign that stops by width: `after` block, `width`, `reached`, …"""
    warm_up: dict[str, Any] | None = None
    """What settling runs found, which are in no frame: `calls`, and what each cell needs."""

    @property
    def imported(self) -> bool:
        """Whether others measured it: no messages, no meters of ours, no logs."""
        return isinstance(self.reader, ImportedCampaign)

    @property
    def warmup_calls(self) -> int:
        """Calls of each client, in closed loop, that came before those that count.

        0 where every loop is open: such a warm-up is a time, whatever the study says of calls.
        """
        if self.warm_up:
            return int(self.warm_up["calls"])
        if not any(all_levels(entry).get("loop") == "closed" for entry in self.designed):
            return 0
        calls = self.study.get("plan", {}).get("warmup_calls")
        return calls if isinstance(calls, int) else 0

    @property
    def described(self) -> Mapping[str, Mapping[str, str]]:
        """Unit, kind and title of the responses that came with imported data."""
        return self.reader.columns if isinstance(self.reader, ImportedCampaign) else {}

    @property
    def planned(self) -> list[dict[str, Any]]:
        """Plan entries that were to be executed; blocks that a stop by width spared are not, and
        neither are runs that count system calls and settling runs."""
        kept = [entry for entry in self.plan if entry.get("control") not in (TRACED, SETTLING)]
        entries = [entry for entry in kept if not entry.get("skipped")]
        return [e for e in entries if not self._spared(e)] if self.stopping else entries

    def _spared(self, entry: Mapping[str, Any]) -> bool:
        plan, block = self.study.get("plan", {}), entry.get("block") or 0
        if not self.stopping or block > int(plan.get("blocks", 0)):
            return False
        if self.stopping["reached"] and block > self.stopping["after"]:
            return True
        level = str(all_levels(entry).get(plan.get("primary")))
        return not entry.get("control") and block > self.stopping["finished"].get(level, block)

    @property
    def designed(self) -> list[dict[str, Any]]:
        """Runs of the design: those that were to be executed, control runs left out."""
        return [entry for entry in self.planned if not entry.get("control")]

    @property
    def controls_planned(self) -> list[dict[str, Any]]:
        """Control runs that were to be executed."""
        return [entry for entry in self.planned if entry.get("control")]

    def untried(self, entries: Sequence[Mapping[str, Any]]) -> int:
        """How many of these entries of the plan no attempt was made at."""
        tried = set(self.attempts["run"].to_list())
        return len({entry["run"] for entry in entries} - tried)

    @property
    def skipped(self) -> list[dict[str, Any]]:
        """Plan entries that were not, with their reason."""
        return [entry for entry in self.plan if entry.get("skipped")]

    @property
    def part(self) -> str:
        """Which part of the design was asked for, in words; "" where the whole of it was."""
        found = self.study.get(ONLY)
        if not found:
            return ""
        others = words.plural(int(found["unasked"]), "treatment")
        return f"{found['said']}; beyond it the design has {others} that nobody asked for"

    @property
    def varied(self) -> list[str]:
        """Factors with more than one planned level."""
        return [name for name, levels in self.factors.items() if len(levels) > 1]

    def held(self, question: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Factors of a question that have one level here, in [factors] or in [fixed], with it."""
        fixed, found = self.study.get("fixed", {}), []
        for name in question.get("factors", []):
            levels = self.factors.get(name, (fixed[name],) if name in fixed else ())
            found += [(name, levels[0])] if len(levels) == 1 else []
        return found

    def document(self, run: str, attempt: int | None) -> dict[str, Any]:
        """What was written down about one attempt at a run."""
        counting = self.runs.get(run, {})
        same = attempt is not None and counting.get("attempt") == attempt
        return counting if same else self.reader.run(f"{run}-{attempt}")

    def title(self, factor: str, level: Any) -> str:
        """A level's name for readers."""
        key = (factor, type(level), str(level))
        if key not in self.titles_seen:
            self.titles_seen[key] = words.level_title(factor, level, self.titles)
        return self.titles_seen[key]

    def word(self, factor: str, level: Any) -> str:
        """A level without its unit, by a word that no other level of the factor has.

        Where True and "yes" are both levels, each says what it is.
        """
        key = (factor, type(level), str(level))
        if key not in self.words_seen:
            planned = self.factors.get(factor, ())
            own = next((one for one in planned if same_level(one, level)), level)
            word = words.plain(own)
            if any(words.plain(one) == word and not same_level(one, own) for one in planned):
                word = f"{word} ({_kind_of(own)})"
            self.words_seen[key] = word
        return self.words_seen[key]

    def treatment_title(self, treatment: Mapping[str, Any], without: Sequence[str] = ()) -> str:
        """The varied levels of a treatment, named, in the study's order."""
        kept = [name for name in self.varied if name not in without and name in treatment]
        return ", ".join([self.title(name, treatment[name]) for name in kept])


def _kind_of(level: Any) -> str:
    if isinstance(level, bool):
        return "boolean"
    return "number" if isinstance(level, (int, float)) else "text"


def gather(reader: CampaignReader) -> Evidence:
    """Read a campaign's plan, summaries and run documents."""
    study, plan = with_current_names(reader.study, str(reader.path)), list(reader.plan)
    everything = with_derived(_with_levels(with_services(reader.summary()), plan))
    everything = everything.filter(pl.col("control").fill_null("") != SETTLING)
    is_control = pl.col("control").fill_null("") != ""
    is_traced = pl.col("control").fill_null("") == TRACED
    attempts = everything.filter(~is_traced)
    tried = _counting(attempts)
    traced = _counting(everything.filter(is_traced & (pl.col("verdict") == "ok")))
    controls = tried.filter(is_control & (pl.col("verdict") == "ok"))
    counting = tried.filter(~is_control)
    usable = counting.filter(pl.col("verdict") == "ok")
    set_aside = counting.filter(pl.col("verdict") != "ok")
    factors = _factors(study, plan)
    primary = str(study.get("plan", {}).get("primary", ""))
    varied = [name for name, levels in factors.items() if len(levels) > 1]
    ranked = [name for name in (primary, *varied) if len(_levels_seen(counting, name)) > 1]
    primary = next(iter([*ranked, *varied, *factors]), "")
    evidence = Evidence(
        reader, study, plan, attempts, usable, set_aside, controls, traced, factors, primary,
        _titles(reader),
        edited=getattr(reader, "edited", ()),
        # What was imported or executed from outside has no rule to stop by.
        stopping=getattr(reader, "stopping", None),
        warm_up=getattr(reader, "warm_up", None),
    )  # fmt: skip
    for run in tried["run"].to_list():
        evidence.runs[run] = reader.run(run)
    return evidence


def _factors(
    study: Mapping[str, Any], plan: Sequence[Mapping[str, Any]]
) -> dict[str, tuple[Any, ...]]:
    """Each factor's levels; of a design of which a part was asked for, those of that part."""
    factors = {name: tuple(levels) for name, levels in study.get("factors", {}).items()}
    if ONLY not in study:
        return factors
    entries = [all_levels(entry) for entry in plan]
    return {
        name: tuple(
            level
            for level in levels
            if any(same_level(entry.get(name), level) for entry in entries)
        )
        for name, levels in factors.items()
    }


def _titles(reader: CampaignReader) -> dict[str, dict[str, str]]:
    """How levels are called, by factor: what the machine's catalogue says, then the study."""
    return {**reader.machine.get("titles", {}), **reader.study.get("titles", {})}


def _levels_seen(frame: pl.DataFrame, factor: str) -> set[str]:
    return {words.plain(level) for level in set(levels_of(frame, factor)) if level is not None}


def levels_run(evidence: Evidence, factor: str) -> list[Any]:
    """The planned levels of `factor` that any run had, in order; all of them without a run."""
    if factor not in evidence.levels_seen:
        had = {*levels_of(evidence.usable, factor), *levels_of(evidence.set_aside, factor)}
        seen = {evidence.word(factor, level) for level in had if level is not None}
        planned = evidence.factors.get(factor, ())
        run = [level for level in planned if evidence.word(factor, level) in seen]
        evidence.levels_seen[factor] = run or list(planned)
    return evidence.levels_seen[factor]


def _counting(attempts: pl.DataFrame) -> pl.DataFrame:
    """One row per run: the attempt that is used, else the last one made."""
    return (
        attempts.with_row_index("place")
        .sort(["used", "attempt"], descending=[True, True])
        .unique("run", keep="first", maintain_order=True)
        .sort("place")
        .drop("place")
    )


def all_levels(document: Mapping[str, Any]) -> dict[str, Any]:
    """Every level, fixed ones included, of a run's document or a plan's entry."""
    return {**(document.get("levels") or {}), **(document.get("treatment") or {})}


def _with_levels(summary: pl.DataFrame, plan: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Give every row the planned levels, fixed ones too, as `factor.<name>` where it lacks them."""
    if summary.height == 0:
        return pl.DataFrame(
            schema={
                "control": pl.String,
                "run": pl.String,
                "attempt": pl.Int64,
                "used": pl.Boolean,
                "verdict": pl.String,
                "outcome": pl.String,
                "block": pl.Int64,
            }
        )
    if "control" not in summary.columns:  # written before there were control runs
        summary = summary.with_columns(control=pl.lit(""))
    by_run = {entry["run"]: all_levels(entry) for entry in plan}
    names = dict.fromkeys(name for treatment in by_run.values() for name in treatment)
    missing = [name for name in names if f"factor.{name}" not in summary.columns]
    runs = summary["run"].to_list()
    return summary.with_columns(
        [
            pl.Series(f"factor.{name}", [by_run.get(run, {}).get(name) for run in runs])
            for name in missing
        ]
    )


def levels_of(frame: pl.DataFrame, factor: str) -> list[Any]:
    """The level of `factor` of every row; None where unknown."""
    name = f"factor.{factor}"
    return frame[name].to_list() if name in frame.columns else [None] * frame.height


def unanswered(frame: pl.DataFrame) -> FloatArray:
    """Messages lost and calls failed in the whole window, shape (rows,).

    Campaigns from before failed calls were told apart have them among the lost.
    """
    return column(frame, "lost") + np.nan_to_num(column(frame, "failed"))


def with_services(summary: pl.DataFrame) -> pl.DataFrame:
    """Give every service process the columns of its service.

    One that was started again, since its port was taken, had columns of its own in campaigns of
    old: memory_kib.broker.try1, which looks like a node.
    """
    for name in summary.columns:
        service = service_of(name)
        if service == name:
            continue
        known = [pl.col(service)] if service in summary.columns else []
        summary = summary.with_columns(pl.coalesce(*known, name).alias(service)).drop(name)
    return summary


def by_treatment(evidence: Evidence, frame: pl.DataFrame) -> dict[tuple[str, ...], pl.DataFrame]:
    """The rows of `frame` by the levels of the varied factors (as words), in planned order."""
    known = evidence.groups.get(id(frame))
    if known is None or known[0] is not frame:
        known = evidence.groups[id(frame)] = (frame, _grouped(evidence, frame))
    return known[1]


def _grouped(evidence: Evidence, frame: pl.DataFrame) -> dict[tuple[str, ...], pl.DataFrame]:
    levels = [[evidence.word(name, v) for v in levels_of(frame, name)] for name in evidence.varied]
    places: dict[tuple[str, ...], list[int]] = {}
    for at in range(frame.height):
        places.setdefault(tuple(each[at] for each in levels), []).append(at)
    planned = [[evidence.word(name, v) for v in evidence.factors[name]] for name in evidence.varied]

    def place(key: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(
            known.index(word) if word in known else len(known)
            for word, known in zip(key, planned, strict=True)
        )

    # The rows are brought into order at once: a group is then a piece that no one has to copy.
    keys = sorted(places, key=place)
    ordered = frame[[at for key in keys for at in places[key]]]
    begins = itertools.accumulate((len(places[key]) for key in keys), initial=0)
    return {
        key: ordered.slice(begin, len(places[key]))
        for key, begin in zip(keys, begins, strict=False)
    }


def same_level(one: Any, other: Any) -> bool:
    """Whether two levels are the same: numbers by value, texts by letter, True is no 1."""
    try:
        return _same_level(one, other)
    except TypeError:  # a level that is a list cannot be remembered
        return str(one) == str(other)


@lru_cache(maxsize=10_000, typed=True)
def _same_level(one: Any, other: Any) -> bool:
    numbers = [_number(value) for value in (one, other)]
    # Two texts are the same by their letters: "1.1" and "1.10" are two versions.
    if None in numbers or (isinstance(one, str) and isinstance(other, str)):
        return str(one) == str(other)
    return math.isclose(*numbers, rel_tol=LEVEL_TOLERANCE)  # type: ignore[arg-type]


def _number(level: Any) -> float | None:
    """A level as a number, also where a table holds it as text; None for anything else."""
    if isinstance(level, bool) or not isinstance(level, (int, float, str)):
        return None
    if isinstance(level, str) and not _DECIMAL.fullmatch(level):
        return None
    return float(level)


def window_seconds(evidence: Evidence, frame: pl.DataFrame) -> FloatArray:
    """Seconds that each run's costs refer to, shape (rows,); NaN where unknown.

    That is the window without its warm-up; campaigns of old charged the whole window.
    """
    if evidence.imported:
        return column(frame, "window_s")
    after_warmup = column(frame, "cost_window_s")
    if np.isfinite(after_warmup).all() and frame.height:
        return after_warmup
    found = []
    for run in frame["run"].to_list():
        window = evidence.runs[run].get("window") or {}
        known = window.get("end_ns") is not None and window.get("start_ns") is not None
        found.append((window["end_ns"] - window["start_ns"]) / 1e9 if known else np.nan)
    return np.where(np.isfinite(after_warmup), after_warmup, np.array(found, dtype=np.float64))
