"""Estimate drift over the campaign, and effects of a run's position and of the preceding run."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from wattwire import stats
from wattwire.analysis import not_compared
from wattwire.analysis.answering.block_models import fit_of
from wattwire.analysis.answering.confidence import interval_confidence
from wattwire.analysis.dataset import SEPARATE, Evidence, all_levels, levels_of
from wattwire.analysis.responses import Response, measured, ordered_response, question_responses
from wattwire.model import words
from wattwire.model.derived import FloatArray, column
from wattwire.stats import Effect, Interval, NotComputable, TooFew

POSITIONS = 10
ALARM = 0.05


@dataclass(frozen=True)
class Drift:
    """The factor by which a response changes from the first to the last run of the campaign."""

    response: Response
    change: Interval | TooFew | NotComputable

    @property
    def is_detected(self) -> bool:
        """Whether the interval of the factor excludes 1."""
        return isinstance(self.change, Interval) and self.change.excludes(1.0)


@dataclass(frozen=True)
class OrderEffects:
    """The drifts that were detected, and carry-over effects on one response.

    `position` is the factor by which the response changes POSITIONS positions later in a block.
    `previous` is the effect of the primary factor's level in the previous run; it is None if
    `position` cannot be estimated. Both are None for imported runs, whose order is unknown.
    `has_attempts` is false if no attempt measured the response, so that no chart shows the order.
    """

    drifts: tuple[Drift, ...] = ()
    response_title: str = ""
    factor_title: str = ""
    position: Interval | TooFew | NotComputable | None = None
    previous: Effect | TooFew | NotComputable | None = None
    has_attempts: bool = False

    @property
    def position_matters(self) -> bool:
        """Whether the interval of the position's effect excludes 1."""
        return isinstance(self.position, Interval) and self.position.excludes(1.0)

    @property
    def previous_p(self) -> float | None:
        """The p value of the effect of the previous run; None if it was not estimated."""
        return self.previous.p if isinstance(self.previous, Effect) else None

    @property
    def previous_matters(self) -> bool:
        """Whether the effect of the previous run is significant at the level ALARM."""
        return self.previous_p is not None and self.previous_p < ALARM


def order_effects(evidence: Evidence) -> OrderEffects:
    """Return the drifts, and the carry-over effects on CPU time, or on latency without CPU time."""
    if evidence.imported:
        return OrderEffects()
    response = ordered_response(evidence)
    positions = column(evidence.usable, "position")
    fit = fit_of(evidence, evidence.usable, response, positions)
    confidence = interval_confidence(evidence)
    slope = stats.slope(fit, float(POSITIONS), confidence) if isinstance(fit, stats.Fit) else fit
    return OrderEffects(
        tuple(drift for drift in drifts(evidence) if drift.is_detected),
        response.title,
        words.factor_title(evidence.primary),
        slope,
        _predecessor(evidence, response) if isinstance(slope, Interval) else None,
        measured(evidence.attempts, response),
    )


def drifts(evidence: Evidence) -> list[Drift]:
    """Return the drift of each measured response of the questions.

    The intervals are simultaneous, so that 5 % of campaigns without drift have a false alarm.
    """
    responses = [r for r in question_responses(evidence) if measured(evidence.usable, r)]
    level = stats.bonferroni(interval_confidence(evidence), max(1, len(responses)))
    place_of = {entry["run"]: place for place, entry in enumerate(evidence.planned)}
    places = np.array([place_of.get(run, 0) for run in evidence.usable["run"].to_list()], float)
    levels = [levels_of(evidence.usable, name) for name in evidence.varied]
    treatments = [str(treatment) for treatment in zip(*levels, strict=True)] or [""] * places.size
    return [
        Drift(response, _drift(evidence, response, treatments, places, level))
        for response in responses
    ]


def _drift(
    evidence: Evidence,
    response: Response,
    treatments: list[str],
    places: FloatArray,
    level: float,
) -> Interval | TooFew | NotComputable:
    known = not_compared.compared(evidence, evidence.usable, response)
    labels = list(itertools.compress(treatments, known))
    values = column(evidence.usable, response.column)[known]
    return stats.drift(values, labels, places[known], level)


def _predecessor(evidence: Evidence, response: Response) -> Effect | TooFew | NotComputable:
    previous = _previous_levels(evidence)
    values = column(evidence.usable, response.column)
    known_indices = np.flatnonzero(not_compared.compared(evidence, evidence.usable, response))
    runs, blocks = evidence.usable["run"].to_list(), evidence.usable["block"].to_list()
    factors = {name: levels_of(evidence.usable, name) for name in evidence.varied}
    return stats.predecessor_effect(
        values[known_indices],
        [blocks[index] for index in known_indices],
        {
            name: [factor_levels[index] for index in known_indices]
            for name, factor_levels in factors.items()
        },
        [previous[runs[index]] for index in known_indices],
    )


def _previous_levels(evidence: Evidence) -> dict[str, str | None]:
    """Return run → the primary factor's level in the run before it.

    It is None for the first run, and after a run that counts system calls or records layers: such a
    run is slower than one of its level.
    """
    planned = {entry["run"] for entry in evidence.planned}
    levels: dict[str, str | None] = {}
    previous: str | None = None
    for entry in evidence.plan:
        if entry["run"] in planned:
            levels[entry["run"]] = previous
            previous = evidence.word(evidence.primary, all_levels(entry).get(evidence.primary))
        elif entry.get("control") in SEPARATE and not entry.get("skipped"):
            previous = None
    return levels
