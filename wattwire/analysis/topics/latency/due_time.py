"""Find late senders, outages and stalls, which a median over all runs hides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from wattwire.analysis import carried
from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.model.derived import column, without_arrival

LATE_FACTOR = 2.0
"""Smallest ratio of both latencies of late senders that the first lines of the page report."""
OUTAGE_FACTOR = 100.0
"""Smallest ratio of a run's percentile to the median of the treatment's other runs in an outage."""
STALL_FACTOR = 10.0
"""The same ratio for a run in which every message arrived, such as with a frozen client."""
STALL_MIN_US = 100_000.0
"""Smallest percentile (µs) of such a run: shorter waits are common on a busy machine."""
PERCENTILES = ("p50", "p99")
STEMS = ("latency", "since_send")


@dataclass(frozen=True)
class LateSenders:
    """The treatment with the largest ratio of the latency to the time since the send call (µs).

    Both are geometric means over runs of the same percentile. `more` is the number of the other
    treatments with late senders. With `is_of_flows`, the messages are those of several flows.
    """

    treatment: str
    percentile: str
    latency_us: float
    since_send_us: float
    more: int
    is_of_flows: bool


@dataclass(frozen=True)
class Outage:
    """A run with a percentile far above the median of the treatment's other runs (µs).

    `gone` is the number of its messages that were lost, failed or never sent: without any, the run
    stalled. `more` is the number of further runs of this kind.
    """

    run: str
    treatment: str
    percentile: str
    latency_us: float
    others_us: float
    gone: int
    more: int = 0

    @property
    def is_finite(self) -> bool:
        """Whether the percentile is a number."""
        return bool(np.isfinite(self.latency_us))


def late_senders(evidence: Evidence) -> LateSenders | None:
    """Return the treatment with the latest senders; None below LATE_FACTOR."""
    cases = sorted(_cases(evidence), key=_ratio, reverse=True)
    if not cases:
        return None
    title, percentile, late_us, prompt_us = cases[0]
    more = len({title for title, *_ in cases}) - 1
    is_of_flows = len(evidence.study.flows) > 1
    return LateSenders(title, percentile, late_us, prompt_us, more, is_of_flows)


def outages(evidence: Evidence) -> tuple[Outage, ...]:
    """Return the first run with lost messages in an outage, and the first that only stalled."""
    found = list(_outages(evidence))
    kinds = ([one for one in found if bool(one.gone) is is_lossy] for is_lossy in (True, False))
    return tuple(_first(kind) for kind in kinds if kind)


def _first(cases: list[Outage]) -> Outage:
    return replace(cases[0], more=len({case.run for case in cases}) - 1)


def _outages(evidence: Evidence) -> Iterator[Outage]:
    """Yield the runs with a percentile far above that of the other runs of their treatment."""
    for key, frame in by_treatment(evidence, evidence.usable).items():
        title = evidence.title_of_key(key)
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
                    yield Outage(run, title, name, float(value), usual, int(gone[row]))


Case = tuple[str, str, float, float]


def _cases(evidence: Evidence) -> Iterator[Case]:
    """Yield the treatment, the percentile and both latencies (µs) above LATE_FACTOR.

    A latency is the geometric mean over runs, as in the answers. A percentile for which a run has
    too few messages, or that is infinite, has none.
    """
    for key, frame in by_treatment(evidence, evidence.usable).items():
        title = evidence.title_of_key(key)
        for name in PERCENTILES:
            if carried.too_few(frame, f"latency_{name}_us").any():
                continue
            late, prompt = (_typical(frame, f"{stem}_{name}_us") for stem in STEMS)
            if late and prompt and late >= LATE_FACTOR * prompt:
                yield title, name, late, prompt


def _ratio(case: Case) -> float:
    return case[2] / case[3]


def _typical(frame: pl.DataFrame, name: str) -> float | None:
    """Return the geometric mean over runs (µs); None if a run has no positive, finite value."""
    values = column(frame, name)
    known = bool(values.size) and bool((np.isfinite(values) & (values > 0)).all())
    return float(np.exp(np.log(values).mean())) if known else None
