"""Compute where the nodes of each treatment ran, and what differs between and within treatments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from wattwire import stats
from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.analysis.topics.placements.apart import (
    Placed,
    PlacedApart,
    Treatment,
    placed,
    placed_apart,
    ratios_by_cores,
)
from wattwire.analysis.topics.placements.modes import modes
from wattwire.model.cores import CORES
from wattwire.model.cores.topology import NEARNESS
from wattwire.model.derived import column


@dataclass(frozen=True)
class RatioAt:
    """The ratio of a level to its baseline at a level of the factor of placements."""

    cores: str
    ratio: stats.Interval


@dataclass(frozen=True)
class Apart:
    """Two treatments, or a level and its baseline, whose nodes ran in different placements.

    `place` is the entry of NEARNESS that differs most, and `share` and `other_share` are its shares
    of the time. With `has_cores`, the study has several placements: `ratios` has the ratio of
    `level` to `baseline_level` in each, at this `confidence`, unless it could not be computed.
    """

    baseline: str
    other: str
    place: str
    share: float
    other_share: float
    has_cores: bool = False
    level: str = ""
    baseline_level: str = ""
    response: str = ""
    verb: str = ""
    confidence: float = 0.0
    ratios: tuple[RatioAt, ...] = ()


@dataclass(frozen=True)
class TwoModes:
    """A treatment ("" for the only one) with two modes: their numbers of runs and their ratio.

    `cause` is one of `modes.py`.
    """

    treatment: str
    low: int
    high: int
    ratio: float
    cause: str


@dataclass(frozen=True)
class Restriction:
    """A machine ("" for the only one) of whose `online` CPUs the nodes had only `cpus`."""

    host: str
    cpus: tuple[int, ...]
    online: int


@dataclass(frozen=True)
class TreatmentPlacement:
    """Means over a treatment's runs: the share of the time in each entry of NEARNESS.

    `wait_us` is the time per message for which runnable threads waited for a CPU, and `migrations`
    the number of their moves per message; NaN if unknown.
    """

    treatment: Treatment
    shares: tuple[float, ...]
    wait_us: float
    migrations: float


@dataclass(frozen=True)
class Placements:
    """Where the nodes of all treatments ran.

    `apart` has the largest difference of each factor, and `more` is the number of the others.
    `shown` has the positions in `nearness` of the shares that any treatment has.
    """

    has_messages: bool = False
    apart: tuple[Apart, ...] = ()
    more: int = 0
    modes: tuple[TwoModes, ...] = ()
    restrictions: tuple[Restriction, ...] = ()
    treatments: tuple[TreatmentPlacement, ...] = ()
    shown: tuple[int, ...] = ()
    nearness: tuple[str, ...] = NEARNESS


def placements(evidence: Evidence) -> Placements:
    """Return where the nodes of a measured campaign ran."""
    if evidence.imported:
        return Placements()
    of_treatments = placed(evidence)
    apart = placed_apart(evidence)
    first: dict[str, PlacedApart] = {}
    for pair in apart:
        first.setdefault(pair.factor, pair)
    treatments = tuple(_treatments(evidence, of_treatments))
    return Placements(
        evidence.has_messages,
        tuple(_apart(evidence, pair) for pair in first.values()),
        len(apart) - len(first),
        tuple(
            TwoModes(evidence.title_of_key(found.treatment), *found.runs, found.ratio, found.cause)
            for found in modes(evidence)
        ),
        tuple(restrictions(evidence.runs)),
        treatments,
        tuple(
            index
            for index in range(len(NEARNESS))
            if index == 0 or any(treatment.shares[index] for treatment in treatments)
        ),
    )


def _apart(evidence: Evidence, found: PlacedApart) -> Apart:
    position = evidence.varied.index(found.factor)
    treatments = [entry.treatment for entry in found.pairs[0]]
    levels = [evidence.title(found.factor, treatment[position]) for treatment in treatments]
    is_of_levels = len(found.pairs) > 1
    titles = levels if is_of_levels else [evidence.title_of_key(key) for key in treatments]
    place, has_cores = NEARNESS[found.share], CORES in evidence.varied
    apart = Apart(titles[0], titles[1], place, *found.shares, has_cores)
    ratios = ratios_by_cores(evidence, found)
    if ratios is None:
        return apart
    response, by_cores = ratios
    return replace(
        apart,
        baseline_level=levels[0],
        level=levels[1],
        response=response.title,
        verb=response.had,
        confidence=by_cores[0][1].level,
        ratios=tuple(RatioAt(str(cores), ratio) for cores, ratio in by_cores),
    )


def restrictions(runs: Mapping[str, Mapping[str, Any]]) -> Iterator[Restriction]:
    """Yield each machine on which wattwire could not use all CPUs, from the documents of runs."""
    machines = [
        machine
        for document in runs.values()
        for machine in (document.get("cores") or {}).get("machines", [])
    ]
    hosts = dict.fromkeys(machine["hosts"][0] for machine in machines)
    found = {
        (machine["hosts"][0], tuple(machine["allowed"])): len(machine["topology"])
        for machine in machines
        if len(machine["allowed"]) < len(machine["topology"])
    }
    for (host, allowed), online in found.items():
        yield Restriction(host if len(hosts) > 1 else "", allowed, online)


def _treatments(evidence: Evidence, entries: Sequence[Placed]) -> Iterator[TreatmentPlacement]:
    frames = by_treatment(evidence, evidence.usable)
    for entry in entries:
        frame = frames[entry.treatment]
        wait_us, migrations = (
            float(column(frame, name).mean())
            for name in ("run_delay_us_per_message", "migrations_per_message")
        )
        yield TreatmentPlacement(entry.treatment, tuple(entry.mean.tolist()), wait_us, migrations)
