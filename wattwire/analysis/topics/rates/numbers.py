"""Compute the rates of each treatment: offered by each sender and in total, sent, and delivered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from wattwire.analysis.dataset import Evidence, all_levels, by_treatment, levels_of
from wattwire.model.deployment import deployment_of_run, has_replies
from wattwire.model.derived import column, known_mean

CALLS, MESSAGES, BOTH = "calls", "messages", "both"
DELIVERED = "rate_hz_delivered"


@dataclass(frozen=True)
class TreatmentRates:
    """Rates of a treatment, as means over its runs. A rate is None if it is unknown.

    `each_hz` is offered by each sender, and the other rates are those of all senders. `window_s` is
    the span to which the rates refer.
    """

    treatment: tuple[str, ...]
    runs: int
    senders: int
    each_hz: float | None
    offered_hz: float | None
    sent_hz: float | None
    delivered_hz: float | None
    window_s: float | None


@dataclass(frozen=True)
class Rates:
    """The rates of all treatments. `kind` states what is delivered: CALLS, MESSAGES or BOTH."""

    treatments: tuple[TreatmentRates, ...] = ()
    kind: str = MESSAGES


def rates(evidence: Evidence) -> Rates:
    """Return the rates of each treatment with valid runs; none for campaigns without messages."""
    if not evidence.has_messages:
        return Rates()
    groups = by_treatment(evidence, evidence.usable)
    treatments = (_of_treatment(evidence, key, frame) for key, frame in groups.items())
    return Rates(tuple(treatments), delivered_kind(evidence))


def delivered_kind(evidence: Evidence) -> str:
    """Return what the valid runs delivered: CALLS, MESSAGES or BOTH."""
    kinds = {has_replies(pattern) for pattern in levels_of(evidence.usable, "pattern")}
    return BOTH if len(kinds) > 1 else CALLS if kinds == {True} else MESSAGES


def delivered_hz(frame: pl.DataFrame) -> float | None:
    """Return the mean rate of delivery of the runs; None if it is unknown."""
    return known_mean(column(frame, DELIVERED))


def _of_treatment(evidence: Evidence, key: tuple[str, ...], frame: pl.DataFrame) -> TreatmentRates:
    document = evidence.runs[frame["run"][0]]
    return TreatmentRates(
        key,
        frame.height,
        sum(node.sends for node in deployment_of_run(document).nodes),
        _rate_hz(all_levels(document)),
        known_mean(column(frame, "rate_hz_offered")),
        known_mean(column(frame, "rate_hz_achieved")),
        delivered_hz(frame),
        known_mean(column(frame, "rate_window_s")),
    )


def _rate_hz(levels: Mapping[str, Any]) -> float | None:
    """Return the rate of each sender; None in a closed loop and with flows of their own rates."""
    if levels.get("loop") == "closed" or "flows" in levels:
        return None
    if levels.get("interval_s"):
        return 1.0 / float(levels["interval_s"])
    return float(levels["rate_hz"]) if levels.get("rate_hz") else None
