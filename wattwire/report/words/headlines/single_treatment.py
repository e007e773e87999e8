"""The first sentence of the page if a campaign has a single treatment: its values."""

from __future__ import annotations

import numpy as np

from wattwire import stats
from wattwire.analysis import carried
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.topics.rates.numbers import delivered_hz, delivered_kind
from wattwire.model.derived import after_warmup, column
from wattwire.report.topic_page import Sentences
from wattwire.report.words.phrases import Phrase, Phrases

PHRASES = Phrases(
    "single",
    {
        "values": (
            "{title}: median latency {median}, p99 {p99}, {lost:percent} lost{rate}, over "
            "{runs:plural run} (latencies: geometric means over runs)."
        ),
        "rate": ", {per_s:number} {delivered}",
        "interval": "{interval:estimate} µs ({interval:limits}, 95 % CI)",
        "value": "{value:number} µs",
        "unknown": "unknown ({reason})",
        "no_value": "no run has it",
    },
)
RATES = Sentences("rates")
MEDIAN, P99 = "latency_p50_us", "latency_p99_us"


def sentence(evidence: Evidence) -> Phrase:
    """Return latency, loss, rate and number of runs; "" with several treatments or no messages."""
    frame = evidence.usable
    if evidence.varied or evidence.imported or evidence.study.flows or not frame.height:
        return Phrase()
    expected = after_warmup(frame, "expected").sum()
    per_s = delivered_hz(frame)
    if not expected > 0:
        return Phrase()
    return PHRASES(
        "values",
        title=str(evidence.factors.get("cell", (evidence.study.heading,))[0]),
        median=_latency(evidence, MEDIAN),
        p99=_latency(evidence, P99),
        lost=float(after_warmup(frame, "lost").sum() / expected),
        rate=PHRASES("rate", per_s=per_s, delivered=RATES.delivered(delivered_kind(evidence)))
        if per_s is not None
        else "",
        runs=frame.height,
    )


def _latency(evidence: Evidence, name: str) -> Phrase:
    """Return the geometric mean over runs, with an interval from three runs on, or the reason."""
    few = carried.why_not(evidence.usable, name)
    values = column(evidence.usable, name)
    values = values[~np.isnan(values)]
    if few is not None:
        return PHRASES("unknown", reason=few.brief)
    if not values.size or not (values > 0).all():
        return PHRASES("unknown", reason=PHRASES("no_value"))
    interval = stats.geometric_mean(values) if np.isfinite(values).all() else None
    if isinstance(interval, stats.Interval):
        return PHRASES("interval", interval=interval)
    return PHRASES("value", value=float(np.exp(np.log(values).mean())))
