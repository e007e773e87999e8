"""Derive threats to validity from the machine, boots, meters and verdicts of a campaign."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from wattwire.analysis.answering.answer_types import Answers
from wattwire.analysis.dataset import Evidence, held_levels
from wattwire.analysis.not_compared import FAILED_MAX
from wattwire.analysis.topics.answers.gaps import gaps_of
from wattwire.analysis.topics.findings.numbers import Findings
from wattwire.analysis.topics.loss.numbers import failed_calls
from wattwire.analysis.topics.placements.numbers import placements
from wattwire.analysis.topics.sensitivity.numbers import Sensitivity, answered_responses
from wattwire.analysis.topics.sensitivity.violations import violations
from wattwire.analysis.topics.settling.numbers import unknown_cells, unsettled_cells
from wattwire.model import words
from wattwire.model.derived import column
from wattwire.model.validity import OTHER_LOAD
from wattwire.model.words import edited_words
from wattwire.report.topic_page import Sentences, topic_page
from wattwire.report.words import carry_over
from wattwire.report.words.methods import boots, facts_of, is_virtual
from wattwire.report.words.phrases import Phrase, Phrases, joined
from wattwire.store import ImportedCampaign

ANSWERS, LOSS = Sentences("answers"), Sentences("loss")
FINDINGS = Sentences("findings")
PLACEMENTS = Sentences("placements")
REAL_TIME = "SCHED_FIFO"
"""The scheduler that the link emulator requests."""
NO_CGROUPS = "none"
"""The mode of an agent that cannot create control groups."""

PHRASES = Phrases(
    "threats",
    {
        "construct": "Do the numbers measure what their names claim?",
        "construct_imported": (
            "Others recorded these data, and only their documentation describes the clocks, "
            "meters and nodes."
        ),
        "energy_attributed": (
            "Energy is measured for the whole machine and attributed by CPU time above the silent "
            "baseline, so each value also includes energy of memory, network and other devices."
        ),
        "no_energy": (
            "No energy counter was readable, so there is no measured energy{reasons}{estimates}."
        ),
        "no_energy_reasons": " ({reasons})",
        "absent_meter": "{meter}: {reason}",
        "no_reason": "no reason given",
        "estimates": (
            ". Values marked as estimates are CPU time multiplied by a constant and add no "
            "information to CPU time"
        ),
        "failed_calls": (
            "{failed} Costs per message include answered and failed calls. These costs are not "
            "compared if more than {share_max:percent} of a run's calls failed or were lost."
        ),
        "interpolated": (
            "CPU time and memory are read every {period_s:number} s. The counted part of a window "
            "begins between two readings, so the CPU time at its beginning is interpolated "
            "linearly. In the shortest window ({shortest_s:number} s; the median is "
            "{median_s:number} s), up to {share:percent} of the CPU time is interpolated. More "
            "calls in a run (count) reduce this share."
        ),
        "one_host": (
            "All nodes share one machine, so these numbers exclude the network between hosts. A "
            "sender's CPU time may include work for its receiver, because the kernel charges "
            "network processing to the process in whose context it runs."
        ),
        "wire_bytes": (
            "Bytes on the wire are counted at the host's interfaces and include other programs' "
            "traffic."
        ),
        "internal": "Does the treatment cause the difference?",
        "internal_imported": (
            "The authors of the data determined run order, machine load and exclusions. No "
            "validity limit was checked."
        ),
        "shared_connection": (
            "The ssh connection to host {host} passes the measured network. In the window, "
            "wattwire sends no requests and no heartbeats there. The connection carried at most "
            "{sent} sent and {received} received bytes per window ({counted})."
        ),
        "of_ssh": "counted at the socket of ssh",
        "of_protocol": "counted before ssh encrypts them, because its socket was not readable",
        "no_real_time": (
            "In {runs:plural run}, the link emulator lacked the permission for SCHED_FIFO and had "
            "the scheduler {scheduler}. Other programs on its CPU can therefore delay its frames."
        ),
        "no_cgroups": (
            "wattwire could not create control groups on {host}, so the CPU time of child "
            "processes that start and end between two readings has a resolution of 10 ms until "
            "their node ends."
        ),
        "virtual": (
            "This is a virtual machine. Its host controls the CPU frequency, the power states and "
            "which other virtual machines share the hardware. Steal time was monitored{most}."
        ),
        "most_steal": " (at most {share:percent} in a valid run)",
        "limit_disabled": "The limit on {quantity} was disabled ({key} = {limit:g}){most}.",
        "other_load": "load of other programs",
        "steal": "time stolen by the hypervisor",
        "most_used": "; the maximum in a valid run was {share:percent} of all cores",
        "unseen": (
            "The meters cannot read some processes of this machine ({processes}), so the "
            "validity limits ignore their load."
        ),
        "load_unmeasured": (
            "No meter measured the load of other programs, so this load excluded no run."
        ),
        "no_controls": (
            "There are no A/A control runs, so the size of the differences that chance and drift "
            "alone produce is unknown."
        ),
        "warm_up_calls": (
            "The discarded warm-up consists of {calls:plural call} of each client and of every "
            "call that began before the last client had made this number of calls. These results "
            "do not describe a stack's first calls."
        ),
        "unsettled": (
            "In the settling runs, {cells:listed} had not reached steady state after that number "
            "of calls. A longer warm-up would change their results."
        ),
        "settling_unknown": (
            "The settling runs of {cells:listed} have too few answered calls to determine a "
            "warm-up."
        ),
        "start_included": "The window of a command includes its start.",
        "no_warm_up": (
            "No warm-up was discarded, so the results include the first messages of each run."
        ),
        "one_excluded": (
            "{excluded} of {runs:plural run} was excluded; if the disturbance correlates with the "
            "treatment, the remaining runs are a biased sample (the answers also give results with "
            "all runs)."
        ),
        "excluded": (
            "{excluded} of {runs:plural run} were excluded; if the disturbance correlates with the "
            "treatment, the remaining runs are a biased sample (the answers also give results with "
            "all runs)."
        ),
        "untried": (
            "{runs:plural planned run of the design is/planned runs of the design are} missing."
        ),
        "conclusion": "Is the difference more than chance?",
        "edited": (
            "{edited} The questions, the margin and the limits may have been chosen with knowledge "
            "of the data."
        ),
        "limits_changed": (
            "Validity limits were changed after the measurement ({changes}), when the data were "
            "known, so every answer is exploratory."
        ),
        "one_block": (
            "One block gives no interval per treatment and cannot separate drift from the "
            "effects. Interactions between factors are part of the error."
        ),
        "few_blocks": (
            "With only {blocks:plural block}, intervals are wide, and the assumption that blocks "
            "are independent cannot be checked."
        ),
        "independent_blocks": (
            "Intervals assume independent blocks: a drift that changes only some treatments makes "
            "their intervals too narrow."
        ),
        "differences": (
            "Comparisons of {responses:listed} use differences, because the values of some runs "
            "are zero or negative. One number then summarises treatments whose differences may "
            "have different sizes."
        ),
        "no_number": "No question of the study has a numeric answer; all results are exploratory.",
        "undecided": (
            "In {undecided} of {answers:plural answer}, no difference was detected, which does "
            "not show that there is none."
        ),
        "one_unanswered": (
            "Of {answers:plural answer} that the study requests, {unanswered} has no number "
            "({responses:listed})."
        ),
        "unanswered": (
            "Of {answers:plural answer} that the study requests, {unanswered} have no number "
            "({responses:listed})."
        ),
        "noise": (
            "The results of one treatment under two labels may differ by up to {share:percent} "
            "(the far end of the interval of B / A). No smaller effect is claimed."
        ),
        "messages": (
            "Messages within a run are not independent and add no degrees of freedom. The "
            "experimental unit is the run."
        ),
        "external": "Do the results apply elsewhere?",
        "external_imported": (
            "The data do not record the number of machines, boots and builds, so it is "
            "unknown whether the results apply elsewhere."
        ),
        "one_machine": (
            "All results come from one machine, {occasions} and one build. They do not extend to "
            "other machines, occasions or builds, and they depend on the versions of the "
            "libraries."
        ),
        "one_boot": "one boot",
        "boots": "{boots} boots",
        "one_occasion": "one occasion",
        "held": (
            "The study holds these factors at one level and does not test other levels: "
            "{factors:listed}."
        ),
        "held_factor": "{factor} ({level})",
        # For texts without the other sections of the page.
        "data_remark": "Remark about the data{rows}: {title}. {text}",
        "remark_rows": " ({rows:plural row} in remarks.json)",
    },
)

KINDS = ("construct", "internal", "conclusion", "external")
TITLES = {
    "construct": PHRASES("construct"),
    "internal": PHRASES("internal"),
    "conclusion": PHRASES("conclusion"),
    "external": PHRASES("external"),
}
FEW_BLOCKS = 5
OPEN_SHARE = 1.0
PERIODS_MIN = 20
"""Minimum number of sampling periods per window. With fewer, one period exceeds 5 % of the window.
"""
Threat = tuple[str, str]


def threats(evidence: Evidence, answers: Answers) -> list[Threat]:
    """Return the threats to the validity of the results, as (kind, sentence)."""
    by_kind = {
        "construct": _construct(evidence),
        "internal": _internal(evidence),
        "conclusion": _conclusion(evidence, answers),
        "external": _external(evidence),
    }
    return [(kind, sentence) for kind in KINDS for sentence in by_kind[kind]]


def seen(evidence: Evidence, answers: Answers, findings: Findings) -> list[Threat]:
    """Return the warnings of other sections of the page, as (kind, sentence)."""
    warnings: list[Threat] = [("internal", FINDINGS.threat(found)) for found in findings.found]
    if isinstance(evidence.reader, ImportedCampaign):
        warnings += [
            (
                "internal",
                PHRASES("data_remark", rows=_rows(item), title=item["title"], text=item["text"]),
            )
            for item in evidence.reader.remarks()
        ]
    else:
        warnings += [("internal", sentence) for sentence in carry_over.warnings(evidence)]
    violated = violations(evidence, answered_responses(answers))
    gaps = gaps_of(evidence, answers)
    sentences = [
        *map(ANSWERS.ended_runs, gaps.ended),
        *map(ANSWERS.runs_without, gaps.without),
        *map(ANSWERS.fewer_combinations, gaps.fewer),
        *topic_page("sensitivity", Sensitivity(violated)).texts,
    ]
    return warnings + [("conclusion", sentence) for sentence in sentences]


def _rows(finding: Mapping[str, Any]) -> str:
    """Describe the number of rows in a remark's table, which texts omit."""
    count = len(finding["rows"])
    return PHRASES("remark_rows", rows=count) if count else ""


def _construct(evidence: Evidence) -> Iterator[Phrase]:
    """Yield threats to construct validity, where a number may not measure the named quantity."""
    if evidence.imported:
        yield PHRASES("construct_imported")
        return
    yield _energy(evidence)
    failed = LOSS.calls_failed(failed_calls(evidence))
    if failed:
        yield PHRASES("failed_calls", failed=failed, share_max=FAILED_MAX)
    yield from _short_windows(evidence)
    # A command need not have nodes or messages, so nothing is known of its network.
    if evidence.study.request is not None:
        return
    if not any(len(run.get("hosts", {})) > 1 for run in evidence.runs.values()):
        yield PHRASES("one_host")
    if "wire_bytes_per_message" in evidence.usable.columns:
        yield PHRASES("wire_bytes")


def _short_windows(evidence: Evidence) -> Iterator[Phrase]:
    """Yield a sentence on interpolated CPU time if the measured part begins between readings.

    There are readings at the beginning and at the end of the window, but not at the end of a
    warm-up in calls.
    """
    windows_s = column(evidence.usable, "cost_window_s")
    windows_s = windows_s[windows_s > 0]
    period_s = 1.0 / evidence.study.meters.tick_hz
    if not evidence.warmup_calls or not windows_s.size or windows_s.min() >= PERIODS_MIN * period_s:
        return
    yield PHRASES(
        "interpolated",
        period_s=period_s,
        shortest_s=float(windows_s.min()),
        median_s=float(np.median(windows_s)),
        share=min(1.0, period_s / float(windows_s.min())),
    )


def _energy(evidence: Evidence) -> Phrase:
    frame = evidence.usable
    if np.isfinite(column(frame, "energy_message_j")).any():
        return PHRASES("energy_attributed")
    reasons = _absence_reasons(evidence)
    has_estimates = any("energy_estimate" in name for name in frame.columns)
    return PHRASES(
        "no_energy",
        reasons=PHRASES("no_energy_reasons", reasons=reasons) if reasons else "",
        estimates=PHRASES("estimates") if has_estimates else "",
    )


def _absence_reasons(evidence: Evidence) -> Phrase:
    """Return the reasons for the absence of energy meters."""
    reasons = []
    for host in evidence.reader.machine.get("hosts", {}).values():
        for meter in host.get("meters", []):
            energies = [
                quantity for quantity in meter.get("quantities", []) if _is_energy(quantity)
            ]
            if meter.get("state") != "present" and energies:
                reason = meter.get("reason") or PHRASES("no_reason")
                reasons.append(PHRASES("absent_meter", meter=meter["name"], reason=reason))
    return joined(reasons, "; ")


def _is_energy(quantity: Any) -> bool:
    return isinstance(quantity, dict) and quantity.get("rank") is not None


def _shared_connections(evidence: Evidence) -> Iterator[Phrase]:
    """Yield the most bytes that each connection over the measured network had in a window."""
    counts: dict[tuple[str, str], list[Mapping[str, int]]] = {}
    for run in evidence.usable["run"].to_list():
        for host, entry in (evidence.runs[run].get("hosts") or {}).items():
            if counted := entry.get("management"):
                place = "ssh" if "ssh" in counted else "protocol"
                counts.setdefault((host, place), []).append(counted[place])
    for (host, place), traffic in sorted(counts.items()):
        sent, received = (
            words.number(max(count[key] for count in traffic))
            for key in ("sent_bytes", "received_bytes")
        )
        counted = PHRASES("of_ssh") if place == "ssh" else PHRASES("of_protocol")
        yield PHRASES("shared_connection", host=host, sent=sent, received=received, counted=counted)


def _missing_permissions(evidence: Evidence) -> Iterator[Phrase]:
    """Yield what wattwire lacked the permission for: SCHED_FIFO of the emulator, and cgroups."""
    schedulers = [evidence.runs[run].get("link_scheduler") for run in evidence.usable["run"]]
    for scheduler in sorted({name for name in schedulers if name} - {REAL_TIME}):
        yield PHRASES("no_real_time", runs=schedulers.count(scheduler), scheduler=scheduler)
    for host, entry in evidence.reader.machine.get("hosts", {}).items():
        if (entry.get("cgroup") or {}).get("rung") == NO_CGROUPS:
            yield PHRASES("no_cgroups", host=host)


def _internal(evidence: Evidence) -> Iterator[str]:
    """Yield threats to internal validity, where a difference may have another cause."""
    if evidence.imported:
        yield PHRASES("internal_imported")
        return
    yield from _shared_connections(evidence)
    yield from _missing_permissions(evidence)
    if is_virtual(facts_of(evidence)):
        steal = column(evidence.usable, "steal_share")
        steal = steal[np.isfinite(steal)]
        most = PHRASES("most_steal", share=float(steal.max())) if steal.size else ""
        yield PHRASES("virtual", most=most)
    yield from _open_limits(evidence)
    yield from _unseen(evidence)
    yield from _unmeasured(evidence)
    yield from _placements(evidence)
    if not evidence.controls_planned:
        yield PHRASES("no_controls")
    yield from _warm_up(evidence)
    excluded = evidence.excluded.height
    if excluded:
        yield PHRASES(
            "one_excluded" if excluded == 1 else "excluded",
            excluded=excluded,
            runs=excluded + evidence.usable.height,
        )
    untried = evidence.untried(evidence.designed)
    if untried:
        yield PHRASES("untried", runs=untried)


def _placements(evidence: Evidence) -> Iterator[str]:
    result = placements(evidence)
    yield from map(PLACEMENTS.apart, result.apart)
    yield from filter(None, [PLACEMENTS.more(result)])
    yield from map(PLACEMENTS.two_modes, result.modes)
    yield from map(PLACEMENTS.restricted, result.restrictions)


def _unseen(evidence: Evidence) -> Iterator[Phrase]:
    """Yield a sentence on processes of the machine that no meter can read."""
    for host in evidence.reader.machine.get("hosts", {}).values():
        infos = (meter.get("info") or {} for meter in host.get("meters", []))
        for processes in filter(None, (info.get("unseen") for info in infos)):
            yield PHRASES("unseen", processes=processes)


def _unmeasured(evidence: Evidence) -> Iterator[Phrase]:
    """Yield a sentence if no meter read the load of other programs."""
    attempts = evidence.attempts
    if attempts.height and not np.isfinite(column(attempts, OTHER_LOAD)).any():
        yield PHRASES("load_unmeasured")


def _warm_up(evidence: Evidence) -> Iterator[Phrase]:
    """Yield sentences on the warm-up and its uncertainty."""
    calls = evidence.warmup_calls
    if calls:
        yield PHRASES("warm_up_calls", calls=calls)
        if unsettled := unsettled_cells(evidence.warm_up):
            yield PHRASES("unsettled", cells=unsettled)
        if unknown := unknown_cells(evidence.warm_up):
            yield PHRASES("settling_unknown", cells=unknown)
    elif evidence.study.request is not None:
        request = evidence.study.request
        if (request.command or evidence.study.variants) and not request.warms_up:
            yield PHRASES("start_included")
    elif not evidence.study.plan.warmup_s:
        yield PHRASES("no_warm_up")


def _open_limits(evidence: Evidence) -> Iterator[Phrase]:
    limits = evidence.study.validity
    if limits.look:
        limits = replace(limits, other_load_max=1.0, steal_max=1.0)
    watched = (
        ("other_load_max", "other_load_share", PHRASES("other_load")),
        ("steal_max", "steal_share", PHRASES("steal")),
    )
    for key, name, quantity in watched:
        limit = float(getattr(limits, key))
        if limit < OPEN_SHARE:
            continue
        shares = column(evidence.usable, name)
        shares = shares[np.isfinite(shares)]
        most = PHRASES("most_used", share=float(shares.max())) if shares.size else ""
        yield PHRASES("limit_disabled", quantity=quantity, key=key, limit=limit, most=most)


def _conclusion(evidence: Evidence, answers: Answers) -> Iterator[Phrase]:
    """Yield threats to conclusion validity, where a difference may be due to chance."""
    if evidence.edited:
        yield PHRASES("edited", edited=edited_words(evidence.edited))
    if evidence.validity_changed:
        yield PHRASES("limits_changed", changes=evidence.validity_changed)
    blocks = answers.block_count
    if blocks == 1:
        yield PHRASES("one_block")
    elif 1 < blocks < FEW_BLOCKS:
        yield PHRASES("few_blocks", blocks=blocks)
    computed = answers.computed()
    numbers = [*computed, *answers.differences()]
    if computed:
        yield PHRASES("independent_blocks")
    if answers.differences():
        responses = dict.fromkeys(item.response.title for item in answers.differences())
        yield PHRASES("differences", responses=responses)
    if evidence.usable.height and not numbers:
        yield PHRASES("no_number")
    undecided = sum(answers.outcome(item) == "undecided" for item in numbers)
    if undecided:
        yield PHRASES("undecided", undecided=undecided, answers=len(numbers))
    unanswered = len(answers.items) - len(numbers)
    if unanswered and numbers:
        titles = [item.response.title for item in answers.items if item not in numbers]
        yield PHRASES(
            "one_unanswered" if unanswered == 1 else "unanswered",
            answers=len(answers.items),
            unanswered=unanswered,
            responses=list(dict.fromkeys(titles)),
        )
    noise = max(answers.noise.values(), default=0.0)
    if noise:
        yield PHRASES("noise", share=math.expm1(noise))
    yield PHRASES("messages")


def _external(evidence: Evidence) -> Iterator[Phrase]:
    """Yield threats to external validity, where the results may not apply elsewhere."""
    if evidence.imported:
        yield PHRASES("external_imported")
    else:
        count = boots(evidence)
        occasions = (
            PHRASES("boots", boots=count)
            if count > 1
            else PHRASES("one_boot" if count else "one_occasion")
        )
        yield PHRASES("one_machine", occasions=occasions)
    held = [name for name, levels in evidence.factors.items() if len(levels) == 1]
    fixed = {name: evidence.factors[name][0] for name in held}
    fixed |= {name: level for name, level in held_levels(evidence).items() if name != "literal"}
    if fixed:
        titled_levels = [
            PHRASES(
                "held_factor", factor=words.factor_title(name), level=evidence.title(name, level)
            )
            for name, level in fixed.items()
        ]
        yield PHRASES("held", factors=titled_levels)
