"""The sentences of a paper's methods section, from what the campaign recorded."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from wattwire import stats
from wattwire.analysis.best_alternative import factors_of
from wattwire.analysis.comparing.common import Wanted
from wattwire.analysis.comparing.decision import margin_words
from wattwire.analysis.comparing.within_campaign import compare_inside
from wattwire.analysis.contrasts import CONFIDENCE, Answers
from wattwire.analysis.dataset import Evidence, all_levels
from wattwire.analysis.not_compared import FAILED_MAX
from wattwire.analysis.responses import resolve
from wattwire.model import words
from wattwire.model.derived import column
from wattwire.model.errors import UsageError
from wattwire.model.validity import VALIDITY
from wattwire.model.words import edited_words
from wattwire.report.words import stopping, warm_up

MACHINE_FACTS = ("cpu_name", "cpus", "memory_total", "operating_system", "kernel", "virtualisation")
GIB = 1 << 30
LEVELS_MAX = 8
STUDY = "study.json"
BOOT_GAP_S = 30.0
"""Shortest time between two boots; a smaller difference is an adjusted wall clock."""
CONTROL_TEXT = (
    "Each block also held one treatment under two identical labels and once with the sampler "
    "silent in the window."
)


def methods(evidence: Evidence, answers: Answers) -> list[str]:
    """Return sentences on machine, design, runs, meters, exclusions and statistics, in order."""
    if evidence.imported:
        return list(_imported(evidence, answers))
    return [
        *_edited(evidence),
        *_machine(evidence),
        *_design(evidence),
        *_run(evidence),
        *_meters(evidence),
        *_libraries(evidence),
        *_verdicts(evidence),
        *_deliveries(evidence),
        *statistics(evidence, answers),
        *_comparison(evidence),
    ]


def _edited(evidence: Evidence) -> Iterator[str]:
    """Yield that the sentences describe documents that were edited after the campaign began."""
    if evidence.edited:
        yield (
            f"{edited_words(evidence.edited)} The factors, questions, margin and limits described "
            "here are those after the edit."
        )


def _imported(evidence: Evidence, answers: Answers) -> Iterator[str]:
    source = evidence.study.source
    yield (
        "The data were imported from files recorded by others"
        + (f" ({source})." if source else ".")
    )
    held, used = evidence.attempts.height, evidence.usable.height
    excluded = "; the others were excluded, each with a reason" if used < held else ""
    of_all = f"Of {words.plural(held, 'run')} in the files"
    yield f"{of_all}, {words.count(used)} are used{excluded}."
    yield from statistics(evidence, answers)


def facts_of(evidence: Evidence) -> dict[str, Any]:
    """Return every fact of the first host, by key; empty for imported data."""
    for host in evidence.reader.machine.get("hosts", {}).values():
        return {str(fact["key"]): fact.get("value") for fact in host.get("facts", [])}
    return {}


def _machine(evidence: Evidence) -> Iterator[str]:
    facts = facts_of(evidence)
    details = []
    if facts.get("cpu_name"):
        cpus = facts.get("cpus") or facts.get("cores")
        details.append(f"{facts['cpu_name']}" + (f", {cpus} logical CPUs" if cpus else ""))
    if isinstance(facts.get("memory_total"), int):
        details.append(f"{facts['memory_total'] / GIB:.1f} GiB of memory")
    details += [str(facts[key]) for key in ("operating_system",) if facts.get(key)]
    details += [f"kernel {facts['kernel']}"] if facts.get("kernel") else []
    is_virtual = facts.get("virtualisation") not in (None, "none", "")
    details += ["a virtual machine"] if is_virtual else []
    versions = evidence.reader.machine.get("versions") or {}
    tool = f"wattwire {versions.get('wattwire', 'of an unknown version')}"
    hosts = len(evidence.reader.machine.get("hosts", {}))
    where = "one machine" if hosts == 1 else f"{hosts} machines"
    yield f"All runs were made with {tool} on {where}" + (
        f" ({', '.join(details)})." if details else "."
    )


def _design(evidence: Evidence) -> Iterator[str]:
    plan = evidence.study.plan
    factors = [
        f"{words.factor_title(name)} ({_levels(evidence, name)})"
        for name in evidence.factors
        if len(evidence.factors[name]) > 1
    ]
    treatments = {str(sorted(all_levels(entry).items(), key=str)) for entry in evidence.designed}
    if factors:
        yield f"The factors were {words.listed(factors)}."
    fixed = evidence.study.fixed
    if fixed:
        held = ", ".join(f"{name} = {words.plain(level)}" for name, level in sorted(fixed.items()))
        yield f"Fixed factors: {held}."
    yield from _variants(evidence)
    blocks = len({entry["block"] for entry in evidence.designed})
    is_complete = len(evidence.designed) == blocks * len(treatments)
    order = (
        f"Each of {words.plural(blocks, 'block')} held {'each' if is_complete else 'some'} of "
        f"{words.plural(len(treatments), 'treatment')} once, in an order drawn at random (seed "
        f"{plan.seed})"
    )
    if plan.primary:
        order += f", the levels of {words.factor_title(plan.primary)} next to each other"
    yield order + f": {words.plural(len(evidence.designed), 'run')}."
    stopped = stopping.sentence(evidence)
    if stopped:
        yield stopped
    if evidence.controls_planned:
        yield CONTROL_TEXT
    if evidence.part:
        yield f"Only a part of the study's design was requested: {evidence.part}."
    skipped = len(evidence.skipped)
    if skipped:
        reasons = sorted({str(entry["skipped"]) for entry in evidence.skipped})
        yield f"{words.plural(skipped, 'treatment')} could not be run ({'; '.join(reasons)})."


def _levels(evidence: Evidence, factor: str) -> str:
    levels = [evidence.title(factor, level) for level in evidence.factors[factor]]
    more = len(levels) - LEVELS_MAX
    return ", ".join(levels[:LEVELS_MAX]) + (f" and {more} more" if more > 0 else "")


def _variants(evidence: Evidence) -> Iterator[str]:
    for name, variant in evidence.study.variants.items():
        levels = ", ".join(f"{key} = {words.plain(value)}" for key, value in variant.levels.items())
        changes = [f"with {levels}"] if levels else []
        commit = variant.commit
        source = f"with the cells of commit {commit}" if commit else "with its own cells"
        changes += [source] if variant.root else []
        yield f"Variant {name} was run {words.listed(changes) or 'unchanged'}."


def _run(evidence: Evidence) -> Iterator[str]:
    plan = evidence.study.plan
    window_s = column(evidence.usable, "window_s")
    known_s = window_s[window_s == window_s]
    sentence = (
        "Each run began with a baseline of the machine without nodes and one of the connected, "
        f"silent nodes ({words.duration(plan.baseline_s)} each), then all nodes sent from a "
        "common start time"
    )
    if known_s.size:
        sentence += f" for a window of {words.duration(float(known_s.mean()))}"
    left_out = (
        "are discarded as warm-up from latency, CPU time, memory, energy and the message counts "
        "that divide them"
    )
    warmup, calls = plan.warmup_s, evidence.warmup_calls
    if calls:
        each = words.plural(calls, "call")
        cut = (
            f"the first {each} of each client, and all calls that began before the last client had "
        )
        cut += f"made as many, {left_out}"
    else:
        by_time = f"its first {words.duration(warmup)} {left_out}"
        cut = by_time if warmup else "no warm-up was discarded"
    yield f"{sentence}; {cut}."
    if evidence.warm_up:
        yield f"{warm_up.ruled(evidence.warm_up)}."


def _deliveries(evidence: Evidence) -> Iterator[str]:
    """Yield how many deliveries of the usable runs arrived; nothing where a count is unknown."""
    sums = {
        name: float(column(evidence.usable, name).sum())
        for name in ("expected", "received_unique", "failed", "lost")
    }
    if any(value != value for value in sums.values()) or not sums["expected"]:
        return
    expected, received, failed, lost = (words.count(value) for value in sums.values())
    yield (
        f"Of {expected} expected deliveries, warm-up included, {received} arrived, {failed} calls "
        f"failed (ended with an error before their timeout) and {lost} were lost; failed and lost "
        "calls count as infinite in latency quantiles. A treatment with any run without a finite "
        "quantile is excluded, with all its runs, from that response's model. A treatment with any "
        f"run that failed or lost more than {words.percent(FAILED_MAX)} of its calls is excluded "
        "from the costs per message. The excluded levels have a reason in place of a number."
    )


def _series(evidence: Evidence) -> dict[str, set[tuple[str, str]]]:
    """Return the (quantity, kind) of each series that any usable run has, by meter."""
    by_meter: dict[str, set[tuple[str, str]]] = {}
    for run in evidence.usable["run"].to_list() if evidence.usable.height else []:
        for series in (evidence.runs[run].get("sampling") or {}).get("series", []):
            kind = str(series.get("kind", "measured"))
            by_meter.setdefault(str(series.get("meter")), set()).add(
                (str(series.get("quantity")), kind)
            )
    return by_meter


def _meters(evidence: Evidence) -> Iterator[str]:
    series = _series(evidence)
    hz = evidence.study.meters.tick_hz
    for kind in ("measured", "estimate", "bound"):
        listed = [
            f"{meter} ({', '.join(sorted(q for q, k in quantities if k == kind))})"
            for meter, quantities in sorted(series.items())
            if any(k == kind for _, k in quantities)
        ]
        if listed:
            verb = {"measured": "Read", "estimate": "Estimated", "bound": "Bounded"}[kind]
            yield f"{verb} at up to {hz:g} Hz: {'; '.join(listed)}."
    sources = sorted(
        set(evidence.usable["energy_source"].drop_nulls().to_list())
        if "energy_source" in evidence.usable.columns
        else set()
    )
    if sources:
        yield f"Energy is from {words.listed(sources)}."
    elif series:
        yield "Energy was not measured: there was no energy meter."


def _libraries(evidence: Evidence) -> Iterator[str]:
    libraries: dict[str, None] = {}
    for run in evidence.runs.values():
        for node in run.get("nodes", []):
            library = (node.get("ready") or {}).get("library") or {}
            if library.get("name"):
                version = library.get("version") or "of unknown version"
                libraries[f"{node['cell']}: {library['name']} {version}"] = None
    if libraries:
        yield f"Libraries, as reported by the nodes: {'; '.join(sorted(libraries))}."


def _verdicts(evidence: Evidence) -> Iterator[str]:
    table = evidence.study.stated(VALIDITY)
    limits = ", ".join(f"{key} = {words.plain(value)}" for key, value in sorted(table.items()))
    study = "edited study" if STUDY in evidence.edited else "study"
    yield (
        "A run was excluded only on evidence independent of its response (load of other programs, "
        "time taken by the hypervisor, stalls of the machine, counters that failed)"
        + (f"; limits that the {study} states: {limits}." if limits else ".")
    )
    tried = evidence.usable.height + evidence.excluded.height
    codes = Counter(
        reason["code"].replace("_", " ")
        for run in evidence.excluded["run"].to_list()
        for reason in {
            reason["code"]: reason for reason in evidence.runs[run].get("reasons", [])
        }.values()
    )
    sentence = f"{words.count(evidence.usable.height)} of {words.plural(tried, 'run')} are used"
    if codes:
        sentence += (
            " (excluded for: "
            + ", ".join(f"{code} {number}×" for code, number in codes.most_common())
            + ")"
        )
    extra = evidence.attempts.height - len(set(evidence.attempts["run"].to_list()))
    yield (
        sentence + f"; {words.plural(extra, 'attempt was', 'attempts were')} repeats of such runs."
    )
    untried = evidence.untried(evidence.designed)
    if untried:
        yield f"{words.plural(untried, 'planned run was', 'planned runs were')} never made."


def statistics(evidence: Evidence, answers: Answers) -> Iterator[str]:
    """Yield how the study's questions were answered, with the confidence levels in use."""
    computed, differences = answers.computed(), answers.differences()
    if not computed and not differences:
        yield "These data are not compared."
        return
    sentence = "A run is the experimental unit: messages inside a run add no degrees of freedom."
    if computed:
        titles = words.listed(list(dict.fromkeys(item.response.title for item in computed)))
        sentence += (
            f" The logarithm of each run's {titles} was modelled by least squares with fixed "
            f"effects of blocks and {_terms(computed)}, the error pooled; ratios are of geometric "
            "means with t intervals."
        )
    if differences:
        titles = words.listed(list(dict.fromkeys(item.response.title for item in differences)))
        sentence += (
            f" Where runs were zero or negative ({titles}), levels were compared by the "
            "Hodges–Lehmann difference of runs matched inside blocks, with limits by inversion of "
            "the rank test, or by the difference of means where these were too few."
        )
    yield sentence
    yield (
        f"Intervals are simultaneous at {words.confidence(CONFIDENCE)} over the family of "
        f"{answers.family} (Bonferroni; each at {words.confidence(answers.level)})."
    )
    if any(isinstance(item.by_ranks, stats.Interval) for item in computed):
        yield (
            "Hodges–Lehmann ratios over blocks are also given, with limits by inversion of the "
            "signed-rank test at its exact level."
        )
    if answers.margin is not None:
        chosen = _when_chosen(evidence, "frozen in the study", "stated by the edited study")
        yield (
            "A ratio is equivalent if its whole interval is within a margin of "
            f"{100 * answers.margin:g} % {chosen}."
        )
    if factors_of(evidence):
        yield (
            "The lowest alternative, and those equal to it within the margin, were determined by "
            "multiple comparisons with the best (Hsu 1984; Bonferroni over comparisons and "
            f"responses), together at {words.confidence(CONFIDENCE)}."
        )
    if evidence.study.answers.looks > 1:
        yield (
            "Comparisons that came out worse were measured in more blocks; the error is split over "
            "two looks."
        )
    for limit in evidence.study.limits:
        bounds = ", ".join(
            f"{key} {bound:g}"
            for key, bound in (("max", limit.max), ("min", limit.min))
            if bound is not None
        )
        where = ", ".join(
            f"{factor} = {words.plain(level)}" for factor, level in limit.where.items()
        )
        response = resolve(limit.response, evidence.described)
        title, unit = response.title, f" {response.unit}" if response.unit else ""
        when = _when_chosen(evidence, "stated before the runs", "of the edited study")
        yield f"Limit {when}: {title} {bounds}{unit}{f' where {where}' if where else ''}."


def _when_chosen(evidence: Evidence, registered: str, edited: str) -> str:
    """Return when a margin or a limit was chosen: `registered` only for a study without edits."""
    if evidence.imported:
        return "chosen after the data were recorded"
    return edited if STUDY in evidence.edited else registered


def _comparison(evidence: Evidence) -> Iterator[str]:
    """Yield how the variants were compared, where they can be."""
    try:
        comparison = compare_inside(evidence, Wanted())
    except UsageError:
        return
    level = f"t interval at {words.confidence(comparison.level)}"
    if comparison.family * comparison.looks > 1:
        intervals = words.plural(comparison.family, "interval")
        looks = f" over {comparison.looks} looks" if comparison.looks > 1 else ""
        level = (
            f"{intervals}{looks} together at {words.confidence(CONFIDENCE)}; Bonferroni, each at "
            f"{words.confidence(comparison.level)}"
        )
    yield (
        f"Variants were compared treatment by treatment ({comparison.method}); a variant is worse "
        f"if the whole interval is beyond a margin of {margin_words(comparison.margin)} ({level})."
    )


def _terms(computed: Sequence[Any]) -> str:
    kinds = {item.result.kind for item in computed}
    return "treatments" if kinds == {"treatments"} else "the factors' main effects"


def boots(evidence: Evidence) -> int:
    """Return in how many boots the runs were made, from their clocks; 0 without clocks."""
    boots_s = []
    for run in evidence.runs.values():
        for clocks in (run.get("clocks") or {}).get("begin", [])[:1]:
            if "boottime_ns" in clocks and "realtime_ns" in clocks:
                boots_s.append((clocks["realtime_ns"] - clocks["boottime_ns"]) / 1e9)
    boots_s.sort()
    gaps = sum(
        later - earlier > BOOT_GAP_S for earlier, later in zip(boots_s, boots_s[1:], strict=False)
    )
    return gaps + 1 if boots_s else 0


def measured_on(evidence: Evidence) -> datetime.date | None:
    """Return the day (UTC) when the last run ended, by its host's clock; None without a clock."""
    ends_ns = [
        int(clocks["realtime_ns"])
        for run in evidence.runs.values()
        for clocks in (run.get("clocks") or {}).get("end", [])
        if "realtime_ns" in clocks
    ]
    if not ends_ns:
        return None
    return datetime.datetime.fromtimestamp(max(ends_ns) / 1e9, datetime.timezone.utc).date()
