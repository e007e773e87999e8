"""Compute the values of a single treatment and the properties of the page's title."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wattwire import stats
from wattwire.analysis import carried
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.topics.answers.numbers import AnsweredStudy
from wattwire.analysis.topics.rates.numbers import delivered_hz, delivered_kind
from wattwire.model.derived import after_warmup, column

MEDIAN, P99 = "latency_p50_us", "latency_p99_us"
FLOWS_CHARS_MAX = 400
"""Longest headline of a study with flows, three lines of the page."""
Latency = stats.Interval | stats.TooFew | float | None


@dataclass(frozen=True)
class SingleTreatment:
    """The values of the only treatment of a campaign, over its `runs` valid runs.

    A latency is a geometric mean over the runs (µs), with an interval from three runs on; None if
    no run has it. `delivered` is the kind of what is delivered at `per_s` per second.
    """

    title: str
    runs: int
    median_us: Latency
    p99_us: Latency
    lost_share: float
    per_s: float | None
    delivered: str


@dataclass(frozen=True)
class PageHeadline:
    """What the title states about no other topic, and which sentences it has.

    `edited` names the documents that were edited after the measurement. `has_single` is true if the
    values of the single treatment replace answers. A title of more than `chars_max` characters
    omits its last sentences. The title of a command has no sentences on messages.
    """

    edited: tuple[str, ...] = ()
    single: SingleTreatment | None = None
    has_single: bool = False
    chars_max: int | None = None
    is_command: bool = False


def headline(evidence: Evidence, answers: AnsweredStudy) -> PageHeadline:
    """Return what the title states about no other topic."""
    return PageHeadline(
        evidence.edited,
        _single_treatment(evidence),
        answers.headline.without is not None,
        FLOWS_CHARS_MAX if evidence.study.flows else None,
        evidence.study.request is not None,
    )


def _single_treatment(evidence: Evidence) -> SingleTreatment | None:
    """Return the values of the only treatment; None with several treatments or no messages."""
    frame = evidence.usable
    if evidence.varied or evidence.imported or evidence.study.flows or not frame.height:
        return None
    expected = after_warmup(frame, "expected").sum()
    if not expected > 0:
        return None
    return SingleTreatment(
        str(evidence.factors.get("cell", (evidence.study.heading,))[0]),
        frame.height,
        _latency_us(evidence, MEDIAN),
        _latency_us(evidence, P99),
        float(after_warmup(frame, "lost").sum() / expected),
        delivered_hz(frame),
        delivered_kind(evidence),
    )


def _latency_us(evidence: Evidence, name: str) -> Latency:
    """Return the geometric mean over runs, or the reason if a run has too few messages."""
    too_few = carried.why_not(evidence.usable, name)
    if too_few is not None:
        return too_few
    values = column(evidence.usable, name)
    values = values[~np.isnan(values)]
    if not values.size or not (values > 0).all():
        return None
    interval = stats.geometric_mean(values) if np.isfinite(values).all() else None
    if isinstance(interval, stats.Interval):
        return interval
    return float(np.exp(np.log(values).mean()))
