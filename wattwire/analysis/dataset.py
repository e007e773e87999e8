"""Read the data of a campaign for analysis: factors, valid runs and excluded runs."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from wattwire.analysis.emulated import is_emulated, without_times
from wattwire.model import words
from wattwire.model.deployment import Request
from wattwire.model.derived import (
    FloatArray,
    column,
    with_derived,
)
from wattwire.model.metrics import HIGHER, LOWER, printed
from wattwire.model.questions import Question
from wattwire.model.stored_study import StoredStudy
from wattwire.model.study import PROFILED, PROOF, TRACED
from wattwire.model.variants import FACTOR
from wattwire.model.verdict import OTHER_WAYS
from wattwire.model.warm_up import SETTLING
from wattwire.stats.blocked import GROUPED, RANDOM
from wattwire.store import ImportedCampaign, Messages

Value = TypeVar("Value")
OPEN_LOOP_ONLY = ("rate_hz", "interval_s")
ROW_INDEX = "#row"
"""Temporary column. No response has this name, because it contains "#"."""
LEVEL_TOLERANCE = 1e-12
"""Two numbers with a smaller relative difference are the same level."""
_DECIMAL = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")


class CampaignReader(Protocol):
    """Interface of the campaign's data that a report reads."""

    @property
    def path(self) -> Path: ...
    @property
    def study(self) -> StoredStudy: ...
    @property
    def plan(self) -> list[dict[str, Any]]: ...
    @property
    def machine(self) -> dict[str, Any]: ...
    def summary(self) -> pl.DataFrame: ...
    def run(self, run_id: str) -> dict[str, Any]: ...
    def documents(self, run_ids: Iterable[str]) -> Iterator[dict[str, Any]]: ...
    def recorded(self, run_id: str) -> Messages: ...
    def records_path(self, run_id: str) -> Path: ...


SEPARATE = (TRACED, PROFILED, PROOF)
"""Kinds of runs that give no answer and no time, because they measure something else."""


@dataclass
class Evidence:
    """All data of a campaign that a report uses.

    `attempts` has one row per attempt. One attempt represents each run: `usable` contains the valid
    ones of these attempts, and `excluded` contains the others. Neither includes control runs;
    `controls` has the valid control runs. `traced` has the valid runs in which system calls were
    counted. No other frame includes these runs. `emulated` has the valid runs with an emulated
    device; the other frames, except `attempts`, lack the times of these runs. `factors` maps each
    factor to its planned levels, except levels that occur only in treatments that were not
    requested. `levels_seen`, `titles_seen`, `words_seen`, `fits`, `groups` and `baselines` are
    caches.
    """

    reader: CampaignReader
    study: StoredStudy
    plan: list[dict[str, Any]]
    attempts: pl.DataFrame
    usable: pl.DataFrame
    excluded: pl.DataFrame
    controls: pl.DataFrame
    traced: pl.DataFrame
    factors: dict[str, tuple[Any, ...]]
    primary: str
    titles: Mapping[str, Mapping[str, str]]
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    levels_seen: dict[str, list[Any]] = field(default_factory=dict)
    fits: dict[tuple[str, ...], Any] = field(default_factory=dict)
    groups: dict[int, tuple[pl.DataFrame, dict[tuple[str, ...], pl.DataFrame]]] = field(
        default_factory=dict
    )
    titles_seen: dict[tuple[str, type, str], str] = field(default_factory=dict)
    words_seen: dict[tuple[str, type, str], str] = field(default_factory=dict)
    baselines: dict[str, Any] = field(default_factory=dict)
    emulated: pl.DataFrame = field(default_factory=pl.DataFrame)
    profiled: pl.DataFrame = field(default_factory=pl.DataFrame)
    """The runs that record layers, of any verdict. No other frame includes them."""
    proofs: pl.DataFrame = field(default_factory=pl.DataFrame)
    """The runs that prove security, of any verdict. No other frame includes them."""
    edited: tuple[str, ...] = ()
    """Frozen documents of the campaign that were changed afterwards."""
    validity_changed: str = ""
    """Validity limits of a rejudged campaign, as typed; "" for the original limits."""
    stopping: dict[str, Any] | None = None
    """Last look of a campaign that stops by width: `after` block, `width`, `reached`, …"""
    warm_up: dict[str, Any] | None = None
    """Result of the settling runs, which are not in any frame: `calls`, and each cell's warm-up."""

    @property
    def imported(self) -> bool:
        """Whether the campaign was imported; it then has no messages, meter readings or logs."""
        return isinstance(self.reader, ImportedCampaign)

    @property
    def has_messages(self) -> bool:
        """Whether nodes sent messages: data are not imported and are not those of a command."""
        return not self.imported and self.study.request is None

    @property
    def warmup_calls(self) -> int:
        """Number of warm-up calls of each client in a closed loop.

        It is 0 if every loop is open, because the warm-up of an open loop is a time.
        """
        if self.warm_up:
            return int(self.warm_up["calls"])
        if not any(all_levels(entry).get("loop") == "closed" for entry in self.designed):
            return 0
        # AUTO is negative. Without a result, the settling runs have not ended.
        return max(0, self.study.plan.warmup_calls)

    @property
    def described(self) -> Mapping[str, Mapping[str, str]]:
        """Unit and title of the responses that a user described, with their better direction.

        They are those of imported data, and the figures of a command with a stated direction.
        """
        if isinstance(self.reader, ImportedCampaign):
            return self.reader.columns
        return _described_figures(self.study.request) if self.study.request else {}

    @property
    def planned(self) -> list[dict[str, Any]]:
        """Plan entries to execute.

        The list omits blocks after a stop by width, runs that count system calls, record layers
        or prove security, and settling runs.
        """
        entries = [
            entry
            for entry in self.plan
            if not entry.get("skipped") and entry.get("control") not in (*SEPARATE, SETTLING)
        ]
        return [e for e in entries if not self._skipped_by_stop(e)] if self.stopping else entries

    def _skipped_by_stop(self, entry: Mapping[str, Any]) -> bool:
        plan, block = self.study.plan, entry.get("block") or 0
        if not self.stopping or block > plan.blocks:
            return False
        if self.stopping["reached"] and block > self.stopping["after"]:
            return True
        level = str(all_levels(entry).get(plan.primary))
        return not entry.get("control") and block > self.stopping["finished"].get(level, block)

    @property
    def designed(self) -> list[dict[str, Any]]:
        """Entries of the plan to execute, without control runs."""
        return [entry for entry in self.planned if not entry.get("control")]

    @property
    def run_positions(self) -> dict[str, int]:
        """The position of each planned run in the order of execution, from 1 on."""
        return {entry["run"]: position for position, entry in enumerate(self.planned, start=1)}

    @property
    def controls_planned(self) -> list[dict[str, Any]]:
        """Entries of the plan to execute that are control runs."""
        return [entry for entry in self.planned if entry.get("control")]

    def untried(self, entries: Sequence[Mapping[str, Any]]) -> int:
        """Return the number of these plan entries that were not attempted."""
        tried = set(self.attempts["run"].to_list())
        return len({entry["run"] for entry in entries} - tried)

    @property
    def skipped(self) -> list[dict[str, Any]]:
        """Skipped entries of the plan, each with its reason."""
        return [entry for entry in self.plan if entry.get("skipped")]

    @property
    def went_another_way(self) -> pl.Series:
        """Whether each excluded run was carried by another network, shape (excluded runs,)."""
        reasons = [
            {reason["code"] for reason in self.runs.get(run, {}).get("reasons") or ()}
            for run in (self.excluded["run"].to_list() if self.excluded.height else ())
        ]
        return pl.Series([bool(codes & OTHER_WAYS) for codes in reasons], dtype=pl.Boolean)

    @property
    def varied(self) -> list[str]:
        """Factors with more than one planned level."""
        return [name for name, levels in self.factors.items() if len(levels) > 1]

    def held(self, question: Question) -> list[tuple[str, Any]]:
        """Return (factor, level) for the question's factors that have a single level."""
        fixed_levels = self.study.fixed
        single_levels: list[tuple[str, Any]] = []
        for name in question.factors:
            levels = self.factors.get(name, (fixed_levels[name],) if name in fixed_levels else ())
            single_levels += [(name, levels[0])] if len(levels) == 1 else []
        return single_levels

    def document(self, run: str, attempt: int | None) -> dict[str, Any]:
        """Return the run document of one attempt."""
        counting = self.runs.get(run, {})
        is_counting = attempt is not None and counting.get("attempt") == attempt
        return counting if is_counting else self.reader.run(f"{run}-{attempt}")

    def title(self, factor: str, level: Any) -> str:
        """Return the display name of a level."""
        key = (factor, type(level), str(level))
        if key not in self.titles_seen:
            self.titles_seen[key] = words.level_title(factor, level, self.titles)
        return self.titles_seen[key]

    def word(self, factor: str, level: Any) -> str:
        """Return the word for a level, without its unit. It is unique among the factor's levels.

        If True and "yes" are both levels, their words include the type.
        """
        key = (factor, type(level), str(level))
        if key not in self.words_seen:
            planned = self.factors.get(factor, ())
            planned_level = next(
                (candidate for candidate in planned if same_level(candidate, level)), level
            )
            word = words.plain(planned_level)
            if any(
                words.plain(candidate) == word and not same_level(candidate, planned_level)
                for candidate in planned
            ):
                word = f"{word} ({_kind_of(planned_level)})"
            self.words_seen[key] = word
        return self.words_seen[key]

    def treatment_title(self, treatment: Mapping[str, Any], without: Sequence[str] = ()) -> str:
        """Return the names of the treatment's varied levels, in the study's order of factors."""
        kept = [name for name in self.varied if name not in without and name in treatment]
        return ", ".join([self.title_of_word(name, treatment[name]) for name in kept])

    def title_of_key(self, key: Sequence[str]) -> str:
        """Return the name of a treatment from its key in `by_treatment`."""
        return self.treatment_title(dict(zip(self.varied, key, strict=True)))

    def title_of_word(self, factor: str, level: Any) -> str:
        """Return the display name of a level or of its word: "2 clients", not "2"."""
        planned = self.factors.get(factor, ()) if isinstance(level, str) else ()
        return self.title(
            factor, next((known for known in planned if self.word(factor, known) == level), level)
        )


def _kind_of(level: Any) -> str:
    if isinstance(level, bool):
        return "boolean"
    return "number" if isinstance(level, (int, float)) else "text"


def _described_figures(request: Request) -> dict[str, dict[str, str]]:
    directions = dict.fromkeys(request.higher_is_better, HIGHER)
    directions |= dict.fromkeys(request.lower_is_better, LOWER)
    return {
        f"value.{name}": {"title": metric.words, "unit": metric.unit, "direction": direction}
        for name, direction in directions.items()
        if (metric := printed(name))
    }


def gather(reader: CampaignReader) -> Evidence:
    """Read a campaign's plan, summaries and run documents."""
    study, plan = reader.study, list(reader.plan)
    all_attempts = with_derived(_with_levels(reader.summary(), plan))
    all_attempts = all_attempts.filter(pl.col("control").fill_null("") != SETTLING)
    is_control = pl.col("control").fill_null("") != ""
    is_traced = pl.col("control").fill_null("") == TRACED
    is_separate = pl.col("control").fill_null("").is_in(SEPARATE)
    attempts = all_attempts.filter(~is_separate)
    measured_runs = _counting_attempts(attempts)
    is_valid = pl.col("verdict") == "valid"
    emulated = measured_runs.filter(~is_control & is_valid)
    emulated = emulated.filter(pl.Series(is_emulated(emulated), dtype=pl.Boolean))
    one_per_run = without_times(measured_runs)
    traced = _counting_attempts(without_times(all_attempts).filter(is_traced & is_valid))
    is_profiled = pl.col("control").fill_null("") == PROFILED
    profiled = _counting_attempts(without_times(all_attempts).filter(is_profiled))
    is_proof = pl.col("control").fill_null("") == PROOF
    proofs = _counting_attempts(all_attempts.filter(is_proof))
    controls = one_per_run.filter(is_control & is_valid)
    design_runs = one_per_run.filter(~is_control)
    usable = design_runs.filter(is_valid)
    excluded = design_runs.filter(pl.col("verdict") != "valid")
    factors = _factors(study, plan)
    primary = study.plan.primary
    varied = [name for name, levels in factors.items() if len(levels) > 1]
    candidates = [
        name for name in (primary, *varied) if len(_seen_level_words(design_runs, name)) > 1
    ]
    primary = next(iter([*candidates, *varied, *factors]), "")
    evidence = Evidence(
        reader, study, plan, attempts, usable, excluded, controls, traced, factors, primary,
        _titles(reader),
        emulated=emulated,
        profiled=profiled,
        proofs=proofs,
        edited=getattr(reader, "edited", ()),
        validity_changed=getattr(reader, "validity_changed", ""),
        # Imported campaigns and campaigns executed by other programs have no stopping rule.
        stopping=getattr(reader, "stopping", None),
        warm_up=getattr(reader, "warm_up", None),
    )  # fmt: skip
    runs = one_per_run["run"].to_list()
    evidence.runs.update(zip(runs, reader.documents(runs), strict=True))
    return evidence


def _factors(study: StoredStudy, plan: Sequence[Mapping[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """Return the levels of each factor in the requested part of the design."""
    if study.part is None:
        return dict(study.factors)
    entries = [all_levels(entry) for entry in plan]
    return {
        name: tuple(
            level
            for level in levels
            if any(same_level(entry.get(name), level) for entry in entries)
        )
        for name, levels in study.factors.items()
    }


def _titles(reader: CampaignReader) -> dict[str, dict[str, str]]:
    """Return the titles of levels by factor. The study's titles override the machine's titles."""
    return {**reader.machine.get("titles", {}), **reader.study.titles}


def _seen_level_words(frame: pl.DataFrame, factor: str) -> set[str]:
    return {words.plain(level) for level in set(levels_of(frame, factor)) if level is not None}


def judges_variants(evidence: Evidence) -> bool:
    """Return whether the study compares variants. An imported column may have the factor's name."""
    return not evidence.imported and len(evidence.factors.get(FACTOR, ())) > 1


def levels_run(evidence: Evidence, factor: str) -> list[Any]:
    """Return the planned levels of `factor` that have runs, in order; all levels without runs."""
    if factor not in evidence.levels_seen:
        run_levels = {*levels_of(evidence.usable, factor), *levels_of(evidence.excluded, factor)}
        seen_words = {evidence.word(factor, level) for level in run_levels if level is not None}
        planned = evidence.factors.get(factor, ())
        levels = [level for level in planned if evidence.word(factor, level) in seen_words]
        evidence.levels_seen[factor] = levels or list(planned)
    return evidence.levels_seen[factor]


def _counting_attempts(attempts: pl.DataFrame) -> pl.DataFrame:
    """Return one row per run: the attempt that is used, or the last attempt."""
    return (
        attempts.with_row_index(ROW_INDEX)
        .sort(["used", "attempt"], descending=[True, True])
        .unique("run", keep="first", maintain_order=True)
        .sort(ROW_INDEX)
        .drop(ROW_INDEX)
    )


def all_levels(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return all levels, including fixed levels, of a run document or a plan entry."""
    return {**(document.get("levels") or {}), **(document.get("treatment") or {})}


def _with_levels(summary: pl.DataFrame, plan: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Add missing columns `factor.<name>` for planned levels, including fixed levels."""
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
    """Return the level of `factor` in each row; None if it is unknown."""
    name = f"factor.{factor}"
    return frame[name].to_list() if name in frame.columns else [None] * frame.height


def levels_in(frame: pl.DataFrame, factors: Iterable[str]) -> list[tuple[Any, ...]]:
    """Return the levels of these factors in each row, as tuples."""
    return list(zip(*(levels_of(frame, name) for name in factors), strict=True))


def numbered(
    frame: pl.DataFrame, columns: Sequence[str]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the number of each row's combination of values, and each combination's first row.

    The shapes are (rows,) and (combinations,). The numbers follow the order of the first rows.
    Missing columns are ignored.
    """
    names = [name for name in columns if name in frame.columns]
    if not names:
        return np.zeros(frame.height, np.int64), np.arange(min(1, frame.height))
    rows = frame.select(names).with_row_index(ROW_INDEX)
    groups = rows.group_by(names, maintain_order=True).agg(ROW_INDEX)[ROW_INDEX]
    numbers = np.empty(frame.height, np.int64)
    numbers[groups.explode().to_numpy()] = np.repeat(np.arange(groups.len()), groups.list.len())
    return numbers, groups.list.first().cast(pl.Int64).to_numpy()


def per_treatment(
    evidence: Evidence, frame: pl.DataFrame, value_of: Callable[[dict[str, Any]], Value]
) -> list[Value]:
    """Return `value_of(levels)` of each run of `frame`, from one call per treatment."""
    treatment, firsts = numbered(frame, [f"factor.{name}" for name in evidence.varied])
    runs = frame["run"].gather(firsts) if frame.height else ()
    values = [value_of(all_levels(evidence.runs[run])) for run in runs]
    return [values[number] for number in treatment.tolist()]


def rows_at(frame: pl.DataFrame, levels: Mapping[str, Any]) -> npt.NDArray[np.bool_]:
    """Return whether each row has these levels (factor → level), shape (rows,)."""
    matching = np.ones(frame.height, dtype=np.bool_)
    for factor, level in levels.items():
        matching &= _rows_at(frame, factor, level)
    return matching


def _rows_at(frame: pl.DataFrame, factor: str, level: Any) -> npt.NDArray[np.bool_]:
    """Return whether each row has this level, by one comparison per distinct level."""
    name = f"factor.{factor}"
    if name not in frame.columns:
        return np.full(frame.height, same_level(None, level), dtype=np.bool_)
    column = frame[name]
    if column.dtype == pl.Object or column.dtype.is_nested():  # is_in does not support these
        return np.array([same_level(row, level) for row in column.to_list()], dtype=np.bool_)
    equal = [distinct for distinct in column.unique().to_list() if same_level(distinct, level)]
    return column.is_in(equal, nulls_equal=True).to_numpy()


def has_levels(present: Mapping[str, Any], levels: Mapping[str, Any]) -> bool:
    """Return whether a treatment with the levels `present` (factor → level) has all of `levels`."""
    return all(same_level(present.get(factor), level) for factor, level in levels.items())


def is_within(present: Mapping[str, Any], allowed: Mapping[str, Sequence[Any]]) -> bool:
    """Return whether a treatment has one of the levels of each factor in `allowed`."""
    return all(
        any(same_level(present.get(factor), level) for level in levels)
        for factor, levels in allowed.items()
    )


def order_of(evidence: Evidence) -> str:
    """Return GROUPED if each block has the levels of a factor next to each other, else RANDOM."""
    return GROUPED if grouped_factor(evidence) else RANDOM


def grouped_factor(evidence: Evidence) -> str:
    """Return the factor whose levels are next to each other in each block, or "".

    The plan has groups of variants, and otherwise a random order. Campaigns of earlier versions
    have groups of the primary factor's levels. A block with only one group, or with groups of one
    run, has a random order. The order of imported runs is unknown and counts as random.
    """
    if evidence.imported:
        return ""
    factors = dict.fromkeys((FACTOR, evidence.primary))
    varied = [name for name in factors if name in evidence.varied]
    return next((name for name in varied if _has_groups(evidence, name)), "")


def _has_groups(evidence: Evidence, factor: str) -> bool:
    blocks: dict[Any, list[tuple[Any, str]]] = {}
    for number, entry in enumerate(evidence.designed):
        levels = all_levels(entry)
        others = {name: levels.get(name) for name in evidence.varied if name != factor}
        blocks.setdefault(entry.get("block"), []).append(
            (entry.get("position", number), str(others))
        )
    has_groups = False
    for runs in blocks.values():
        groups = [group for _, group in sorted(runs)]
        kinds = len(set(groups))
        if kinds < len(list(itertools.groupby(groups))):
            return False
        has_groups |= 1 < kinds < len(groups)
    return has_groups


def planned_levels(evidence: Evidence, factor: str) -> Sequence[Any]:
    """Return the planned levels of a factor, varied or fixed."""
    held = evidence.study.fixed.get(factor)
    return evidence.factors.get(factor) or ((held,) if held is not None else ())


def unanswered(frame: pl.DataFrame) -> FloatArray:
    """Return the lost and undelivered messages and failed calls of the whole window, shape (rows,).

    Imported campaigns may have none of the other two counts.
    """
    others = (np.nan_to_num(column(frame, name)) for name in ("failed", "undelivered"))
    return column(frame, "lost") + sum(others)


def by_treatment(evidence: Evidence, frame: pl.DataFrame) -> dict[tuple[str, ...], pl.DataFrame]:
    """Return the rows of `frame` by the words of the varied levels, in planned order."""
    cached = evidence.groups.get(id(frame))
    if cached is None or cached[0] is not frame:
        cached = evidence.groups[id(frame)] = (frame, _grouped(evidence, frame))
    return cached[1]


def _grouped(evidence: Evidence, frame: pl.DataFrame) -> dict[tuple[str, ...], pl.DataFrame]:
    levels = [[evidence.word(name, v) for v in levels_of(frame, name)] for name in evidence.varied]
    rows: dict[tuple[str, ...], list[int]] = {}
    for row in range(frame.height):
        rows.setdefault(tuple(levels_of_factor[row] for levels_of_factor in levels), []).append(row)
    planned = [[evidence.word(name, v) for v in evidence.factors[name]] for name in evidence.varied]

    def planned_position(key: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(
            planned_words.index(word) if word in planned_words else len(planned_words)
            for word, planned_words in zip(key, planned, strict=True)
        )

    # All rows are sorted once, so each group is a slice, which needs no copy.
    keys = sorted(rows, key=planned_position)
    ordered = frame[[row for key in keys for row in rows[key]]]
    starts = itertools.accumulate((len(rows[key]) for key in keys), initial=0)
    return {
        key: ordered.slice(start, len(rows[key])) for key, start in zip(keys, starts, strict=False)
    }


def kept_by(frame: pl.DataFrame, where: Mapping[str, Sequence[Any]]) -> pl.DataFrame:
    """Return the rows of `frame` that have one of the levels of each factor in `where`."""
    mask = np.ones(frame.height, bool)
    for name, allowed in where.items():
        mask &= sum((rows_at(frame, {name: level}) for level in allowed), np.zeros_like(mask))
    return frame.filter(pl.Series(mask))


def held_levels(evidence: Evidence) -> dict[str, Any]:
    """Return the fixed levels that apply to every run, in the study's order.

    A level that differs between the variants of the campaign is not among them. Runs of a closed
    loop have no rate, so a campaign with such runs holds none.
    """
    study = evidence.study
    planned = {str(level) for level in evidence.factors.get(FACTOR, ())}
    tables = [
        variant.over(study.fixed) for name, variant in study.variants.items() if name in planned
    ] or [study.fixed]
    loops = {*evidence.factors.get("loop", ()), *(table.get("loop") for table in tables)}
    return {
        name: level
        for name, level in tables[0].items()
        if name not in evidence.factors
        if all(name in table and same_level(table[name], level) for table in tables)
        if not ("closed" in loops and name in OPEN_LOOP_ONLY)
    }


def same_level(first: Any, second: Any) -> bool:
    """Return whether two levels are equal.

    Numbers are compared by value, texts by character. True is not equal to 1.
    """
    try:
        return _same_level(first, second)
    except TypeError:  # a list is not hashable, so lru_cache raises TypeError
        return str(first) == str(second)


@lru_cache(maxsize=10_000, typed=True)
def _same_level(first: Any, second: Any) -> bool:
    numbers = [_number(value) for value in (first, second)]
    # Texts are compared by character because "1.1" and "1.10" are different versions.
    if None in numbers or (isinstance(first, str) and isinstance(second, str)):
        return str(first) == str(second)
    return math.isclose(*numbers, rel_tol=LEVEL_TOLERANCE)  # type: ignore[arg-type]


def _number(level: Any) -> float | None:
    """Return a number or a decimal text as a float; None for other levels."""
    if isinstance(level, bool) or not isinstance(level, (int, float, str)):
        return None
    if isinstance(level, str) and not _DECIMAL.fullmatch(level):
        return None
    return float(level)


def window_seconds(evidence: Evidence, frame: pl.DataFrame) -> FloatArray:
    """Return the length (s) of the window to which each run's costs refer, shape (rows,).

    This is the window without the warm-up, or the whole window of imported runs. Unknown lengths
    are NaN.
    """
    return column(frame, "window_s" if evidence.imported else "cost_window_s")
