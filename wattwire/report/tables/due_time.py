"""Compare the latency from the due time with the time since the send call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from wattwire.analysis import carried
from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.model.derived import column, without_arrival
from wattwire.report.parts import Column
from wattwire.report.words.phrases import Phrase, Phrases, joined
from wattwire.stats import Interval

PHRASES = Phrases(
    "due_time",
    {
        "late": (
            "Messages waited before they were sent: on average over runs, the {percentile} latency"
            "{of_flows} is {latency:number} µs from the due time, and {since_send:number} µs from "
            "the send call{treatment}{more}. Answers use the first number."
        ),
        "outage": (
            "Run {run}{treatment} had an outage: {gone:plural message was/messages were} lost, "
            "failed or never sent, and its {percentile} latency is {latency}; the median of the "
            "other runs is {others:number} µs{more}."
        ),
        "stall": (
            "Run {run}{treatment} stood still for a time without losing a message: its "
            "{percentile} latency is {latency}; the median of the other runs is {others:number} µs"
            "{more}."
        ),
        "finite": "{latency:number} µs",
        "infinite": "infinite",
        "more_outages": "; {more:plural further run/further runs}",
        "of_flows": " over the messages of all flows",
        "treatment": " ({treatment})",
        "more": "; {more:plural further treatment/further treatments}",
    },
)

LATE_FACTOR = 2.0
"""Smallest ratio of both figures that the first lines of the page report."""
OUTAGE_FACTOR = 100.0
"""Smallest ratio of a run's percentile to the median of the treatment's other runs in an outage."""
STALL_FACTOR = 10.0
"""The same ratio for a run in which every message arrived, such as with a frozen client."""
STALL_MIN_US = 100_000.0
"""Smallest percentile (µs) of such a run: shorter waits are common on a busy machine."""
DIFFERENCE_MIN = 0.1
"""Smallest relative difference with which the table shows both figures."""
PERCENTILES = ("p50", "p99")
STEMS = ("latency", "since_send")
COLUMNS = [
    Column(f"since_send_{name}", f"{name} since the send call", "measured", "µs")
    for name in PERCENTILES
]


class _Outage(NamedTuple):
    """A run with a percentile far above that of the other runs, and its messages that are gone."""

    run: str
    treatment: str
    percentile: str
    latency_us: float
    others_us: float
    gone: int


def differs(row: Mapping[str, Any]) -> bool:
    """Return whether both figures of a treatment differ by more than DIFFERENCE_MIN.

    `row` has the percentiles of the latency (`p50_us`) and of the time since the send call, each an
    interval, infinite, or refused.
    """
    pairs = ((_figure(row[f"{n}_us"]), _figure(row[f"since_send_{n}"])) for n in PERCENTILES)
    return any(
        late is not None and prompt is not None and late > (1 + DIFFERENCE_MIN) * prompt
        for late, prompt in pairs
    )


def _figure(result: Any) -> float | None:
    if isinstance(result, Interval):
        return result.estimate
    return result if isinstance(result, float) else None


def late_senders(evidence: Evidence) -> Phrase:
    """Return a sentence on the treatment with the latest senders; empty below LATE_FACTOR."""
    cases = sorted(_cases(evidence), key=lambda case: case[0], reverse=True)
    if not cases:
        return Phrase()
    _, treatment, name, latency, prompt = cases[0]
    more = len({case[1] for case in cases}) - 1
    return PHRASES(
        "late",
        percentile=name,
        of_flows=PHRASES("of_flows") if len(evidence.study.flows) > 1 else "",
        latency=latency,
        since_send=prompt,
        treatment=PHRASES("treatment", treatment=treatment) if treatment else "",
        more=PHRASES("more", more=more) if more else "",
    )


def outages(evidence: Evidence) -> Phrase:
    """Return sentences on the runs in which a treatment failed or stood still for a time.

    Each names its first run. A median over few runs hides such a run. The result is "" without any.
    """
    found = list(_outages(evidence))
    lossy, complete = (
        [case for case in found if bool(case.gone) is lost] for lost in (True, False)
    )
    return joined([_sentence(cases) for cases in (lossy, complete) if cases])


def _sentence(cases: Sequence[_Outage]) -> Phrase:
    """Return the sentence on the first run, with the number of further runs."""
    first, further = cases[0], len({case.run for case in cases}) - 1
    treatment = PHRASES("treatment", treatment=first.treatment) if first.treatment else ""
    finite = np.isfinite(first.latency_us)
    latency = PHRASES("finite", latency=first.latency_us) if finite else PHRASES("infinite")
    more = PHRASES("more_outages", more=further) if further else ""
    if first.gone:
        return PHRASES(
            "outage",
            run=first.run,
            treatment=treatment,
            gone=first.gone,
            percentile=first.percentile,
            latency=latency,
            others=first.others_us,
            more=more,
        )
    return PHRASES(
        "stall",
        run=first.run,
        treatment=treatment,
        percentile=first.percentile,
        latency=latency,
        others=first.others_us,
        more=more,
    )


def _outages(evidence: Evidence) -> Iterator[_Outage]:
    """Yield the runs with a percentile far above that of the other runs of their treatment."""
    for key, frame in by_treatment(evidence, evidence.usable).items():
        title = evidence.treatment_title(dict(zip(evidence.varied, key, strict=True)))
        gone = np.nan_to_num(without_arrival(frame))
        for name in PERCENTILES:
            values = column(frame, f"latency_{name}_us")
            for row, value in enumerate(values):
                others = np.delete(values, row)
                others = others[~np.isnan(others)]
                usual = float(np.median(others)) if others.size else 0.0
                least = max(STALL_FACTOR * usual, STALL_MIN_US)
                least = OUTAGE_FACTOR * usual if gone[row] else least
                if 0 < usual < np.inf and value >= least:
                    run = str(frame["run"][row])
                    yield _Outage(run, title, name, float(value), usual, int(gone[row]))


def _cases(evidence: Evidence) -> Iterator[tuple[float, str, str, float, float]]:
    """Yield the ratio, the treatment, the percentile and both figures above LATE_FACTOR.

    A figure is the geometric mean over runs, as in the answers. A percentile for which a run has
    too few messages, or that is infinite, has no figure.
    """
    for key, frame in by_treatment(evidence, evidence.usable).items():
        title = dict(zip(evidence.varied, key, strict=True))
        for name in PERCENTILES:
            if carried.too_few(frame, f"latency_{name}_us").any():
                continue
            late, prompt = (_typical(frame, f"{stem}_{name}_us") for stem in STEMS)
            if late and prompt and late >= LATE_FACTOR * prompt:
                yield late / prompt, evidence.treatment_title(title), name, late, prompt


def _typical(frame: pl.DataFrame, name: str) -> float | None:
    """Return the geometric mean over runs (µs); None if a run has no positive, finite value."""
    values = column(frame, name)
    known = bool(values.size) and bool((np.isfinite(values) & (values > 0)).all())
    return float(np.exp(np.log(values).mean())) if known else None
