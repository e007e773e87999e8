"""Sentences for the methods section of a paper, derived from the campaign's records."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from wattwire import stats
from wattwire.analysis.answering.answer_types import Answer, Answers
from wattwire.analysis.answering.confidence import CONFIDENCE
from wattwire.analysis.dataset import Evidence, all_levels, grouped_factor, order_of
from wattwire.analysis.not_compared import FAILED_MAX
from wattwire.analysis.responses import resolve
from wattwire.analysis.topics.comparison.numbers import compare
from wattwire.analysis.topics.comparison.requested import Wanted
from wattwire.analysis.topics.comparison.variants import variants_of
from wattwire.analysis.topics.ranking.order import factors_of
from wattwire.analysis.topics.settling.numbers import rule
from wattwire.analysis.topics.stopping.numbers import stopping
from wattwire.model import words
from wattwire.model.derived import column
from wattwire.model.errors import UsageError
from wattwire.model.validity import VALIDITY
from wattwire.model.words import edited_words
from wattwire.report.topic_page import Sentences
from wattwire.report.words.design_part import requested_part
from wattwire.report.words.phrases import Phrase, Phrases, joined
from wattwire.stats.blocked import GROUPED

PHRASES = Phrases(
    "methods",
    {
        "edited": (
            "{edited} This text describes the factors, questions, margin and limits after the edit."
        ),
        "imported": "The data were imported from files that others recorded{source}.",
        "source": " ({source})",
        "imported_runs": "Of {runs:plural run} in the files, {used:count} are used.",
        "imported_runs_excluded": (
            "Of {runs:plural run} in the files, {used:count} are used; the others were excluded, "
            "each with a reason."
        ),
        # The machine.
        "machine": "All runs used wattwire {version} on {where}{details}.",
        "unknown_version": "of an unknown version",
        "one_machine": "one machine",
        "machines": "{hosts} machines",
        "machine_details": " ({details})",
        "machine_of": "{hosts:listed}: {details}",
        "logical_cpus": "{name}, {cpus} logical CPUs",
        "memory": "{memory_gib:.1f} GiB of memory",
        "kernel": "kernel {kernel}",
        "virtual": "a virtual machine",
        # The design.
        "factors": "The factors were {factors:listed}.",
        "factor": "{factor} ({levels})",
        "levels_and_more": "{levels} and {more} more",
        "fixed": "Fixed factors: {fixed}.",
        "level": "{factor} = {level}",
        "variant": "Variant {name} was run {changes}.",
        "variant_with": "with {levels}",
        "variant_of_commit": "with the cells of commit {commit}",
        "variant_of_own": "with its own cells",
        "variant_unchanged": "unchanged",
        "order": (
            "Each of {blocks:plural block} contained {share} of {treatments:plural treatment} "
            "once, in random order (seed {seed}){together}: {runs:plural run}."
        ),
        "each": "each",
        "some": "some",
        "levels_together": ", the levels of {factor} next to each other",
        "controls": (
            "In each block, one treatment was also measured under two labels (an A/A pair), and "
            "once with the sampler paused during the window."
        ),
        "part": "Only a part of the study's design was requested: {part}.",
        "not_run": "{treatments:plural treatment} could not be run ({reasons}).",
        # A run.
        "run": (
            "Each run began with a baseline of the machine without nodes and a baseline of the "
            "connected, silent nodes ({baseline_s:duration} each). Then all nodes sent from a "
            "common start time{window}; {warm_up}."
        ),
        "window": " for a window of {window_s:duration}",
        "calls_discarded": (
            "the first {calls:plural call} of each client, and all calls that began before the "
            "last client had made this number of calls, are discarded as warm-up from latency, CPU "
            "time, memory and energy, and from the message counts by which costs are divided"
        ),
        "time_discarded": (
            "its first {warm_up_s:duration} are discarded as warm-up from latency, CPU time, "
            "memory and energy, and from the message counts by which costs are divided"
        ),
        "none_discarded": "no warm-up was discarded",
        "warm_up_rule": "{rule}.",
        # Meters and quantities.
        "measured": "These series were read at up to {hz:g} Hz: {series}.",
        "estimated": ("These series were estimated at up to {hz:g} Hz: {series}."),
        "bounded": "Bounds of these series were read at up to {hz:g} Hz: {series}.",
        "meter": "{meter} ({quantities})",
        "energy": "Energy values come from {sources:listed}.",
        "no_energy": ("Energy was not measured, because no energy meter was available."),
        "libraries": "Libraries, as reported by the nodes: {libraries}.",
        # Excluded runs.
        "excluded_only": (
            "A run was excluded only on evidence independent of its response (load of other "
            "programs, time stolen by the hypervisor, stalls of the machine, failed "
            "counters){limits}."
        ),
        "validity_limits": "; limits that the study states: {limits}",
        "validity_limits_edited": "; limits that the edited study states: {limits}",
        "used": (
            "{used:count} of {runs:plural run} are used{excluded}; {repeats:plural attempt "
            "was/attempts were} repeats of excluded runs."
        ),
        "excluded_for": " (excluded for: {reasons})",
        "excluded_reason": "{reason} {runs}×",
        "untried": "{runs:plural planned run was/planned runs were} not executed.",
        "deliveries": (
            "Of {expected:count} expected deliveries, including the warm-up, {received:count} "
            "arrived, {failed:count} calls failed (ended with an error before their timeout) and "
            "{lost:count} were lost. Failed and lost calls count as infinite in latency quantiles. "
            "If a run of a treatment has no finite quantile, the model of that response excludes "
            "all runs of the treatment. If a run of a treatment failed or lost more than "
            "{failed_max:percent} of its calls, the treatment is excluded from the costs per "
            "message. Excluded levels have a reason in place of a number."
        ),
        # Statistics.
        "not_compared": "These data are not compared.",
        "unit": (
            "The experimental unit is the run: messages within a run add no degrees of freedom."
        ),
        "model": (
            "The logarithm of each run's {responses:listed} was modelled by least squares, with "
            "fixed effects of blocks and {terms}. The ratios are ratios of geometric means and "
            "have t intervals, with {error}."
        ),
        "error_treatments": (
            "a variance for each treatment and degrees of freedom by Welch and Satterthwaite"
        ),
        "error_blocks": (
            "the scatter of each ratio between blocks as the error, because levels of one factor "
            "were next to each other"
        ),
        "error_pooled": "an error pooled over all runs",
        "terms_treatments": "treatments",
        "terms_main_effects": "the factors' main effects",
        "differences": (
            "For responses with zero or negative values ({responses:listed}), levels were "
            "compared by the difference of means within blocks, or, if the response is no share "
            "and there were enough blocks, by the Hodges–Lehmann difference of the means of "
            "blocks, with limits by inversion of the rank test."
        ),
        "simultaneous": (
            "Intervals are simultaneous at {confidence:confidence} over a family of "
            "{family:plural answer} (Bonferroni; each at {level:confidence})."
        ),
        "by_ranks": (
            "The report also gives Hodges–Lehmann ratios over blocks, with limits by inversion "
            "of the signed-rank test at its exact level."
        ),
        "margin": (
            "A ratio is equivalent if its whole interval is within a margin of {percent:g} % "
            "{when}."
        ),
        "margin_frozen": "frozen in the study",
        "margin_edited": "stated by the edited study",
        "chosen_afterwards": "chosen after the data were recorded",
        "lowest": (
            "Multiple comparisons with the best (Hsu 1984; Bonferroni over comparisons and "
            "responses) determined the lowest alternative and its equivalents within the margin, "
            "simultaneously at {confidence:confidence}."
        ),
        "two_looks": (
            "Comparisons that were worse or undecided were measured in additional blocks. The "
            "error probability is split over three tests: the first blocks, all blocks, and the "
            "additional blocks."
        ),
        "limit": "Limit {when}: {response} {bounds}{unit}{where}.",
        "limit_where": " for {levels}",
        "limit_before": "stated before the runs",
        "limit_edited": "of the edited study",
        # Variants.
        "compared": (
            "Variants were compared by treatment ({method}). A variant is worse if the whole "
            "interval is beyond a margin of {margin:margin} ({interval})."
        ),
        "single_interval": "t interval at {level:confidence}",
        "joint_intervals": (
            "{intervals:plural interval}{looks}, simultaneous at {confidence:confidence}; "
            "Bonferroni, each at {level:confidence}"
        ),
        "looks": ", {looks} tests of each",
    },
)

STOPPING, SETTLING = Sentences("stopping"), Sentences("settling")
MACHINE_FACTS = ("cpu_name", "cpus", "memory_total", "operating_system", "kernel", "virtualisation")
GIB = 1 << 30
LEVELS_MAX = 8
STUDY = "study.json"
BOOT_GAP_S = 30.0
"""Minimum time between two boots, in seconds. A smaller difference is an adjustment of the wall
clock.
"""


def methods(evidence: Evidence, answers: Answers) -> list[str]:
    """Return sentences on machine, design, runs, meters, exclusions and statistics."""
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
    """Yield a notice if the study or plan was edited after the campaign began."""
    if evidence.edited:
        yield PHRASES("edited", edited=edited_words(evidence.edited))


def _imported(evidence: Evidence, answers: Answers) -> Iterator[str]:
    source = evidence.study.source
    yield PHRASES("imported", source=PHRASES("source", source=source) if source else "")
    held, used = evidence.attempts.height, evidence.usable.height
    yield PHRASES(
        "imported_runs_excluded" if used < held else "imported_runs", runs=held, used=used
    )
    yield from statistics(evidence, answers)


def is_virtual(facts: Mapping[str, Any]) -> bool:
    """Return whether the facts describe a virtual machine."""
    return facts.get("virtualisation") not in (None, "none", "")


def facts_of(evidence: Evidence) -> dict[str, Any]:
    """Return the facts about the first host by key. The result is empty for imported data."""
    for host in evidence.reader.machine.get("hosts", {}).values():
        return _facts(host)
    return {}


def _facts(host: Mapping[str, Any]) -> dict[str, Any]:
    return {str(fact["key"]): fact.get("value") for fact in host.get("facts", [])}


def _machine(evidence: Evidence) -> Iterator[str]:
    hosts = evidence.reader.machine.get("hosts", {})
    names_of_boot: dict[str, list[str]] = {}
    for name, host in hosts.items():
        names_of_boot.setdefault(str(host.get("boot", name)), []).append(name)
    described = [(names, _details(_facts(hosts[names[0]]))) for names in names_of_boot.values()]
    details = joined((text for _, text in described), "; ")
    if len(described) > 1:
        parts = [PHRASES("machine_of", hosts=names, details=text) for names, text in described]
        details = joined(parts, "; ")
    versions = evidence.reader.machine.get("versions") or {}
    count = len(described)
    yield PHRASES(
        "machine",
        version=versions.get("wattwire", PHRASES("unknown_version")),
        where=PHRASES("one_machine") if count == 1 else PHRASES("machines", hosts=count),
        details=PHRASES("machine_details", details=details) if details else "",
    )


def _details(facts: Mapping[str, Any]) -> Phrase:
    """Return the processor, memory, system and kernel of a machine, as far as they are known."""
    details = []
    if facts.get("cpu_name"):
        cpus, name = facts.get("cpus"), str(facts["cpu_name"])
        details.append(PHRASES("logical_cpus", name=name, cpus=cpus) if cpus else name)
    if isinstance(facts.get("memory_total"), int):
        details.append(PHRASES("memory", memory_gib=facts["memory_total"] / GIB))
    details += [str(facts[key]) for key in ("operating_system",) if facts.get(key)]
    details += [PHRASES("kernel", kernel=facts["kernel"])] if facts.get("kernel") else []
    details += [PHRASES("virtual")] if is_virtual(facts) else []
    return joined(details, ", ")


def _design(evidence: Evidence) -> Iterator[str]:
    plan = evidence.study.plan
    factors = [
        PHRASES("factor", factor=words.factor_title(name), levels=_levels(evidence, name))
        for name in evidence.factors
        if len(evidence.factors[name]) > 1
    ]
    treatments = {str(sorted(all_levels(entry).items(), key=str)) for entry in evidence.designed}
    if factors:
        yield PHRASES("factors", factors=factors)
    fixed = evidence.study.fixed
    if fixed:
        yield PHRASES("fixed", fixed=_named_levels(sorted(fixed.items())))
    yield from _variants(evidence)
    blocks = len({entry["block"] for entry in evidence.designed})
    is_complete = len(evidence.designed) == blocks * len(treatments)
    together = Phrase()
    if grouped := grouped_factor(evidence):
        together = PHRASES("levels_together", factor=words.factor_title(grouped))
    yield PHRASES(
        "order",
        blocks=blocks,
        share=PHRASES("each" if is_complete else "some"),
        treatments=len(treatments),
        seed=plan.seed,
        together=together,
        runs=len(evidence.designed),
    )
    stopped = stopping(evidence)
    if stopped.target:
        yield STOPPING.sentence(stopped)
    if evidence.controls_planned:
        yield PHRASES("controls")
    if requested := requested_part(evidence):
        yield PHRASES("part", part=requested)
    skipped = len(evidence.skipped)
    if skipped:
        reasons = sorted({str(entry["skipped"]) for entry in evidence.skipped})
        yield PHRASES("not_run", treatments=skipped, reasons="; ".join(reasons))


def _levels(evidence: Evidence, factor: str) -> str:
    levels = [evidence.title(factor, level) for level in evidence.factors[factor]]
    more = len(levels) - LEVELS_MAX
    first_levels = ", ".join(levels[:LEVELS_MAX])
    return PHRASES("levels_and_more", levels=first_levels, more=more) if more > 0 else first_levels


def _named_levels(levels: Iterable[tuple[str, Any]]) -> Phrase:
    return joined(
        (PHRASES("level", factor=name, level=words.plain(level)) for name, level in levels), ", "
    )


def _variants(evidence: Evidence) -> Iterator[str]:
    for name, variant in evidence.study.variants.items():
        levels = _named_levels(variant.levels.items())
        changes = [PHRASES("variant_with", levels=levels)] if levels else []
        if variant.root and variant.commit:
            changes.append(PHRASES("variant_of_commit", commit=variant.commit))
        elif variant.root:
            changes.append(PHRASES("variant_of_own"))
        listed = words.listed([*changes]) or PHRASES("variant_unchanged")
        yield PHRASES("variant", name=name, changes=listed)


def _run(evidence: Evidence) -> Iterator[str]:
    plan = evidence.study.plan
    window_s = column(evidence.usable, "window_s")
    known_s = window_s[window_s == window_s]
    window = PHRASES("window", window_s=float(known_s.mean())) if known_s.size else ""
    if evidence.warmup_calls:
        discarded = PHRASES("calls_discarded", calls=evidence.warmup_calls)
    elif plan.warmup_s:
        discarded = PHRASES("time_discarded", warm_up_s=plan.warmup_s)
    else:
        discarded = PHRASES("none_discarded")
    yield PHRASES("run", baseline_s=plan.baseline_s, window=window, warm_up=discarded)
    if evidence.warm_up:
        yield PHRASES("warm_up_rule", rule=SETTLING.rule(rule(evidence.warm_up)))


def _deliveries(evidence: Evidence) -> Iterator[str]:
    """Yield a sentence on the delivery counts of valid runs, unless a count is unknown."""
    sums = {
        name: float(column(evidence.usable, name).sum())
        for name in ("expected", "received_unique", "failed", "lost")
    }
    if any(value != value for value in sums.values()) or not sums["expected"]:
        return
    yield PHRASES(
        "deliveries",
        expected=sums["expected"],
        received=sums["received_unique"],
        failed=sums["failed"],
        lost=sums["lost"],
        failed_max=FAILED_MAX,
    )


def _series(evidence: Evidence) -> dict[str, set[tuple[str, str]]]:
    """Return the (quantity, kind) pairs of the series in valid runs, by meter."""
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
            PHRASES(
                "meter",
                meter=meter,
                quantities=", ".join(sorted(q for q, k in quantities if k == kind)),
            )
            for meter, quantities in sorted(series.items())
            if any(k == kind for _, k in quantities)
        ]
        if not listed:
            continue
        names = joined(listed, "; ")
        if kind == "measured":
            yield PHRASES("measured", hz=hz, series=names)
        elif kind == "estimate":
            yield PHRASES("estimated", hz=hz, series=names)
        else:
            yield PHRASES("bounded", hz=hz, series=names)
    sources = sorted(
        set(evidence.usable["energy_source"].drop_nulls().to_list())
        if "energy_source" in evidence.usable.columns
        else set()
    )
    if sources:
        yield PHRASES("energy", sources=sources)
    elif series:
        yield PHRASES("no_energy")


def _libraries(evidence: Evidence) -> Iterator[str]:
    libraries: dict[str, None] = {}
    for run in evidence.runs.values():
        for node in run.get("nodes", []):
            library = (node.get("ready") or {}).get("library") or {}
            if library.get("name"):
                version = library.get("version") or "of unknown version"
                libraries[f"{node['cell']}: {library['name']} {version}"] = None
    if libraries:
        yield PHRASES("libraries", libraries="; ".join(sorted(libraries)))


def _verdicts(evidence: Evidence) -> Iterator[str]:
    table = evidence.study.stated(VALIDITY)
    limits = _named_levels(sorted(table.items()))
    if limits:
        is_edited = STUDY in evidence.edited
        limits = PHRASES(
            "validity_limits_edited" if is_edited else "validity_limits", limits=limits
        )
    yield PHRASES("excluded_only", limits=limits)
    tried = evidence.usable.height + evidence.excluded.height
    codes = Counter(
        reason["code"].replace("_", " ")
        for run in evidence.excluded["run"].to_list()
        for reason in {
            reason["code"]: reason for reason in evidence.runs[run].get("reasons", [])
        }.values()
    )
    reasons = [
        PHRASES("excluded_reason", reason=code, runs=number) for code, number in codes.most_common()
    ]
    yield PHRASES(
        "used",
        used=evidence.usable.height,
        runs=tried,
        excluded=PHRASES("excluded_for", reasons=joined(reasons, ", ")) if reasons else "",
        repeats=evidence.attempts.height - len(set(evidence.attempts["run"].to_list())),
    )
    untried = evidence.untried(evidence.designed)
    if untried:
        yield PHRASES("untried", runs=untried)


def statistics(evidence: Evidence, answers: Answers) -> Iterator[str]:
    """Yield sentences on the statistical method and the confidence levels."""
    computed, differences = answers.computed(), answers.differences()
    if not computed and not differences:
        yield PHRASES("not_compared")
        return
    yield joined([PHRASES("unit"), *_model(evidence, computed, differences)])
    yield PHRASES("simultaneous", confidence=CONFIDENCE, family=answers.family, level=answers.level)
    if any(isinstance(item.by_ranks, stats.Interval) for item in computed):
        yield PHRASES("by_ranks")
    if answers.margin is not None:
        when = _when_chosen(evidence, PHRASES("margin_frozen"), PHRASES("margin_edited"))
        yield PHRASES("margin", percent=100 * answers.margin, when=when)
    if factors_of(evidence):
        yield PHRASES("lowest", confidence=CONFIDENCE)
    if evidence.study.answers.looks > 1:
        yield PHRASES("two_looks")
    yield from _limits(evidence)


def _model(
    evidence: Evidence, computed: Sequence[Answer], differences: Sequence[Answer]
) -> Iterator[Phrase]:
    if computed:
        kinds = {item.result.kind for item in computed}  # type: ignore[union-attr]
        are_treatments = kinds == {"treatments"}
        error = PHRASES("error_treatments")
        if are_treatments and order_of(evidence) == GROUPED:
            error = PHRASES("error_blocks")
        elif not are_treatments and len(evidence.varied) > 1:
            error = PHRASES("error_pooled")
        yield PHRASES(
            "model",
            responses=list(dict.fromkeys(item.response.title for item in computed)),
            terms=PHRASES("terms_treatments" if are_treatments else "terms_main_effects"),
            error=error,
        )
    if differences:
        responses = list(dict.fromkeys(item.response.title for item in differences))
        yield PHRASES("differences", responses=responses)


def _limits(evidence: Evidence) -> Iterator[Phrase]:
    for limit in evidence.study.limits:
        bounds = ", ".join(
            f"{key} {bound:g}"
            for key, bound in (("max", limit.max), ("min", limit.min))
            if bound is not None
        )
        levels = _named_levels(limit.where.items())
        response = resolve(limit.response, evidence.described)
        yield PHRASES(
            "limit",
            when=_when_chosen(evidence, PHRASES("limit_before"), PHRASES("limit_edited")),
            response=response.title,
            bounds=bounds,
            unit=f" {response.unit}" if response.unit else "",
            where=PHRASES("limit_where", levels=levels) if levels else "",
        )


def _when_chosen(evidence: Evidence, registered: Phrase, edited: Phrase) -> Phrase:
    """Describe when a margin or limit was chosen.

    The result is `registered` only for an unedited study.
    """
    if evidence.imported:
        return PHRASES("chosen_afterwards")
    return edited if STUDY in evidence.edited else registered


def _comparison(evidence: Evidence) -> Iterator[str]:
    """Yield a sentence on the method that compares variants, if they can be compared."""
    try:
        comparison = compare(variants_of(evidence), Wanted())
    except UsageError:
        return
    interval = PHRASES("single_interval", level=comparison.level)
    if comparison.family * comparison.looks > 1:
        looks = PHRASES("looks", looks=comparison.looks) if comparison.looks > 1 else ""
        interval = PHRASES(
            "joint_intervals",
            intervals=comparison.family,
            looks=looks,
            confidence=CONFIDENCE,
            level=comparison.level,
        )
    yield PHRASES(
        "compared",
        method=Sentences("comparison").method(comparison),
        margin=comparison.margin,
        interval=interval,
    )


def boots(evidence: Evidence) -> int:
    """Return the number of boots during the runs, or 0 if the runs have no clocks."""
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
    """Return the UTC date of the end of the last run, or None if the runs have no clocks."""
    ends_ns = [
        int(clocks["realtime_ns"])
        for run in evidence.runs.values()
        for clocks in (run.get("clocks") or {}).get("end", [])
        if "realtime_ns" in clocks
    ]
    if not ends_ns:
        return None
    return datetime.datetime.fromtimestamp(max(ends_ns) / 1e9, datetime.timezone.utc).date()
