"""Warn of settings of a study that are allowed but are probably mistakes."""

from __future__ import annotations

from collections.abc import Sequence

from wattwire.model.deployment import without_send_time
from wattwire.model.flows import flow_parts
from wattwire.model.study import Study
from wattwire.model.treatment import Treatment
from wattwire.model.words import listed

CALL_US_MIN = 20.0
"""Shortest typical duration (µs) of a call between two processes on one machine."""


def cautions(study: Study, treatments: Sequence[Treatment]) -> list[str]:
    """Return warnings to display before the study runs."""
    return [
        *_no_question(study),
        *_averaged(study),
        *_without_latency(treatments),
        *_ends_in_warm_up(study, treatments),
        *_without_effect(study, treatments),
    ]


def _no_question(study: Study) -> list[str]:
    if study.questions or all(len(levels) < 2 for levels in study.factors.values()):
        return []
    return [
        "the study has no [[question]], so the page shows measurements without comparisons; "
        "a question has the keys text, factors and responses"
    ]


def _averaged(study: Study) -> list[str]:
    """Return a sentence on the varied factors that no question names."""
    named = {*study.answers.best_of, *(f for question in study.questions for f in question.factors)}
    factors = [name for name, levels in study.factors.items() if len(levels) > 1]
    averaged = [name for name in factors if name not in named]
    if not study.questions or not averaged:
        return []
    return [
        f"no question names {listed(averaged)}, so every answer is an average over their levels; "
        "for an answer per level, add them to the factors of a [[question]]"
    ]


def _without_latency(treatments: Sequence[Treatment]) -> list[str]:
    """Return a sentence for each kind of message whose receivers know no send time."""
    parts = (part.treatment for treatment in treatments for part in flow_parts(treatment))
    reasons = dict.fromkeys(filter(None, map(without_send_time, parts)))
    return [f"{reason}; its latency stays unknown" for reason in reasons]


def _ends_in_warm_up(study: Study, treatments: Sequence[Treatment]) -> list[str]:
    counts = [int(treatment["count"]) for treatment in treatments if treatment["loop"] == "closed"]
    if not counts:
        return []
    fewest, warmup_s = min(counts), study.plan.warmup_s
    call_us = warmup_s * 1e6 / fewest
    if call_us <= CALL_US_MIN:
        return []
    return [
        f"in closed loop, {fewest:,} calls of less than {call_us:,.0f} µs each end within "
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
