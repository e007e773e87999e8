"""Parts common to all detectors: runs with their levels and latencies, and findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from wattwire.analysis.dataset import Evidence, all_levels
from wattwire.analysis.latency import Series
from wattwire.model import words
from wattwire.model.derived import FloatArray
from wattwire.report.words.phrases import Phrase, Phrases

PHRASES = Phrases("finding", {"shown": "shown by this study", "suspected": "suspected"})

CONFIDENCE = 0.95
Treatment = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Finding:
    """One suspected or shown cause. `settles` states what would prove it; "" if it is shown."""

    id: str
    title: str
    shown: bool
    cause: str
    evidence: tuple[str, ...]
    settles: str
    parts: tuple[Any, ...] = ()

    @property
    def standing(self) -> Phrase:
        """Strength of the evidence: shown or suspected."""
        return PHRASES("shown" if self.shown else "suspected")


@dataclass(frozen=True)
class Silence:
    """The reason why a detector has no finding, or could not run."""

    words: str


@dataclass(frozen=True)
class Run:
    """One run: its levels as words, its latencies in µs, shape (deliveries,), in due order.

    The latency of a lost message is +inf.
    """

    name: str
    block: int
    levels: Mapping[str, Any]
    values_us: FloatArray
    p50_us: float
    loss_share: float
    nodes: Sequence[Mapping[str, Any]] = field(repr=False, default=())
    excluded: bool = False
    """Whether the answers exclude the run because of the machine's state."""

    def treatment(self, varied: Iterable[str], without: Sequence[str] = ()) -> Treatment:
        """Return the varied levels of this run as words, except the factors in `without`."""
        return tuple(
            (name, words.plain(self.levels.get(name))) for name in varied if name not in without
        )

    def in_force(self, name: str) -> set[str]:
        """Return the levels of a setting that nodes reported at READY, as words; may be empty."""
        effective = [(node.get("ready") or {}).get("effective") or {} for node in self.nodes]
        return {words.plain(levels[name]) for levels in effective if name in levels}

    @property
    def transports(self) -> set[str]:
        """The transports of the messages, as reported by nodes; empty if none reported one."""
        return self.in_force("transport")

    @property
    def hosts(self) -> set[str]:
        """The hosts of the nodes."""
        return {str(node.get("host", "")) for node in self.nodes}


def runs_of(evidence: Evidence, series: Mapping[str, Series]) -> list[Run]:
    """Return every usable run with latencies, in run order."""
    return list(_runs(evidence, series, evidence.usable, excluded=False))


def excluded_runs(evidence: Evidence, series: Mapping[str, Series]) -> list[Run]:
    """Return the excluded runs of `series`, in run order, marked as excluded."""
    return list(_runs(evidence, series, evidence.excluded, excluded=True)) if series else []


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
    """Return the levels, with a longer word for each whose plain word is not unique."""
    distinct = {}
    for name, level in levels.items():
        word = evidence.word(name, level)
        distinct[name] = level if word == words.plain(level) else word
    return distinct


def setting_purposes(evidence: Evidence) -> Mapping[str, Mapping[str, str]]:
    """Return middleware → setting → purpose, as the campaign's manifests had them."""
    machine = evidence.reader.machine
    # Campaigns of an earlier version call them roles.
    return machine.get("setting_purposes") or machine.get("setting_roles") or {}


def settings_with(evidence: Evidence, runs: Sequence[Run], purpose: str) -> list[str]:
    """Return the names of the settings with a purpose in the manifests of the middleware used."""
    purposes_by_middleware = setting_purposes(evidence)
    used = {str(node.get("cell", "")).split("/")[0] for run in runs for node in run.nodes}
    names = (
        name
        for middleware in sorted(used)
        for name, its_purpose in purposes_by_middleware.get(middleware, {}).items()
        if its_purpose == purpose
    )
    return list(dict.fromkeys(names))


def by_treatment(
    evidence: Evidence, runs: Sequence[Run], without: Sequence[str] = ()
) -> dict[Treatment, list[Run]]:
    """Return the runs by varied levels, except the factors in `without`, in the study's order."""
    grouped: dict[Treatment, list[Run]] = {}
    for run in runs:
        grouped.setdefault(run.treatment(evidence.varied, without), []).append(run)
    planned = {
        name: [evidence.word(name, v) for v in levels] for name, levels in evidence.factors.items()
    }

    def planned_position(treatment: Treatment) -> tuple[int, ...]:
        return tuple(
            planned[name].index(word) if word in planned[name] else len(planned[name])
            for name, word in treatment
        )

    return {treatment: grouped[treatment] for treatment in sorted(grouped, key=planned_position)}


def told_levels(evidence: Evidence, treatment: Treatment) -> str:
    """Return a treatment's levels with their titles, for a sentence."""
    return ", ".join(told_level(evidence, name, word) for name, word in treatment)


def told_level(evidence: Evidence, name: str, word: str) -> str:
    """Return the title of a level given as a word, for a sentence."""
    for level in evidence.factors.get(name, ()):
        if evidence.word(name, level) == word:
            return evidence.title(name, level)
    return word


def shared_levels(evidence: Evidence, hit: Iterable[Treatment], all_: Iterable[Treatment]) -> str:
    """Return the levels common to the hit treatments but not to all; "" for none."""
    hit_levels = _levels_by_name(hit)
    phrases = []
    for name, all_words in _levels_by_name(all_).items():
        hit_words = hit_levels.get(name, [])
        if hit_words and len(hit_words) < len(all_words):
            listed = words.listed([told_level(evidence, name, word) for word in hit_words])
            phrases.append(f"{listed} (of {len(all_words)})" if len(hit_words) > 1 else listed)
    return "; ".join(phrases)


def _levels_by_name(treatments: Iterable[Treatment]) -> dict[str, list[str]]:
    words_by_name: dict[str, dict[str, None]] = {}
    for treatment in treatments:
        for name, word in treatment:
            words_by_name.setdefault(name, {})[word] = None
    return {name: list(level_words) for name, level_words in words_by_name.items()}


def study_key(name: str, levels: Sequence[Any]) -> str:
    """Return a factor as in a study file: `"settings.x" = [false, true]`."""
    key = f'"{name}"' if "." in name else name
    shown = [str(v).lower() if isinstance(v, bool) else str(v) for v in levels]
    return f"{key} = [{', '.join(shown)}]"
