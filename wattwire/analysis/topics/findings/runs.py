"""Provide the detectors with runs, their levels and their latencies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from wattwire.analysis.dataset import Evidence, all_levels
from wattwire.analysis.latency import Series
from wattwire.model import words
from wattwire.model.derived import FloatArray

Treatment = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Run:
    """One run with the words of its levels and its times since the send call (µs) in due order.

    `values_us` has shape (deliveries,). The time of a lost message is +inf. Detectors look for
    waits inside the transport, which the lateness of a sender would smear.
    """

    name: str
    block: int
    levels: Mapping[str, Any]
    values_us: FloatArray
    p50_us: float
    loss_share: float
    nodes: Sequence[Mapping[str, Any]] = field(repr=False, default=())
    excluded: bool = False
    """Whether the run is excluded from answers because of the machine's state."""

    def treatment(self, varied: Iterable[str], without: Sequence[str] = ()) -> Treatment:
        """Return the varied levels of this run as words, without the factors in `without`."""
        return tuple(
            (name, words.plain(self.levels.get(name))) for name in varied if name not in without
        )

    def in_force(self, name: str) -> set[str]:
        """Return the values of a setting that nodes reported at READY, as words; possibly empty."""
        effective = [(node.get("ready") or {}).get("effective") or {} for node in self.nodes]
        return {words.plain(levels[name]) for levels in effective if name in levels}

    @property
    def transports(self) -> set[str]:
        """The transports that the nodes reported; empty if no node reported its transport."""
        return self.in_force("transport")

    @property
    def hosts(self) -> set[str]:
        """The hosts of the nodes."""
        return {str(node.get("host", "")) for node in self.nodes}


def runs_of(evidence: Evidence, series: Mapping[str, Series]) -> list[Run]:
    """Return every valid run with latencies, in run order."""
    return list(_runs(evidence, series, evidence.usable, excluded=False))


def excluded_runs(evidence: Evidence, series: Mapping[str, Series]) -> list[Run]:
    """Return the excluded runs of `series` in run order, with `excluded` set."""
    return list(_runs(evidence, series, evidence.excluded, excluded=True)) if series else []


def _runs(
    evidence: Evidence, series: Mapping[str, Series], frame: pl.DataFrame, excluded: bool
) -> Iterator[Run]:
    for row in frame.iter_rows(named=True):
        run = row["run"]
        if run not in series or not series[run].values_us.size:
            continue
        document = evidence.runs[run]
        p50, loss = row.get("since_send_p50_us"), row.get("loss_share")
        yield Run(
            run,
            int(row["block"]),
            _distinct(evidence, all_levels(document)),
            series[run].since_send_us,
            float("nan") if p50 is None else float(p50),
            float("nan") if loss is None else float(loss),
            document.get("nodes", []),
            excluded,
        )


def _distinct(evidence: Evidence, levels: Mapping[str, Any]) -> dict[str, Any]:
    """Return the levels, with a longer word for each level whose plain word is ambiguous."""
    distinct = {}
    for name, level in levels.items():
        word = evidence.word(name, level)
        distinct[name] = level if word == words.plain(level) else word
    return distinct


def setting_purposes(evidence: Evidence) -> Mapping[str, Mapping[str, str]]:
    """Return middleware → setting → purpose, from the manifests stored in the campaign."""
    return evidence.reader.machine.get("setting_purposes") or {}


def settings_with(evidence: Evidence, runs: Sequence[Run], purpose: str) -> list[str]:
    """Return the settings that have `purpose` in the manifests of the runs' middleware."""
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
    """Return the runs by varied levels, without the factors in `without`, in the study's order."""
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
