"""What detectors share: the runs with their levels and latencies, and what a finding says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from wattwire.analysis.dataset import Evidence, all_levels
from wattwire.analysis.latency import Series
from wattwire.model import words
from wattwire.model.derived import FloatArray

CONFIDENCE = 0.95
Treatment = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Finding:
    """One suspected or shown cause. `settles` says what would prove it, or nothing is left."""

    id: str
    title: str
    shown: bool
    cause: str
    evidence: tuple[str, ...]
    settles: str
    parts: tuple[Any, ...] = ()

    @property
    def standing(self) -> str:
        """How far the evidence goes."""
        return "shown by this study" if self.shown else "suspected"


@dataclass(frozen=True)
class Silence:
    """A detector found nothing, or could not look, for this reason."""

    words: str


@dataclass(frozen=True)
class Run:
    """One run: its levels as words, its latencies in µs in time order, lost = +inf."""

    name: str
    block: int
    levels: Mapping[str, Any]
    values_us: FloatArray
    p50_us: float
    loss_share: float
    nodes: Sequence[Mapping[str, Any]] = field(repr=False, default=())
    excluded: bool = False
    """Whether the answers leave it out, for the state of the machine."""

    def treatment(self, varied: Iterable[str], without: Sequence[str] = ()) -> Treatment:
        """The varied levels of this run as words, some left out."""
        return tuple(
            (name, words.plain(self.levels.get(name))) for name in varied if name not in without
        )

    def in_force(self, name: str) -> set[str]:
        """What nodes said of this setting at READY, as words; empty where none of them did."""
        told = [(node.get("ready") or {}).get("effective") or {} for node in self.nodes]
        return {words.plain(each[name]) for each in told if name in each}

    @property
    def transports(self) -> set[str]:
        """What carries the messages, as nodes said; empty where none of them did."""
        return self.in_force("transport")

    @property
    def hosts(self) -> set[str]:
        """The machines that the nodes ran on."""
        return {str(node.get("host", "")) for node in self.nodes}


def runs_of(evidence: Evidence, series: Mapping[str, Series]) -> list[Run]:
    """Every usable run that carries latencies, in order of execution."""
    return list(_runs(evidence, series, evidence.usable, excluded=False))


def excluded_runs(evidence: Evidence, series: Mapping[str, Series]) -> list[Run]:
    """The excluded runs of `series`, in order of execution, marked as such."""
    return list(_runs(evidence, series, evidence.set_aside, excluded=True)) if series else []


def _runs(
    evidence: Evidence, series: Mapping[str, Series], frame: pl.DataFrame, excluded: bool
) -> Iterator[Run]:
    for row in frame.iter_rows(named=True):
        run = row["run"]
        if run not in series or not series[run].values_us.size:
            continue
        document = evidence.runs[run]
        p50, loss = row.get("latency_p50_us"), row.get("loss_share")
        yield Run(
            run,
            int(row["block"]),
            _distinct(evidence, all_levels(document)),
            series[run].values_us,
            float("nan") if p50 is None else float(p50),
            float("nan") if loss is None else float(loss),
            document.get("nodes", []),
            excluded,
        )


def _distinct(evidence: Evidence, levels: Mapping[str, Any]) -> dict[str, Any]:
    """Levels whose plain words are unique in their factor; any other as its longer word."""
    distinct = {}
    for name, level in levels.items():
        word = evidence.word(name, level)
        distinct[name] = level if word == words.plain(level) else word
    return distinct


def settings_with(evidence: Evidence, runs: Sequence[Run], role: str) -> list[str]:
    """Names of the settings of that role in the middleware that ran, as their manifests say."""
    told: Mapping[str, Mapping[str, str]] = evidence.reader.machine.get("setting_roles") or {}
    used = {str(node.get("cell", "")).split("/")[0] for run in runs for node in run.nodes}
    names = (n for mw in sorted(used) for n, r in told.get(mw, {}).items() if r == role)
    return list(dict.fromkeys(names))


def by_treatment(
    evidence: Evidence, runs: Sequence[Run], without: Sequence[str] = ()
) -> dict[Treatment, list[Run]]:
    """Runs by their varied levels, some left out, in the study's order of levels."""
    found: dict[Treatment, list[Run]] = {}
    for run in runs:
        found.setdefault(run.treatment(evidence.varied, without), []).append(run)
    planned = {
        name: [evidence.word(name, v) for v in levels] for name, levels in evidence.factors.items()
    }

    def place(treatment: Treatment) -> tuple[int, ...]:
        return tuple(
            planned[name].index(word) if word in planned[name] else len(planned[name])
            for name, word in treatment
        )

    return {treatment: found[treatment] for treatment in sorted(found, key=place)}


def told_levels(evidence: Evidence, treatment: Treatment) -> str:
    """A treatment's levels as a sentence names them."""
    return ", ".join(told_level(evidence, name, word) for name, word in treatment)


def told_level(evidence: Evidence, name: str, word: str) -> str:
    """A level, given as a word, as a sentence names it."""
    for level in evidence.factors.get(name, ()):
        if evidence.word(name, level) == word:
            return evidence.title(name, level)
    return word


def shared_levels(evidence: Evidence, hit: Iterable[Treatment], all_: Iterable[Treatment]) -> str:
    """What the hit treatments have in common that not all treatments have; empty for nothing."""
    hit_levels = _levels_by_name(hit)
    told = []
    for name, everywhere in _levels_by_name(all_).items():
        here = hit_levels.get(name, [])
        if here and len(here) < len(everywhere):
            listed = words.listed([told_level(evidence, name, word) for word in here])
            told.append(f"{listed} (of {len(everywhere)})" if len(here) > 1 else listed)
    return "; ".join(told)


def _levels_by_name(treatments: Iterable[Treatment]) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for treatment in treatments:
        for name, word in treatment:
            found.setdefault(name, {})[word] = None
    return {name: list(known) for name, known in found.items()}


def study_key(name: str, levels: Sequence[Any]) -> str:
    """A factor as a study's author would write it: `"settings.x" = [false, true]`."""
    key = f'"{name}"' if "." in name else name
    shown = [str(v).lower() if isinstance(v, bool) else str(v) for v in levels]
    return f"{key} = [{', '.join(shown)}]"
