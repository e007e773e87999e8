"""Warn of settings of a study that are allowed but are probably mistakes."""

from __future__ import annotations

from collections.abc import Sequence

from wattwire.model.cores import CORES, SAME
from wattwire.model.deployment import (
    PATTERNS,
    node_count,
    sender_count,
    sender_rate_hz,
    without_send_time,
)
from wattwire.model.flows import flow_parts
from wattwire.model.questions import factors_without_question
from wattwire.model.study import Study
from wattwire.model.treatment import Treatment
from wattwire.model.variants import FACTOR
from wattwire.model.words import count, listed, plural

CALL_US_MIN = 20.0
"""Shortest typical duration (µs) of a call between two processes on one machine."""
SEND_US_MIN = 2.0
"""Shortest typical duration (µs) of sending a message, which needs at least a system call."""
PROCESSES_MANY = 100
"""Number of processes in a run above which a caution states it and a confirmation is required."""


def cautions(study: Study, treatments: Sequence[Treatment], cpus: int = 0) -> list[str]:
    """Return warnings to display before the study runs.

    `cpus` is the number of CPUs of the nodes' only host, or 0 if it is unknown.
    """
    return [
        *_no_question(study),
        *_averaged(study),
        *_without_latency(treatments),
        *_many_processes(treatments),
        *_impossible_rates(treatments),
        *_impossible_totals(treatments, cpus),
        *_ends_in_warm_up(study, treatments),
        *_without_effect(study, treatments),
    ]


def _no_question(study: Study) -> list[str]:
    # A page compares variants without a question, too.
    varied = [name for name, levels in study.factors.items() if len(levels) > 1]
    if study.questions or not varied or FACTOR in varied:
        return []
    return [
        "the study has no [[question]], so the page shows measurements without comparisons; "
        "a question has the keys text, factors and responses"
    ]


def _averaged(study: Study) -> list[str]:
    """Return a sentence on the varied factors that no question names."""
    factors = [name for name, levels in study.factors.items() if len(levels) > 1]
    averaged = factors_without_question(factors, study.questions, study.answers.best_of)
    if not study.questions or not averaged:
        return []
    return [
        f"no question names {listed(averaged)}, so an answer is an average over "
        "its levels; for an answer per level, add the factor to a [[question]]"
    ]


def _without_latency(treatments: Sequence[Treatment]) -> list[str]:
    """Return a sentence for each kind of message whose receivers know no send time."""
    parts = (part.treatment for treatment in treatments for part in flow_parts(treatment))
    reasons = dict.fromkeys(filter(None, map(without_send_time, parts)))
    return [f"{reason}; its latency stays unknown" for reason in reasons]


def _many_processes(treatments: Sequence[Treatment]) -> list[str]:
    most = max(map(node_count, treatments), default=0)
    if most <= PROCESSES_MANY:
        return []
    return [
        f"a run starts {count(most)} processes, which compete for the cores and the memory of this "
        "machine; the results describe this competition"
    ]


def _impossible_rates(treatments: Sequence[Treatment]) -> list[str]:
    """Return a sentence on the highest rate that leaves too little time for a message or call."""
    highest: dict[tuple[str, float, str], float] = {}
    for part in (part.treatment for t in treatments for part in flow_parts(t)):
        rate_hz, (action, limit_us) = sender_rate_hz(part), _shortest(part)
        if rate_hz is not None and rate_hz * limit_us > 1e6:
            key = (action, limit_us, PATTERNS[str(part["pattern"])].sender)
            highest[key] = max(rate_hz, highest.get(key, 0.0))
    return [
        f"rate_hz = {count(rate_hz)} per {sender} leaves {1e6 / rate_hz:.3g} µs, but {action} "
        f"usually takes {limit_us:g} µs or more, so the {sender} will be late; use a lower rate"
        for (action, limit_us, sender), rate_hz in highest.items()
    ]


def _impossible_totals(treatments: Sequence[Treatment], cpus: int) -> list[str]:
    """Return a sentence on the largest number of senders whose rates together exceed the CPUs.

    A single sender could keep each of these rates.
    """
    sentences: dict[int, str] = {}
    for part in (part.treatment for t in treatments for part in flow_parts(t)):
        rate_hz, (action, limit_us), senders = (
            sender_rate_hz(part), _shortest(part), sender_count(part)
        )  # fmt: skip
        available = 1 if part.get(CORES) == SAME else cpus
        if rate_hz is None or rate_hz * limit_us > 1e6 or not available:
            continue
        if senders * rate_hz * limit_us > available * 1e6:
            sender = PATTERNS[str(part["pattern"])].sender
            sentences[senders] = (
                f"{plural(senders, sender)} at rate_hz = {count(rate_hz)} each offer "
                f"{count(senders * rate_hz)} Hz in total, but {action} usually takes {limit_us:g} "
                f"µs or more and the nodes share {plural(available, 'CPU')}, so the senders will "
                "be late; use a lower rate or fewer senders"
            )
    return [sentences[max(sentences)]] if sentences else []


def _shortest(part: Treatment) -> tuple[str, float]:
    """Return what a sender does per message, and its shortest typical duration (µs)."""
    one_call = bool(PATTERNS[str(part["pattern"])].result) and int(part["outstanding_max"]) == 1
    return ("a call", CALL_US_MIN) if one_call else ("a send", SEND_US_MIN)


def _ends_in_warm_up(study: Study, treatments: Sequence[Treatment]) -> list[str]:
    counts = [int(treatment["count"]) for treatment in treatments if treatment["loop"] == "closed"]
    if not counts:
        return []
    fewest, warmup_s = min(counts), study.plan.warmup_s
    call_us = warmup_s * 1e6 / fewest
    if call_us <= CALL_US_MIN:
        return []
    return [
        f"in closed loop, {count(fewest)} calls of less than {count(call_us)} µs each end within "
        f"the discarded warm-up (plan.warmup_s = {warmup_s:g} s); increase count or reduce "
        "plan.warmup_s"
    ]


def _without_effect(study: Study, treatments: Sequence[Treatment]) -> list[str]:
    """Return a sentence for each setting of the study that has no effect."""
    sentences = []
    overlapping = any(int(treatment["outstanding_max"]) > 1 for treatment in treatments)
    if overlapping and all(treatment["loop"] == "closed" for treatment in treatments):
        sentences.append(
            "outstanding_max has no effect in closed loop, in which each client has one open call; "
            "to overlap calls, use more clients, or an open loop with a rate"
        )
    closed = bool(treatments) and all(treatment["loop"] == "closed" for treatment in treatments)
    if closed and "duration_s" in study.stated("plan"):
        sentences.append(
            "plan.duration_s has no effect in closed loop, in which each client makes `count` "
            "calls; to change the window, set count"
        )
    rates = [name for name in ("rate_hz", "interval_s") if name in {*study.factors, *study.fixed}]
    if closed and rates:
        sentences.append(
            f"{rates[0]} has no effect in closed loop, in which each client calls again after its "
            'reply; delete it, or set loop = "open"'
        )
    if (
        "payload_bytes" in study.fixed
        and treatments
        and all(treatment["literal"] for treatment in treatments)
    ):
        sentences.append(
            f"payload_bytes has no effect, because literal {str(treatments[0]['literal'])!r} "
            'is the whole payload; literal = "" removes it'
        )
    return sentences
