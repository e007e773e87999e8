"""Threats to validity, from the campaign's records: machine, boots, meters, limits, verdicts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from wattwire.analysis import settling
from wattwire.analysis.contrasts import Answers
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.error_checks import cautions
from wattwire.analysis.not_compared import FAILED_MAX
from wattwire.model import words
from wattwire.model.derived import column
from wattwire.model.validity import OTHER_LOAD
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
    "construct": "Do the numbers measure what their names say?",
    "internal": "Does the treatment cause the difference?",
    "conclusion": "Is the difference more than chance?",
    "external": "Do the results hold elsewhere?",
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
        for finding in found.items
    ]
    if isinstance(evidence.reader, ImportedCampaign):
        warnings += [
            (
                "internal",
                f"Remark about the data{_rows(item)}: {item['title']}. {item['text']}",
            )
            for item in evidence.reader.remarks()
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
    return f" ({words.plural(count, 'row')} in remarks.json)" if count else ""


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
            "These data were recorded by others and imported: their clocks, meters and nodes are "
            "known only from their documentation."
        )
        return
    yield _energy(evidence)
    failed = failed_words(evidence)
    if failed:
        yield (
            f"{failed} Costs per message include answered and failed calls; they are not "
            f"compared where more than {words.percent(FAILED_MAX)} of a run's calls failed or "
            "were lost."
        )
    yield from _short_windows(evidence)
    if len(evidence.reader.machine.get("hosts", {})) < 2:
        yield (
            "All nodes share one machine: these numbers exclude the network between hosts, and a "
            "sender's CPU time may include work for its receiver (the kernel charges network time "
            "to the process in whose context it runs)."
        )
    if "wire_bytes_per_message" in evidence.usable.columns:
        yield (
            "Bytes on the wire are those of the host's interfaces and include other programs' "
            "traffic."
        )


def _short_windows(evidence: Evidence) -> Iterator[str]:
    """Yield how much CPU time is interpolated, where the counted part begins between two readings.

    The window's own begin and end have readings; the end of a warm-up of calls has none.
    """
    windows_s = column(evidence.usable, "cost_window_s")
    windows_s = windows_s[windows_s > 0]
    period_s = 1.0 / evidence.study.meters.tick_hz
    if not evidence.warmup_calls or not windows_s.size or windows_s.min() >= PERIODS_MIN * period_s:
        return
    largest_share = min(1.0, period_s / float(windows_s.min()))
    yield (
        f"CPU time and memory are read every {words.number(period_s)} s. The counted part begins "
        "between two readings, where CPU time is interpolated linearly: in the shortest window "
        f"({words.number(float(windows_s.min()))} s; the median is "
        f"{words.number(float(np.median(windows_s)))} s) up to {words.percent(largest_share)} of "
        "it is interpolated. More calls in a run (count) reduce this share."
    )


def _energy(evidence: Evidence) -> str:
    frame = evidence.usable
    if np.isfinite(column(frame, "energy_message_j")).any():
        return (
            "Energy is measured for the whole machine and attributed by CPU time above the silent "
            "baseline: the processes that used CPU time are charged for memory, network and other "
            "devices as well."
        )
    sentence = "No energy counter was readable, so there are no results on measured energy"
    reasons = _absence_reasons(evidence)
    sentence += f" ({reasons})" if reasons else ""
    if any("energy_estimate" in name for name in frame.columns):
        sentence += (
            "; figures marked as estimates are CPU time times a constant and contain no "
            "information beyond CPU time"
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
            "Run order, other load on the machine and exclusions were the authors' choice; no "
            "validity limit was checked."
        )
        return
    if is_virtual(facts_of(evidence)):
        steal = column(evidence.usable, "steal_share")
        steal = steal[np.isfinite(steal)]
        most_steal = words.percent(float(steal.max())) if steal.size else ""
        yield (
            "This is a virtual machine: its host controls frequency, neighbours and power states; "
            "steal time was monitored"
            + (f" (at most {most_steal} in a used run)." if most_steal else ".")
        )
    yield from _open_limits(evidence)
    yield from _unseen(evidence)
    yield from _unmeasured(evidence)
    if not evidence.controls_planned:
        yield (
            "No A/A control runs were measured, so the difference that chance and drift alone "
            "produce is unknown."
        )
    yield from _warm_up(evidence)
    excluded = evidence.excluded.height
    if excluded:
        runs = words.plural(excluded + evidence.usable.height, "run")
        were = "was" if excluded == 1 else "were"
        yield (
            f"{excluded} of {runs} {were} excluded; if the disturbance correlates with the "
            "treatment, the remaining runs are a biased selection (the answers also give results "
            "with all runs)."
        )
    untried = evidence.untried(evidence.designed)
    if untried:
        are = "is" if untried == 1 else "are"
        yield f"{words.plural(untried, 'planned run')} of the design {are} still missing."


def _unseen(evidence: Evidence) -> Iterator[str]:
    """Yield which processes of the machine no meter could see."""
    for host in evidence.reader.machine.get("hosts", {}).values():
        infos = (meter.get("info") or {} for meter in host.get("meters", []))
        for processes in filter(None, (info.get("unseen") for info in infos)):
            yield (
                f"The meters cannot see some processes of this machine ({processes}): the checks "
                "that exclude runs miss their load."
            )


def _unmeasured(evidence: Evidence) -> Iterator[str]:
    """Yield a sentence where no meter read other programs' load, so that it excludes no run."""
    attempts = evidence.attempts
    if attempts.height and not np.isfinite(column(attempts, OTHER_LOAD)).any():
        yield "No meter measured the load of other programs, so no run was excluded for it."


def _warm_up(evidence: Evidence) -> Iterator[str]:
    """Yield what the warm-up excludes, and which questions that leaves open."""
    calls = evidence.warmup_calls
    if calls:
        yield (
            f"The first {words.plural(calls, 'call')} of each client are discarded warm-up, and "
            "with them every call that began before the last client had made as many. These "
            "figures do not show how fast a stack is in its first calls."
        )
        if unsettled_cells := settling.unsettled(evidence.warm_up):
            yield (
                f"In the settling runs, {words.listed(unsettled_cells)} had not reached steady "
                "state by then: a longer warm-up would change the figures."
            )
        if unknown_cells := settling.unknown(evidence.warm_up):
            yield (
                f"The settling runs of {words.listed(unknown_cells)} have too few answered calls "
                "to determine the required warm-up."
            )
    elif not evidence.study.plan.warmup_s:
        yield "No warm-up was discarded: the first messages of a run count like the rest."


def _open_limits(evidence: Evidence) -> Iterator[str]:
    limits = evidence.study.validity
    if limits.look:
        limits = replace(limits, other_load_max=1.0, steal_max=1.0)
    watched = (
        ("other_load_max", "other_load_share", "load of other programs"),
        ("steal_max", "steal_share", "time taken by the hypervisor"),
    )
    for key, name, title in watched:
        limit = float(getattr(limits, key))
        if limit < OPEN_SHARE:
            continue
        shares = column(evidence.usable, name)
        shares = shares[np.isfinite(shares)]
        sentence = f"The limit on {title} was disabled ({key} = {limit:g})"
        if shares.size:
            sentence += (
                f"; the maximum in a used run was {words.percent(float(shares.max()))} of all cores"
            )
        yield sentence + "."


def _conclusion(evidence: Evidence, answers: Answers) -> Iterator[str]:
    """Yield threats to conclusion validity: whether a difference is more than chance."""
    if evidence.edited:
        yield (
            f"{edited_words(evidence.edited)} The questions, the margin and the limits may have "
            "been chosen after seeing the data."
        )
    if evidence.validity_changed:
        yield (
            f"Validity limits were changed after the measurement ({evidence.validity_changed}): "
            "they were chosen after seeing the data, so every answer is exploratory."
        )
    blocks = answers.block_count
    if blocks == 1:
        yield (
            "One block: no interval per treatment; drift cannot be separated from the effects, and "
            "interactions between factors are part of the error."
        )
    elif 1 < blocks < FEW_BLOCKS:
        yield (
            f"With only {words.plural(blocks, 'block')}, intervals are wide, and it cannot be "
            "checked whether all treatments have the same error variance."
        )
    computed = answers.computed()
    numbers = [*computed, *answers.differences()]
    if computed:
        yield (
            "The error is pooled over treatments on the log scale; a treatment with more variance "
            "than the others gets an interval that is too narrow."
        )
    if answers.differences():
        responses = dict.fromkeys(item.response.title for item in answers.differences())
        yield (
            f"Some runs are zero or negative, so {words.listed(list(responses))} is compared by "
            "differences: one number represents treatments that may differ by different amounts."
        )
    if evidence.usable.height and not numbers:
        yield "No question of the study has a numeric answer; all results are exploratory."
    undecided = sum(answers.outcome(item) == "undecided" for item in numbers)
    if undecided:
        yield (
            f"In {undecided} of {words.plural(len(numbers), 'answer')} no difference was detected, "
            "which does not show that there is none."
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
            f"Two identical labels may differ by up to {words.percent(math.expm1(noise))} (far end "
            "of their interval): no smaller effect is claimed."
        )
    yield (
        "Messages inside a run are not independent and add no degrees of freedom; the unit is the "
        "run."
    )


def _external(evidence: Evidence) -> Iterator[str]:
    """Yield threats to external validity: whether the results hold elsewhere."""
    if evidence.imported:
        yield (
            "The number of machines, boots and builds behind these data is not recorded, so it is "
            "unknown whether the results hold elsewhere."
        )
    else:
        count = boots(evidence)
        when = "one boot" if count == 1 else f"{count} boots" if count else "one occasion"
        yield (
            f"One machine, {when}, one build: the results do not extend to others, and library "
            "versions are part of the result."
        )
    held = [name for name, levels in evidence.factors.items() if len(levels) == 1]
    fixed = {name: evidence.factors[name][0] for name in held}
    fixed |= {name: level for name, level in evidence.study.fixed.items() if name != "literal"}
    if fixed:
        held_levels = [
            f"{words.factor_title(name)} ({evidence.title(name, level)})"
            for name, level in fixed.items()
        ]
        yield f"Held at one level, with other levels untested: {words.listed(held_levels)}."


def is_virtual(facts: Mapping[str, Any]) -> bool:
    """Return whether the host was a virtual machine, according to its facts."""
    return facts.get("virtualisation") not in (None, "none", "")
