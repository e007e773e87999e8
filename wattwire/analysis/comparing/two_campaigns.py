"""Compare two campaigns of one machine. Their runs are not paired."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wattwire import stats
from wattwire.analysis.answering.confidence import CONFIDENCE
from wattwire.analysis.comparing.common import (
    Runs,
    Wanted,
    chosen_responses,
    constant,
    first_incomplete,
    margin_of,
    noise_of,
    outcomes_of,
    side_noise,
    single_level,
    treatments_of,
    values_of,
    why_not_compared,
)
from wattwire.analysis.comparing.decision import (
    FROM_ZERO,
    NO_RATIO,
    Item,
    Judged,
    Method,
    completion,
    judged,
)
from wattwire.analysis.comparing.notes import (
    AcrossMachines,
    Changes,
    EditedNote,
    ExcludedRuns,
    FactDifference,
    NoiseNote,
    Note,
    NotMeasured,
    Occasions,
    Unmatched,
    ValidityNote,
)
from wattwire.analysis.comparing.other_placements import in_equal_placements, shares_of_runs
from wattwire.analysis.comparing.undelivered import (
    difference_of_occasions,
    from_zero,
    has_width,
    judged_share,
    means,
    noise_of_share,
    shares_note,
    to_compare,
)
from wattwire.analysis.dataset import CampaignReader, Evidence, gather
from wattwire.analysis.responses import Response
from wattwire.analysis.topics.validity.numbers import validity
from wattwire.model import words
from wattwire.model.derived import FloatArray
from wattwire.model.errors import UsageError
from wattwire.stats.two_samples import ratio_by_ranks
from wattwire.store import ImportedCampaign

WINDOW_KEYS = ("duration_s", "warmup_s")
Pair = tuple[Evidence, Evidence]


@dataclass(frozen=True)
class Source:
    """A campaign with its name and the identity of its builds in the journal."""

    name: str
    reader: CampaignReader
    identity: Mapping[str, Any]


def compare_two(base: Source, head: Source, wanted: Wanted) -> Judged:
    """Compare the head's runs with the base's runs, by treatment.

    Raise UsageError if the machines or the windows differ, if there is no common treatment, or if
    neither campaign has a requested response.
    """
    across = _refuse_machines(base, head, wanted.across_machines)
    sides = (gather(base.reader), gather(head.reader))
    _refuse_windows(base, head, sides)
    tables = tuple(treatments_of(side) for side in sides)
    common = [key for key in tables[0] if key in tables[1]]
    if not common:
        raise UsageError(_no_common_treatment(base, head, tables))
    requested = chosen_responses(sides, wanted)
    responses = [response for response in requested if not response.share]
    runs_by_side = [(s, [t[key] for key in common]) for s, t in zip(sides, tables, strict=True)]
    shares = to_compare(runs_by_side, requested)
    margin_note = margin_of(wanted, sides)
    margin = margin_note.margin
    drafts = [
        (key, response, _pending_item(base, head, key, response, sides, tables))
        for key in common
        for response in responses
    ]
    failures = sum(_any_failed(sides, tables, key) for key in common)
    family = failures + sum(
        isinstance(_ratio(sides, tables, key, response, CONFIDENCE), stats.Interval)
        for key, response, _ in drafts
    )
    family += sum(
        has_width(difference_of_occasions(*_values(sides, tables, key, response), CONFIDENCE))
        for key, response in (
            *((key, share) for key in common for share in shares),
            *((k, r) for k, r, _ in drafts if _ratio(sides, tables, k, r, CONFIDENCE) is FROM_ZERO),
        )
    )
    level = single_level(family, 1, *sides)
    items: list[Item] = []
    for key, response, item in drafts:
        items.append(judged(_with_ratio(item, sides, tables, key, response, level), margin))
    for response in shares:
        for key in common:
            item = _pending_item(base, head, key, response, sides, tables)
            item = _with_shares(item, *_values(sides, tables, key, response), level)
            items.append(judged_share(item, _noise_of_share(sides, response), margin))
    items = in_equal_placements(items, _placements(head, sides, tables, common))
    for key in common:
        outcomes = [outcomes_of(s, t[key]) for s, t in zip(sides, tables, strict=True)]
        title = _treatment_title(sides, tables[0][key].levels)
        both_outcomes = (outcomes[0], outcomes[1])
        failed = first_incomplete((sides[1], tables[1][key]), (sides[0], tables[0][key]))
        items.append(completion(title, base.name, head.name, both_outcomes, level, failed))
    notes = (
        margin_note,
        shares_note(runs_by_side, shares, margin),
        *_notes(base, head, sides, tables, responses),
    )
    return Judged(
        base.name, (head.name,), tuple(items), margin, level, max(1, family), 1,
        Method.TWO_OCCASIONS, notes, across,
    )  # fmt: skip


# -- refusals ------------------------------------------------------------------------------------


def equal_facts(machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that identify a machine, by host and key."""
    return {
        f"{host} {fact['key']}" if len(machine.get("hosts", {})) > 1 else str(fact["key"]): fact[
            "value"
        ]
        for host, host_facts in machine.get("hosts", {}).items()
        for fact in host_facts.get("facts", [])
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


def _no_common_treatment(base: Source, head: Source, tables: Sequence[Mapping[str, Runs]]) -> str:
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


# -- numbers -------------------------------------------------------------------------------------

Tables = tuple[dict[str, Runs], ...]


def _treatment_title(sides: Pair, levels: Mapping[str, Any]) -> str:
    varied = dict.fromkeys(name for side in sides for name in side.varied)
    named = [sides[0].title(name, levels[name]) for name in varied if name in levels]
    return ", ".join(named) or "the only treatment"


def _pending_item(
    base: Source, head: Source, key: str, response: Response, sides: Pair, tables: Tables
) -> Item:
    floors = [] if response.share else [noise_of(side, response) for side in sides]
    known_floors = [floor for floor in floors if floor is not None]
    return Item(
        _treatment_title(sides, tables[0][key].levels),
        response,
        base.name,
        head.name,
        stats.NotComputable("not computed"),
        base_runs=len(tables[0][key].rows),
        head_runs=len(tables[1][key].rows),
        noise=max(known_floors) if known_floors else None,
    )


def _any_failed(sides: Pair, tables: Tables, key: str) -> bool:
    return any(
        outcome != "completed"
        for side, table in zip(sides, tables, strict=True)
        for outcome in outcomes_of(side, table[key])
    )


def _values(
    sides: Pair, tables: Tables, key: str, response: Response
) -> tuple[FloatArray, FloatArray]:
    """Return the base's and the head's values without NaN, shape (runs,) each.

    Runs without a value (died or timed out) are counted by the item on completion. If a treatment
    has several runs in its blocks, the values are the means of the blocks.
    """
    base, head = (
        _block_means(values_of(side, table[key], response), table[key].blocks, response)
        for side, table in zip(sides, tables, strict=True)
    )
    return base, head


def _block_means(values: FloatArray, blocks: Sequence[int], response: Response) -> FloatArray:
    known = ~np.isnan(values)
    values, run_blocks = values[known], list(itertools.compress(blocks, known))
    if not 1 < len(set(run_blocks)) < len(run_blocks) or not np.isfinite(values).all():
        return values
    has_logs = bool((values > 0).all()) and not response.share
    return stats.cell_means(values, run_blocks, "log" if has_logs else "plain")


def _ratio(
    sides: Pair, tables: Tables, key: str, response: Response, level: float
) -> stats.Interval | stats.TooFew | stats.NotComputable:
    if refusal := _refused(sides, tables, key, response):
        return refusal
    lower, upper = _values(sides, tables, key, response)
    return FROM_ZERO if from_zero(lower, upper) else stats.welch_ratio(upper, lower, level)


def _refused(
    sides: Pair, tables: Tables, key: str, response: Response
) -> stats.TooFew | stats.NotComputable | None:
    """Return the reason why a treatment's runs of either side are not compared, else None."""
    for side, table in zip(sides, tables, strict=True):
        if reason := why_not_compared(side, [table[key]], response):
            return reason
    return None


def _placements(
    head: Source, sides: Pair, tables: Tables, common: Sequence[str]
) -> dict[tuple[str, str], tuple[FloatArray, FloatArray]]:
    """Return where the nodes of both campaigns ran, by the treatment and the head of an item."""
    placements = {}
    for key in common:
        base, of_head = (
            shares_of_runs(side, table[key]) for side, table in zip(sides, tables, strict=True)
        )
        placements[_treatment_title(sides, tables[0][key].levels), head.name] = (base, of_head)
    return placements


def _with_shares(item: Item, base: FloatArray, head: FloatArray, level: float) -> Item:
    means = [float(side.mean()) if side.size else math.nan for side in (base, head)]
    return replace(
        item, ratio=NO_RATIO, shares=(means[0], means[1]),
        difference=difference_of_occasions(base, head, level),
    )  # fmt: skip


def _noise_of_share(sides: Pair, response: Response) -> float | None:
    noises = [noise_of_share(side, response) for side in sides]
    return max((noise for noise in noises if noise is not None), default=None)


def _with_ratio(
    item: Item, sides: Pair, tables: Tables, key: str, response: Response, level: float
) -> Item:
    ratio = _ratio(sides, tables, key, response, level)
    if _refused(sides, tables, key, response):
        return replace(item, ratio=ratio)
    lower, upper = _values(sides, tables, key, response)
    item = replace(item, by_ranks=ratio_by_ranks(upper, lower, level))
    if ratio is FROM_ZERO:
        difference = difference_of_occasions(lower, upper, level)
        return replace(item, ratio=ratio, values=means(lower, upper), difference=difference)
    if constant(lower) and constant(upper):
        return replace(item, ratio=ratio, exact=float(upper[0] / lower[0]))
    return replace(item, ratio=ratio)


# -- limits of the comparison --------------------------------------------------------------------


def _notes(
    base: Source, head: Source, sides: Pair, tables: Tables, responses: Sequence[Response]
) -> Iterator[Note]:
    named_sides = list(zip((base.name, head.name), sides, strict=True))
    yield _occasions(base, head)
    for response in responses:
        yield NoiseNote(
            response,
            tuple(side_noise(name, side, response) for name, side in named_sides),
            all(side.imported for side in sides),
        )
    yield _changes(base, head)
    yield from _unmatched(base, head, sides, tables)
    for name, side in named_sides:
        if untried := side.untried(side.designed):
            yield NotMeasured(name, untried)
    if any(side.excluded.height for side in sides):
        yield ExcludedRuns(tuple((name, side.excluded.height) for name, side in named_sides))
    for name, side in named_sides:
        if side.edited:
            yield EditedNote(name, side.edited)
    for name, side in named_sides:
        for notice in validity(side).notices:
            yield ValidityNote(name, notice)


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


def _fact(source: Source, key: str) -> Any:
    for host in source.reader.machine.get("hosts", {}).values():
        for fact in host.get("facts", []):
            if fact.get("key") == key:
                return fact.get("value")
    return None


def _changes(base: Source, head: Source) -> Changes:
    commands = [source.reader.study.request for source in (base, head)]
    if not base.identity or not head.identity or any(commands):
        return Changes(None)
    keys = sorted(({*base.identity} & {*head.identity}) - {"study"})
    return Changes(tuple(key for key in keys if base.identity.get(key) != head.identity.get(key)))


def _unmatched(base: Source, head: Source, sides: Pair, tables: Tables) -> Iterator[Note]:
    for source, counterpart, index in ((base, head, 0), (head, base, 1)):
        titles = tuple(
            _treatment_title(sides, runs.levels)
            for key, runs in tables[index].items()
            if key not in tables[1 - index]
        )
        if titles:
            yield Unmatched(source.name, counterpart.name, titles)
