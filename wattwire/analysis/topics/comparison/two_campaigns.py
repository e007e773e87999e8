"""Group the runs of two campaigns by treatment. Their runs are not paired."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wattwire import stats
from wattwire.analysis.dataset import CampaignReader, Evidence, gather
from wattwire.analysis.host_facts import facts_of
from wattwire.analysis.responses import Response
from wattwire.analysis.topics.comparison.decision import Estimate
from wattwire.analysis.topics.comparison.notes import (
    AcrossMachines,
    Changes,
    FactDifference,
    LayersOfOne,
    Named,
    NoiseNote,
    Note,
    Occasions,
    Unmatched,
    edited_notes,
    run_notes,
    validity_notes,
)
from wattwire.analysis.topics.comparison.pairing import (
    Case,
    Runs,
    Sides,
    figures_of_one,
    treatments_of,
)
from wattwire.analysis.topics.comparison.requested import DEFAULTS
from wattwire.analysis.topics.comparison.result import TWO_OCCASIONS
from wattwire.analysis.topics.comparison.undelivered import difference_of_occasions
from wattwire.model import words
from wattwire.model.derived import FloatArray
from wattwire.model.errors import UsageError
from wattwire.stats.two_samples import ratio_by_ranks
from wattwire.store import ImportedCampaign

WINDOW_KEYS = ("duration_s", "warmup_s")
EXEC_WINDOW_KEYS = ("warmup_s", "warmup_messages", "warmup_runs")
Pair = tuple[Evidence, Evidence]
Treatments = Mapping[str, Runs]


@dataclass(frozen=True)
class Source:
    """A campaign with its name and the identity of its builds in the journal."""

    name: str
    reader: CampaignReader
    identity: Mapping[str, Any]


@dataclass(frozen=True)
class TwoCampaigns:
    """The pairing of two campaigns: all runs of a treatment in one with all in the other."""

    method: ClassVar[str] = TWO_OCCASIONS
    lists_treatments: ClassVar[bool] = True
    added_cases: ClassVar[tuple[Case, ...]] = ()
    default_responses: ClassVar[Sequence[str]] = DEFAULTS
    tests: ClassVar[int] = 1

    sources: tuple[Source, Source]
    evidences: Pair
    tables: tuple[Treatments, Treatments]
    cases: tuple[Case, ...]
    across: AcrossMachines | None

    @property
    def base(self) -> str:
        return self.sources[0].name

    @property
    def heads(self) -> tuple[str, ...]:
        return (self.sources[1].name,)

    @property
    def campaigns(self) -> tuple[Named, ...]:
        names = (source.name for source in self.sources)
        return tuple(zip(names, self.evidences, strict=True))

    def values(self, case: Case, response: Response) -> Sides:
        """Return the base's and the head's values without NaN, shape (runs,) each.

        Runs without a value (died or timed out) are counted by the item on completion. If a
        treatment has several runs in its blocks, the values are the means of the blocks.
        """
        base, head = (_block_means(runs, response) for runs in (case.base, case.head))
        return base, head

    def counts(self, case: Case, values: Sides) -> tuple[int, int]:
        """Return the number of valid runs on either side, with or without a value."""
        return len(case.base.rows), len(case.head.rows)

    def ratios(self, values: Sequence[Sides], level: float) -> list[Estimate]:
        return [stats.welch_ratio(head, base, level) for base, head in values]

    def difference(self, values: Sides, level: float) -> Estimate:
        return difference_of_occasions(*values, level)

    def by_ranks(self, values: Sides, level: float) -> Estimate:
        base, head = values
        return ratio_by_ranks(head, base, level)

    def notes(self, noises: Sequence[NoiseNote]) -> Iterator[Note]:
        yield _occasions(*self.sources)
        yield from noises
        yield _changes(*self.sources)
        yield from _layers_note(*self.sources)
        yield from self._unmatched()
        yield from figures_of_one(self.base, self.cases)
        yield from run_notes(self.campaigns)
        yield from edited_notes(self.campaigns)
        yield from validity_notes(self.campaigns)

    def _unmatched(self) -> Iterator[Note]:
        names, tables = [source.name for source in self.sources], self.tables
        for index, other in ((0, 1), (1, 0)):
            titles = tuple(
                _treatment_title(self.evidences, runs.levels)
                for key, runs in tables[index].items()
                if key not in tables[other]
            )
            if titles:
                yield Unmatched(names[index], names[other], titles)


def two_campaigns(base: Source, head: Source, across_machines: bool = False) -> TwoCampaigns:
    """Return the two campaigns with their common treatments.

    Raise UsageError if the machines or the windows differ, or if there is no common treatment.
    """
    across = _refuse_machines(base, head, across_machines)
    sides = (gather(base.reader), gather(head.reader))
    _refuse_windows(base, head, sides)
    tables = (treatments_of(sides[0]), treatments_of(sides[1]))
    cases = []
    for key in tables[0]:
        if key in tables[1]:
            title = _treatment_title(sides, tables[0][key].levels)
            cases.append(Case(title, title, head.name, tables[0][key], tables[1][key]))
    if not cases:
        raise UsageError(_no_common_treatment(base, head, tables))
    return TwoCampaigns((base, head), sides, tables, tuple(cases), across)


def _treatment_title(sides: Pair, levels: Mapping[str, Any]) -> str:
    varied = dict.fromkeys(name for side in sides for name in side.varied)
    named = [sides[0].title(name, levels[name]) for name in varied if name in levels]
    return ", ".join(named) or "the only treatment"


def _block_means(runs: Runs, response: Response) -> FloatArray:
    values = runs.values(response)
    known = ~np.isnan(values)
    values, run_blocks = values[known], list(itertools.compress(runs.blocks, known))
    if not 1 < len(set(run_blocks)) < len(run_blocks) or not np.isfinite(values).all():
        return values
    has_logs = bool((values > 0).all()) and not response.share
    return stats.cell_means(values, run_blocks, "log" if has_logs else "plain")


# -- refusals ------------------------------------------------------------------------------------


def equal_facts(machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that identify a machine, by host and key."""
    has_several = len(machine.get("hosts", {})) > 1
    return {
        f"{host} {fact['key']}" if has_several else str(fact["key"]): fact["value"]
        for host, fact in facts_of(machine)
        if fact.get("check") == "equal"
    }


def _refuse_machines(base: Source, head: Source, across: bool) -> AcrossMachines | None:
    """Return the differences between the machines; None if both are the same machine.

    Raise UsageError for different machines unless `across` is set.
    """
    facts = [equal_facts(source.reader.machine) for source in (base, head)]
    unknown = tuple(
        source.name
        for source, side_facts in zip((base, head), facts, strict=True)
        if not side_facts
    )
    differences = (
        ()
        if unknown
        else tuple(
            FactDifference(key, facts[0].get(key), facts[1].get(key))
            for key in sorted({*facts[0], *facts[1]})
            if facts[0].get(key) != facts[1].get(key)
        )
    )
    if not unknown and not differences:
        return None
    machines = AcrossMachines(unknown, differences)
    if across:
        return machines
    preferably = " (preferably with run --variant)" if _have_variants(base, head) else ""
    raise UsageError(
        f"{base.name} and {head.name} were not measured on the same machine in the same state "
        f"({_machines_text(machines)}), which could cause a difference. Measure both on the "
        f"same machine{preferably}, or use --across-machines."
    )


def _machines_text(machines: AcrossMachines) -> str:
    if machines.unknown:
        return f"no machine record of {words.listed(list(machines.unknown))}"
    return "; ".join(
        f"{fact.key}: {'none' if fact.base is None else fact.base} against "
        f"{'none' if fact.head is None else fact.head}"
        for fact in machines.differences
    )


def _refuse_windows(base: Source, head: Source, sides: Pair) -> None:
    """Raise UsageError if the two campaigns measured different windows of a run.

    Warm-ups are compared by the number of calls used, whether the study states this number or
    settling runs determined it.
    """
    plans = [source.reader.study.plan for source in (base, head)]
    lengths = {key: [getattr(plan, key) for plan in plans] for key in WINDOW_KEYS}
    differences = [f"plan.{key}: {a} against {b}" for key, (a, b) in lengths.items() if a != b]
    of_base, of_head = (source.reader.study.request for source in (base, head))
    if of_base and of_head:
        values = {key: (getattr(of_base, key), getattr(of_head, key)) for key in EXEC_WINDOW_KEYS}
        differences += [f"exec.{key}: {a} against {b}" for key, (a, b) in values.items() if a != b]
    calls = [side.warmup_calls for side in sides]
    advice = "Run one of the two again with the other's plan"
    if calls[0] != calls[1]:
        differences.append(f"warm-up of each client: {calls[0]:,} calls against {calls[1]:,}")
        advice += f", and both with the same warm-up (--warmup {max(calls)})"
    if differences:
        raise UsageError(
            f"{base.name} and {head.name} measured different windows ({'; '.join(differences)}), "
            f"so their runs are not comparable. {advice}."
        )


def _no_common_treatment(base: Source, head: Source, tables: Sequence[Treatments]) -> str:
    levels = [[dict(runs.levels) for runs in table.values()] for table in tables]
    keys = sorted({key for side in levels for run_levels in side for key in run_levels})
    differences = []
    for key in keys:
        values = [sorted({str(run_levels.get(key)) for run_levels in side}) for side in levels]
        if not set(values[0]) & set(values[1]):
            differences.append(
                f"{key}: {words.listed(values[0])} against {words.listed(values[1])}"
            )
    reason = "; ".join(differences) or "they combine levels differently"
    advice = ", or measure two settings in one job: run --variant"
    return (
        f"{base.name} and {head.name} have no treatment in common ({reason}). Compare campaigns "
        f"of the same study{advice if _have_variants(base, head) else ''}."
    )


# -- limits of the comparison --------------------------------------------------------------------


def _occasions(base: Source, head: Source) -> Occasions:
    boots = [_fact(source, "boot_id") for source in (base, head)]
    same_boot = None if None in boots else boots[0] == boots[1]
    return Occasions(same_boot, _have_variants(base, head))


def _have_variants(*sources: Source) -> bool:
    """Return whether a study could vary what was measured; commands and imports have none."""
    readers = [source.reader for source in sources]
    return not any(
        reader.study.request is not None or isinstance(reader, ImportedCampaign)
        for reader in readers
    )


def _layers_note(*sources: Source) -> Iterator[Note]:
    """Yield a note if only one of two commands ran with --layers, which costs CPU time."""
    requests = [source.reader.study.request for source in sources]
    recorded = [request is not None and request.layers for request in requests]
    if recorded[0] != recorded[1]:
        yield LayersOfOne(sources[recorded.index(True)].name, sources[recorded.index(False)].name)


def _fact(source: Source, key: str) -> Any:
    facts = (fact for _, fact in facts_of(source.reader.machine) if fact.get("key") == key)
    return next((fact.get("value") for fact in facts), None)


def _changes(base: Source, head: Source) -> Changes:
    commands = [source.reader.study.request for source in (base, head)]
    if not base.identity or not head.identity or any(commands):
        return Changes(None)
    keys = sorted(({*base.identity} & {*head.identity}) - {"study"})
    return Changes(tuple(key for key in keys if base.identity.get(key) != head.identity.get(key)))
