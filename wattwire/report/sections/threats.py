"""Threats to validity, from the campaign's records: machine, boots, meters, limits, verdicts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from wattwire.analysis import settling
from wattwire.analysis.contrasts import Answers
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.error_checks import cautions
from wattwire.analysis.not_compared import FAILED_MAX
from wattwire.analysis.validity import CHANGED
from wattwire.model import words
from wattwire.model.derived import column
from wattwire.model.study import MeterUse
from wattwire.model.validity import OTHER_LOAD, VALIDITY
from wattwire.model.words import edited_words
from wattwire.report.findings import Findings
from wattwire.report.parts import Section, Text
from wattwire.report.sections import audit
from wattwire.report.sections.answers import gaps
from wattwire.report.sections.counts import failed_words
from wattwire.report.words.methods import boots, facts_of
from wattwire.store import ImportedCampaign

KINDS = ("construct", "internal", "conclusion", "external")
TITLES = {
    "construct": "Is it what it is called?",
    "internal": "Is it the treatment?",
    "conclusion": "Is it more than chance?",
    "external": "Does it hold elsewhere?",
}
FEW_BLOCKS = 5
OPEN_SHARE = 1.0
PERIODS_MIN = 20
"""In a window of fewer sampling periods, one period is more than 5 % of it."""
Threat = tuple[str, str]


def threats(evidence: Evidence, answers: Answers) -> list[Threat]:
    """Return (kind, sentence) of each threat to the validity of these numbers."""
    by_kind = {
        "construct": _construct(evidence),
        "internal": _internal(evidence),
        "conclusion": _conclusion(evidence, answers),
        "external": _external(evidence),
    }
    return [(kind, sentence) for kind in KINDS for sentence in by_kind[kind]]


def seen(evidence: Evidence, answers: Answers, found: Findings) -> list[Threat]:
    """Return (kind, sentence) of the page's warnings in other sections, for texts without them."""
    warnings = [
        ("internal", f"{finding.title} ({finding.standing}). {finding.cause}")
        for finding in found.found
    ]
    if isinstance(evidence.reader, ImportedCampaign):
        warnings += [
            (
                "internal",
                f"The data show about themselves{_rows(item)}: {item['title']}. {item['text']}",
            )
            for item in evidence.reader.findings()
        ]
    else:
        warnings += [
            ("internal", check.words) for check in audit.carry_over(evidence) if check.moved
        ]
    responses = [item.response for item in (*answers.computed(), *answers.differences())]
    sentences = [*gaps(evidence, answers), *cautions(evidence, list(dict.fromkeys(responses)))]
    return warnings + [("conclusion", sentence) for sentence in sentences]


def _rows(finding: Mapping[str, Any]) -> str:
    """Return the row count and the file of a finding's table, which a text has no room for."""
    count = len(finding["rows"])
    return f" ({words.plural(count, 'row')} in findings.json)" if count else ""


def section(evidence: Evidence, answers: Answers) -> Section:
    """Return the section on threats to validity: one paragraph per kind."""
    part = Section("threats", "Threats to validity")
    all_threats = threats(evidence, answers)
    for kind in KINDS:
        paragraph = " ".join(
            sentence for threat_kind, sentence in all_threats if threat_kind == kind
        )
        if paragraph:
            part.parts.append(Text(f"{TITLES[kind]} {paragraph}"))
    return part


def _construct(evidence: Evidence) -> Iterator[str]:
    """Yield threats to construct validity: whether a number measures what its name says."""
    if evidence.imported:
        yield (
            "These data were recorded by others and imported: how their clocks, meters and nodes "
            "worked is known only from what they wrote."
        )
        return
    yield _energy(evidence)
    failed = failed_words(evidence)
    if failed:
        yield (
            f"{failed} What a message costs is of answered and failed calls together; it is not "
            f"compared where more than {words.percent(FAILED_MAX)} of a run's calls failed or "
            "were lost."
        )
    yield from _short_windows(evidence)
    if len(evidence.reader.machine.get("hosts", {})) < 2:
        yield (
            "All nodes share one machine: no network between hosts is in these numbers, and a "
            "sender may pay for work done on behalf of its receiver (kernel network time stays "
            "with the process in whose context it ran)."
        )
    if "wire_bytes_per_message" in evidence.usable.columns:
        yield (
            "Bytes on the wire are those of the host's interfaces: other programs' traffic is in "
            "them."
        )


def _short_windows(evidence: Evidence) -> Iterator[str]:
    """Yield how much CPU time is interpolated, where the counted part begins between two readings.

    The window's own begin and end have readings; the end of a warm-up of calls has none.
    """
    windows_s = column(evidence.usable, "cost_window_s")
    windows_s = windows_s[windows_s > 0]
    period_s = 1.0 / float(evidence.study.get("meters", {}).get("tick_hz", MeterUse.tick_hz))
    if not evidence.warmup_calls or not windows_s.size or windows_s.min() >= PERIODS_MIN * period_s:
        return
    largest_share = min(1.0, period_s / float(windows_s.min()))
    yield (
        f"CPU time and memory are read every {words.number(period_s)} s, and what counts begins "
        "between two readings, where CPU time is taken to grow evenly: in the shortest window "
        f"({words.number(float(windows_s.min()))} s; the median is "
        f"{words.number(float(np.median(windows_s)))} s) up to {words.percent(largest_share)} of "
        "it rests on that. More calls in a run (count) make this smaller."
    )


def _energy(evidence: Evidence) -> str:
    frame = evidence.usable
    if np.isfinite(column(frame, "energy_message_j")).any():
        return (
            "Energy is a whole machine's, shared out by CPU time above the silent baseline: what "
            "memory, network and other devices drew goes to whoever computed."
        )
    sentence = "No counter of energy was readable, so nothing is said about measured energy"
    reasons = _absence_reasons(evidence)
    sentence += f" ({reasons})" if reasons else ""
    if any("energy_estimate" in name for name in frame.columns):
        sentence += (
            "; figures marked as estimates are CPU time times a constant and hold no information "
            "beyond CPU time"
        )
    return sentence + "."


def _absence_reasons(evidence: Evidence) -> str:
    """Return why the meters that could have measured energy were absent."""
    reasons = []
    for host in evidence.reader.machine.get("hosts", {}).values():
        for meter in host.get("meters", []):
            energies = [
                quantity for quantity in meter.get("quantities", []) if _is_energy(quantity)
            ]
            if meter.get("state") != "present" and energies:
                reasons.append(f"{meter['name']}: {meter.get('reason') or 'no reason given'}")
    return "; ".join(reasons)


def _is_energy(quantity: Any) -> bool:
    return isinstance(quantity, dict) and quantity.get("rank") is not None


def _internal(evidence: Evidence) -> Iterator[str]:
    """Yield threats to internal validity: whether the treatment caused the difference."""
    if evidence.imported:
        yield (
            "Their order of runs, their machine's other load and their exclusions were theirs to "
            "choose; no validity limit was checked."
        )
        return
    if is_virtual(facts_of(evidence)):
        steal = column(evidence.usable, "steal_share")
        steal = steal[np.isfinite(steal)]
        most_steal = words.percent(float(steal.max())) if steal.size else ""
        yield (
            "This was a virtual machine: frequency, neighbours and power states belong to its "
            "host; time that the hypervisor took was watched"
            + (f" (at most {most_steal} in a used run)." if most_steal else ".")
        )
    yield from _open_limits(evidence)
    yield from _unseen(evidence)
    yield from _unmeasured(evidence)
    if not evidence.controls_planned:
        yield (
            "No two identical labels were measured, so what chance and drift alone make of a "
            "difference is not known."
        )
    yield from _warm_up(evidence)
    excluded = evidence.excluded.height
    if excluded:
        runs = words.plural(excluded + evidence.usable.height, "run")
        were = "was" if excluded == 1 else "were"
        yield (
            f"{excluded} of {runs} {were} excluded; if what disturbed them goes with the "
            "treatment, those left are a selection (the answers with all of them stand beside)."
        )
    untried = evidence.untried(evidence.designed)
    if untried:
        are = "is" if untried == 1 else "are"
        yield f"{words.plural(untried, 'planned run')} of the design {are} not made yet."


def _unseen(evidence: Evidence) -> Iterator[str]:
    """Yield which processes of the machine no meter could see."""
    for host in evidence.reader.machine.get("hosts", {}).values():
        infos = (meter.get("info") or {} for meter in host.get("meters", []))
        for processes in filter(None, (info.get("unseen") for info in infos)):
            yield (
                f"Some processes of this machine cannot be seen ({processes}): their load is not "
                "in the evidence that excludes runs."
            )


def _unmeasured(evidence: Evidence) -> Iterator[str]:
    """Yield a sentence where no meter read other programs' load, so that it excludes no run."""
    attempts = evidence.attempts
    if attempts.height and not np.isfinite(column(attempts, OTHER_LOAD)).any():
        yield "No meter read the load of other programs, so no run was excluded for it."


def _warm_up(evidence: Evidence) -> Iterator[str]:
    """Yield what the warm-up excludes, and which questions that leaves open."""
    calls = evidence.warmup_calls
    if calls:
        yield (
            f"The first {words.plural(calls, 'call')} of each client were left out, and with them "
            "all that began before the last client had made so many: a stack that is used for "
            "fewer calls than that is as slow as it begins, which these figures do not show."
        )
        if unsettled_cells := settling.unsettled(evidence.warm_up):
            yield (
                f"In the settling runs {words.listed(unsettled_cells)} had not settled by then: "
                "the figures would be others after a longer warm-up."
            )
        if unknown_cells := settling.unknown(evidence.warm_up):
            yield (
                "Too few calls were answered in the settling runs of "
                f"{words.listed(unknown_cells)} to say how long a warm-up it takes there."
            )
    elif not evidence.study.get("plan", {}).get("warmup_s"):
        yield "No warm-up was cut off: the first messages of a run count as the rest."


def _open_limits(evidence: Evidence) -> Iterator[str]:
    limits = evidence.study.get(VALIDITY, {})
    if limits.get("look"):
        limits = {"other_load_max": 1.0, "steal_max": 1.0}
    watched = (
        ("other_load_max", "other_load_share", "load of other programs"),
        ("steal_max", "steal_share", "time taken by the hypervisor"),
    )
    for key, name, title in watched:
        if float(limits.get(key, 0.0)) < OPEN_SHARE:
            continue
        shares = column(evidence.usable, name)
        shares = shares[np.isfinite(shares)]
        sentence = f"The limit on {title} was open ({key} = {limits[key]:g})"
        if shares.size:
            sentence += (
                f"; the most in a used run was {words.percent(float(shares.max()))} of all cores"
            )
        yield sentence + "."


def _conclusion(evidence: Evidence, answers: Answers) -> Iterator[str]:
    """Yield threats to conclusion validity: whether a difference is more than chance."""
    if evidence.edited:
        yield (
            f"{edited_words(evidence.edited)} What is asked, the margin and the limits may have "
            "been chosen with the data in view."
        )
    if CHANGED in evidence.study:
        yield (
            f"Validity limits were changed after the measurement ({evidence.study[CHANGED]}): "
            "which runs count was chosen with the data in view, so every answer is exploratory."
        )
    blocks = answers.block_count
    if blocks == 1:
        yield (
            "One block: no interval per treatment; drift cannot be separated from the effects, and "
            "interactions between factors stand in the error."
        )
    elif 1 < blocks < FEW_BLOCKS:
        yield (
            f"With {words.plural(blocks, 'block')} only, intervals are wide, and whether errors "
            "are alike in all treatments cannot be checked."
        )
    computed = answers.computed()
    numbers = [*computed, *answers.differences()]
    if computed:
        yield (
            "The error is pooled over treatments on the log scale; a treatment that scatters more "
            "than the others gets an interval that is too narrow."
        )
    if answers.differences():
        responses = dict.fromkeys(item.response.title for item in answers.differences())
        yield (
            f"With runs that are zero or negative, {words.listed(list(responses))} is answered by "
            "differences: one number stands for treatments that may differ by different amounts."
        )
    if evidence.usable.height and not numbers:
        yield "No question of the study got a number; what is shown is exploratory."
    undecided = sum(answers.outcome(item) == "undecided" for item in numbers)
    if undecided:
        yield (
            f"In {undecided} of {words.plural(len(numbers), 'answer')} no difference was detected, "
            "which does not say that there is none."
        )
    unanswered = len(answers.items) - len(numbers)
    if unanswered and numbers:
        titles = [item.response.title for item in answers.items if item not in numbers]
        yield (
            f"Of {words.plural(len(answers.items), 'answer')} that the study asks for, "
            f"{unanswered} {'has' if unanswered == 1 else 'have'} no number "
            f"({words.listed(list(dict.fromkeys(titles)))})."
        )
    noise = max(answers.noise.values(), default=0.0)
    if noise:
        yield (
            f"Two identical labels may differ by up to {100 * math.expm1(noise):.2g} % (far end of "
            "their interval): no smaller effect is claimed."
        )
    yield (
        "Messages inside a run are not independent and add no degrees of freedom; the unit is the "
        "run."
    )


def _external(evidence: Evidence) -> Iterator[str]:
    """Yield threats to external validity: whether the results hold elsewhere."""
    if evidence.imported:
        yield (
            "On how many machines, boots and builds these data rest is not on record here; what "
            "holds elsewhere is not known from them."
        )
    else:
        count = boots(evidence)
        when = "one boot" if count == 1 else f"{count} boots" if count else "one occasion"
        yield (
            f"One machine, {when}, one build: nothing here speaks for others, and library versions "
            "are part of the result."
        )
    held = [name for name, levels in evidence.factors.items() if len(levels) == 1]
    fixed = {name: evidence.factors[name][0] for name in held}
    fixed |= {
        name: level for name, level in evidence.study.get("fixed", {}).items() if name != "literal"
    }
    if fixed:
        held_levels = [
            f"{words.factor_title(name)} ({evidence.title(name, level)})"
            for name, level in fixed.items()
        ]
        yield f"Held at one level, so that nothing is known of others: {words.listed(held_levels)}."


def is_virtual(facts: Mapping[str, Any]) -> bool:
    """Return whether the host was a virtual machine, according to its facts."""
    return facts.get("virtualisation") not in (None, "none", "")
