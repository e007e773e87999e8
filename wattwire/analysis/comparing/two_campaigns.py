"""Comparison of two campaigns on one machine, with unpaired runs from two occasions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wattwire import stats
from wattwire.analysis.comparing.common import (
    Runs,
    Wanted,
    chosen_responses,
    constant,
    first_reason,
    margin_of,
    noise_of,
    noise_words,
    outcomes_of,
    single_level,
    too_few_messages,
    treatments_of,
    values_of,
)
from wattwire.analysis.comparing.decision import (
    CONFIDENCE,
    NO_RATIO,
    Item,
    Judged,
    completion,
    judged,
)
from wattwire.analysis.comparing.undelivered import (
    difference_of_occasions,
    has_width,
    judged_share,
    noise_of_share,
    notes,
    to_compare,
)
from wattwire.analysis.dataset import CampaignReader, Evidence, gather
from wattwire.analysis.responses import Response
from wattwire.analysis.validity import stamps
from wattwire.model import words
from wattwire.model.derived import FloatArray
from wattwire.model.errors import UsageError
from wattwire.model.words import edited_words
from wattwire.stats.two_samples import ratio_by_ranks

METHOD = "Welch's t on the logarithms of run summaries, runs of two occasions, not paired"
WINDOW_KEYS = ("duration_s", "warmup_s")
NAMED_MAX = 4
Pair = tuple[Evidence, Evidence]


@dataclass(frozen=True)
class Source:
    """A campaign with its name and the identity of its builds as recorded in the journal."""

    name: str
    reader: CampaignReader
    identity: Mapping[str, Any]


def compare_two(base: Source, head: Source, wanted: Wanted) -> Judged:
    """Compare the head's runs with the base's, treatment by treatment.

    Raises UsageError if the two cannot be compared: different machines, different windows, no
    common treatment, or a response that neither has.
    """
    prefix = _refuse_machines(base, head, wanted.across_machines)
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
    margin, margin_note = margin_of(wanted, sides)
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
        for key in common
        for response in shares
    )
    level = single_level(family, 1)
    items = []
    for key, response, item in drafts:
        items.append(judged(_with_ratio(item, sides, tables, key, response, level), margin))
    for response in shares:
        for key in common:
            item = _pending_item(base, head, key, response, sides, tables)
            item = _with_shares(item, *_values(sides, tables, key, response), level)
            items.append(judged_share(item, _noise_of_share(sides, response), margin))
    for key in common:
        outcomes = [outcomes_of(s, t[key]) for s, t in zip(sides, tables, strict=True)]
        title = _treatment_title(sides, tables[0][key].levels)
        both_outcomes = (outcomes[0], outcomes[1])
        reason = first_reason((sides[1], tables[1][key]), (sides[0], tables[0][key]))
        items.append(completion(title, base.name, head.name, both_outcomes, level, reason))
    all_notes = [
        margin_note, *notes(shares, margin), *_notes(base, head, sides, tables, responses)
    ]  # fmt: skip
    return Judged(
        base.name, (head.name,), tuple(items), margin, level, max(1, family), 1, METHOD,
        tuple(all_notes), prefix,
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


def _refuse_machines(base: Source, head: Source, across: bool) -> str:
    """Return the prefix of the first line, "" for one machine.

    Raises UsageError for different machines unless `across` is set.
    """
    facts = [equal_facts(source.reader.machine) for source in (base, head)]
    unknown = [
        source.name
        for source, side_facts in zip((base, head), facts, strict=True)
        if not side_facts
    ]
    if unknown:
        reason = f"no machine record of {words.listed(unknown)}"
    else:
        different = [
            k for k in sorted({*facts[0], *facts[1]}) if facts[0].get(k) != facts[1].get(k)
        ]
        if not different:
            return ""
        reason = "; ".join(
            f"{key}: {facts[0].get(key, 'none')} against {facts[1].get(key, 'none')}"
            for key in different
        )
    if across:
        return f"Across machines ({reason}), so the machine may cause the difference: "
    raise UsageError(
        f"{base.name} and {head.name} were not measured on the same machine in the same state "
        f"({reason}), which could cause a difference. Measure both on one machine (best: run "
        "--variant), or compare them anyway with --across-machines."
    )


def _refuse_windows(base: Source, head: Source, sides: Pair) -> None:
    """Raise UsageError if the two campaigns measured different windows of a run.

    The warm-up in calls is the one in effect, whether found by settling runs or stated.
    """
    plans = [source.reader.study.plan for source in (base, head)]
    lengths = {key: [getattr(plan, key) for plan in plans] for key in WINDOW_KEYS}
    differences = [f"plan.{key}: {a} against {b}" for key, (a, b) in lengths.items() if a != b]
    calls = [side.warmup_calls for side in sides]
    advice = "Run one of the two again with the other's plan"
    if calls[0] != calls[1]:
        differences.append(f"warm-up of each client: {calls[0]:,} calls against {calls[1]:,}")
        advice += f", and both with the same warm-up, as --warmup {max(calls)}"
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
            differences.append(f"{key}: {' '.join(values[0])} against {' '.join(values[1])}")
    reason = "; ".join(differences) or "their combinations of levels"
    return (
        f"{base.name} and {head.name} have no treatment in common ({reason}). Compare campaigns "
        "of the same study, or measure two settings in one job: run --variant."
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
    """Return base and head values without NaN, shape (runs,) each.

    Runs without a value (died, timed out) are counted by the item on completion.
    """
    both = [
        values_of(side, table[key], response) for side, table in zip(sides, tables, strict=True)
    ]
    return both[0][~np.isnan(both[0])], both[1][~np.isnan(both[1])]


def _ratio(
    sides: Pair, tables: Tables, key: str, response: Response, level: float
) -> stats.Interval | stats.TooFew | stats.NotComputable:
    for side, table in zip(sides, tables, strict=True):
        if few := too_few_messages(side, [table[key]], response):
            return few
    lower, upper = _values(sides, tables, key, response)
    return stats.welch_ratio(upper, lower, level)


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
    lower, upper = _values(sides, tables, key, response)
    item = replace(item, by_ranks=ratio_by_ranks(upper, lower, level))
    if constant(lower) and constant(upper):
        return replace(item, ratio=ratio, exact=float(upper[0] / lower[0]))
    return replace(item, ratio=ratio)


# -- limits of the comparison --------------------------------------------------------------------


def _notes(
    base: Source, head: Source, sides: Pair, tables: Tables, responses: Sequence[Response]
) -> list[str]:
    return [
        _occasion_note(base, head),
        *(_noise_note(base, head, sides, response) for response in responses),
        _change_note(base, head),
        *_unmatched_notes(base, head, sides, tables),
        *_excluded_notes(base, head, sides),
        *(
            f"{source.name}: {edited_words(side.edited)}"
            for source, side in zip((base, head), sides, strict=True)
            if side.edited
        ),
        *(
            f"{source.name}: {stamp}"
            for source, side in zip((base, head), sides, strict=True)
            for stamp in stamps(side)
        ),
    ]


def _occasion_note(base: Source, head: Source) -> str:
    boots = [_fact(source, "boot_id") for source in (base, head)]
    if None in boots:
        occasions = "two occasions (whether of one boot is not known)"
    else:
        occasions = "two occasions of one boot" if boots[0] == boots[1] else "two boots"
    return (
        f"Measured on {occasions}. The intervals cover the scatter of runs within each occasion, "
        "not other differences between the two (temperature, other load, memory layout). A "
        "difference is one between these two occasions; its cause is not proven. `wattwire run "
        "STUDY --variant base=… --variant head=…` measures both side by side."
    )


def _fact(source: Source, key: str) -> Any:
    for host in source.reader.machine.get("hosts", {}).values():
        for fact in host.get("facts", []):
            if fact.get("key") == key:
                return fact.get("value")
    return None


def _noise_note(base: Source, head: Source, sides: Pair, response: Response) -> str:
    phrases = [
        noise_words(source.name, side, response)
        for source, side in zip((base, head), sides, strict=True)
    ]
    floors = [n for n in (noise_of(side, response) for side in sides) if n is not None]
    if not floors:
        return (
            f"Noise floor of {response.title}: unknown, neither campaign has control runs "
            "(plan.controls)."
        )
    return (
        f"Noise floor of {response.title}, the outer limit of the interval of two identical "
        f"labels: {'; '.join(phrases)}. No effect of {words.percent(math.expm1(max(floors)))} or "
        "less is claimed."
    )


def _change_note(base: Source, head: Source) -> str:
    keys = sorted(({*base.identity} & {*head.identity}) - {"study"})
    changed = [key for key in keys if base.identity.get(key) != head.identity.get(key)]
    if not base.identity or not head.identity:
        return "The changes between the two are not recorded."
    if not changed:
        return "Cells, kits and agent are identical in both: the measured programs are unchanged."
    note = f"Changed between the two: {words.listed(changed)}."
    if "agent build" in changed:
        note += " The agent performs the measurement and may cause part of a difference."
    return note


def _unmatched_notes(base: Source, head: Source, sides: Pair, tables: Tables) -> Iterator[str]:
    for source, counterpart, index in ((base, head, 0), (head, base, 1)):
        only = [key for key in tables[index] if key not in tables[1 - index]]
        if only:
            titles = [
                _treatment_title(sides, tables[index][key].levels) for key in only[:NAMED_MAX]
            ]
            more = f" and {len(only) - NAMED_MAX} more" if len(only) > NAMED_MAX else ""
            yield (
                f"Skipped, because {counterpart.name} does not have it: {'; '.join(titles)}{more} "
                f"of {source.name}."
            )


def _excluded_notes(base: Source, head: Source, sides: Pair) -> Iterator[str]:
    for source, side in zip((base, head), sides, strict=True):
        untried = side.untried(side.designed)
        if untried:
            yield f"{words.plural(untried, 'planned run')} of {source.name} not made."
    counts = [side.excluded.height for side in sides]
    if any(counts):
        yield (
            f"Runs excluded on evidence independent of their numbers: {counts[0]} of {base.name}, "
            f"{counts[1]} of {head.name}."
        )
