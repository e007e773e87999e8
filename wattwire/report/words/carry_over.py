"""Sentences on drift over the campaign, and on carry-over effects between runs."""

from __future__ import annotations

from wattwire.analysis.carry_over import CarryOver, carry_over, drifts
from wattwire.analysis.dataset import Evidence
from wattwire.model import words
from wattwire.report.words.phrases import Phrase, Phrases
from wattwire.stats import Effect, Interval

PHRASES = Phrases(
    "carry_over",
    {
        "drift": (
            "Drift: from the first to the last run, the {response} changed by a factor of "
            "{change:number 3} (interval {low:number 3} to {high:number 3}). Random order balances "
            "the drift between treatments."
        ),
        "position_unknown": (
            "Carry-over: the effect of the position in a block cannot be estimated ({reason})."
        ),
        "position": (
            "Carry-over: per ten positions in a block, the {response} changes by a factor of "
            "{change:number 4} (95 % interval {low:number 4} to {high:number 4}, over all "
            "treatments). The interval {verdict} 1."
        ),
        "excludes": "excludes",
        "includes": "includes",
        "previous_unknown": (
            "The effect of the previous run's {factor} cannot be estimated ({reason})."
        ),
        "previous_affects": "The previous run's {factor} affects the {response} ({p:p}).",
        "previous_no_effect": (
            "The previous run's {factor} has no detectable effect on the {response} ({p:p})."
        ),
    },
)


def sentences(evidence: Evidence) -> list[Phrase]:
    """Return sentences on the effects of a run's position and of the previous run."""
    effects = carry_over(evidence)
    return [*_drifts(evidence), _position(effects), *_previous(evidence, effects)]


def warnings(evidence: Evidence) -> list[Phrase]:
    """Return sentences on the effects that influence the response."""
    effects = carry_over(evidence)
    return [
        *_drifts(evidence),
        *([_position(effects)] if effects.position_matters else []),
        *(_previous(evidence, effects) if effects.previous_matters else []),
    ]


def _drifts(evidence: Evidence) -> list[Phrase]:
    """Return a sentence per response that drifts over the campaign."""
    return [
        PHRASES(
            "drift",
            response=drift.response.title,
            change=drift.change.estimate,
            low=drift.change.low,
            high=drift.change.high,
        )
        for drift in drifts(evidence)
        if isinstance(drift.change, Interval) and drift.is_detected
    ]


def _position(effects: CarryOver) -> Phrase:
    if not isinstance(effects.position, Interval):
        return PHRASES("position_unknown", reason=effects.position)
    return PHRASES(
        "position",
        response=effects.response.title,
        change=effects.position.estimate,
        low=effects.position.low,
        high=effects.position.high,
        verdict=PHRASES("excludes" if effects.position_matters else "includes"),
    )


def _previous(evidence: Evidence, effects: CarryOver) -> list[Phrase]:
    if effects.previous is None:
        return []
    factor = words.factor_title(evidence.primary)
    if not isinstance(effects.previous, Effect):
        return [PHRASES("previous_unknown", factor=factor, reason=effects.previous)]
    return [
        PHRASES(
            "previous_affects" if effects.previous_matters else "previous_no_effect",
            factor=factor,
            response=effects.response.title,
            p=effects.previous.p,
        )
    ]
