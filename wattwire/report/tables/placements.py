"""Build the table of the CPUs on which the nodes ran, and sentences on different placements."""

from __future__ import annotations

from collections.abc import Sequence

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.findings import placements
from wattwire.analysis.findings.placements import (
    BY_PLACEMENT,
    BY_TIME,
    COLUMNS,
    UNKNOWN,
    Modes,
    Placed,
    PlacedApart,
)
from wattwire.model.cores import CORES
from wattwire.model.cores.topology import FURTHER, NEARNESS, SAME_CPU, SHARED_CACHE, SIBLINGS
from wattwire.model.derived import column
from wattwire.report.parts import Column, Section, Table, Text
from wattwire.report.tables.factor_columns import factor_columns
from wattwire.report.words.phrases import Phrase, Phrases

PHRASES = Phrases(
    "placements",
    {
        "title": "Where the nodes ran",
        "table": "Shares of the time by the nearness of connected nodes",
        "note": (
            "Shares are means over the runs of a treatment, from samples of all threads; idle "
            "threads do not count. The wait for a CPU is the time for which runnable threads of "
            "the nodes waited, per message."
        ),
        "apart": (
            "{baseline} and {other} ran in different placements: their nodes {place} in "
            "{share:percent} and {other_share:percent} of the time. Part of their difference is "
            "therefore the scheduler's{remedy}."
        ),
        "more": ("{more:plural further comparison differs so/further comparisons differ so}."),
        "separates": "; --cores same,apart separates it (cores in a study)",
        "separated": "; the levels of cores in this study separate it",
        "separated_ratios": (
            ". {level} {verb} {ratios:listed} times the {response} of {baseline} "
            "({confidence:confidence} intervals)"
        ),
        "ratio_at": "{ratio:interval} ({cores})",
        "same_cpu": "shared a CPU",
        "siblings": "ran on hardware threads of one core",
        "shared_cache": "ran on different cores under one cache",
        "further": "ran on cores without a common cache",
        "modes": (
            "The runs of {treatment} have two modes, {low:count} and {high:count} runs, that "
            "differ by a factor of {ratio:number} in median latency. {cause}"
        ),
        "by_placement": "Their nodes ran in different placements.",
        "by_time": (
            "The modes follow each other in time and not the placement, as a change of the "
            "machine or of its host does."
        ),
        "unknown": "Neither the placement nor the order in time explains them.",
        "restricted": (
            "{host}A restriction from outside (taskset, a cpuset) left wattwire and the nodes "
            "{allowed:plural CPU} of {online}: {cpus:listed}. The scheduler and each level of "
            "cores had these alone."
        ),
        "of_host": "{host}: ",
        "the_treatment": "the only treatment",
    },
)
CAUSES = {
    BY_PLACEMENT: PHRASES("by_placement"),
    BY_TIME: PHRASES("by_time"),
    UNKNOWN: PHRASES("unknown"),
}
PLACES = {
    SAME_CPU: PHRASES("same_cpu"),
    SIBLINGS: PHRASES("siblings"),
    SHARED_CACHE: PHRASES("shared_cache"),
    FURTHER: PHRASES("further"),
}


def sentences(evidence: Evidence) -> list[Phrase]:
    """Return the sentences on treatments in different placements, which limit the answers."""
    apart = placements.placed_apart(evidence)
    first: dict[str, PlacedApart] = {}
    for pair in apart:
        first.setdefault(pair.factor, pair)
    lines = [_apart_words(evidence, pair) for pair in first.values()]
    more = len(apart) - len(lines)
    return [*lines, *([PHRASES("more", more=more)] if more else [])]


def restrictions(evidence: Evidence) -> list[Phrase]:
    """Return a sentence per machine on which wattwire could not use all CPUs."""
    machines = [
        machine
        for document in evidence.runs.values()
        for machine in (document.get("cores") or {}).get("machines", [])
    ]
    hosts = dict.fromkeys(machine["hosts"][0] for machine in machines)
    found = {
        (machine["hosts"][0], tuple(machine["allowed"])): len(machine["topology"])
        for machine in machines
        if len(machine["allowed"]) < len(machine["topology"])
    }
    return [
        PHRASES(
            "restricted",
            host=PHRASES("of_host", host=host) if len(hosts) > 1 else "",
            allowed=len(allowed),
            online=online,
            cpus=[str(cpu) for cpu in allowed],
        )
        for (host, allowed), online in found.items()
    ]


def mode_sentences(evidence: Evidence) -> list[Phrase]:
    """Return a sentence per treatment whose runs have two modes."""
    return [_modes_words(evidence, found) for found in placements.modes(evidence)]


def _name(evidence: Evidence, treatment: Sequence[str]) -> str:
    levels = dict(zip(evidence.varied, treatment, strict=True))
    return evidence.treatment_title(levels) or PHRASES("the_treatment")


def _level_names(evidence: Evidence, found: PlacedApart) -> list[str]:
    """Return the names of the baseline and of the other level."""
    position = evidence.varied.index(found.factor)
    return [evidence.title(found.factor, entry.treatment[position]) for entry in found.pairs[0]]


def _apart_words(evidence: Evidence, found: PlacedApart) -> Phrase:
    if len(found.pairs) > 1:
        baseline, other = _level_names(evidence, found)
    else:
        baseline, other = (_name(evidence, entry.treatment) for entry in found.pairs[0])
    return PHRASES(
        "apart",
        baseline=baseline,
        other=other,
        place=PLACES[NEARNESS[found.share]],
        share=found.shares[0],
        other_share=found.shares[1],
        remedy=_remedy(evidence, found),
    )


def _remedy(evidence: Evidence, apart: PlacedApart) -> Phrase:
    """Return the ratio in each placement if the study has several, otherwise how to measure it."""
    if CORES not in evidence.varied:
        return PHRASES("separates")
    found = placements.ratios_by_cores(evidence, apart)
    if found is None:
        return PHRASES("separated")
    response, ratios = found
    baseline, level = _level_names(evidence, apart)
    return PHRASES(
        "separated_ratios",
        response=response.title,
        verb=response.had,
        level=level,
        baseline=baseline,
        confidence=ratios[0][1].level,
        ratios=[PHRASES("ratio_at", ratio=ratio, cores=cores) for cores, ratio in ratios],
    )


def _modes_words(evidence: Evidence, found: Modes) -> Phrase:
    low, high = found.runs
    return PHRASES(
        "modes",
        treatment=_name(evidence, found.treatment),
        low=low,
        high=high,
        ratio=found.ratio,
        cause=CAUSES[found.cause],
    )


def section(evidence: Evidence) -> Section | None:
    """Return the section; None without readings of threads."""
    placed = placements.placed(evidence)
    if not placed:
        return None
    part = Section("placements", PHRASES("title"))
    texts = (*sentences(evidence), *mode_sentences(evidence), *restrictions(evidence))
    part.parts += [Text(text) for text in texts]
    part.parts.append(_table(evidence, placed))
    return part


def _table(evidence: Evidence, placed: Sequence[Placed]) -> Table:
    frames = placements.by_treatment(evidence, evidence.usable)
    rows = []
    for entry in placed:
        frame = frames[entry.treatment]
        waits_us, moves = (
            column(frame, name) for name in ("run_delay_us_per_message", "migrations_per_message")
        )
        rows.append(
            dict(zip(evidence.varied, entry.treatment, strict=True))
            | {name: float(share) for name, share in zip(COLUMNS, entry.mean, strict=True)}
            | {"wait_us": float(waits_us.mean()), "migrations": float(moves.mean())}
        )
    shown = [n for n in COLUMNS if n.endswith(SAME_CPU) or any(row[n] for row in rows)]
    return Table(
        "placements",
        PHRASES("table"),
        [
            *factor_columns(evidence),
            *(Column(name, f"{PLACES[name.removeprefix('ran_on_')]}, share") for name in shown),
            Column("wait_us", "wait for a CPU per message, µs", "measured"),
            Column("migrations", "migrations per message", "measured"),
        ],
        rows,
        PHRASES("note"),
    )
