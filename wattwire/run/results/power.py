"""Select the energy source of a run, and compute the machine's power from it.

A machine reports the same energy in several places. The meters' manifests rank the sources, and
only one source is used (docs/manifests.md), so that no energy is counted twice.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wattwire.run.node_specs import SECOND_NS
from wattwire.run.results.resources import Readings

EDGE_NS = 250_000_000
"""Maximum distance (ns) of a reading from either end of a span, or EDGE_SHARE of the span."""
EDGE_SHARE = 0.05
HOLE_NS = 2_500_000_000
"""Maximum gap (ns) between the readings of a gauge, or HOLE_SHARE of the span."""
HOLE_SHARE = 0.1

Span = tuple[int, int]


@dataclass(frozen=True)
class Source:
    """A ranked quantity.

    The sum over its subjects is the energy of the machine, without overlap.
    """

    meter: str
    quantity: str
    rank: int
    counter: bool
    """True: a counter in µJ; False: a gauge in µW."""
    subjects: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.meter}/{self.quantity}"


def sources(series: Iterable[dict[str, Any]]) -> list[Source]:
    """Return all energy sources among the sampled series, in order of preference."""
    subjects_by_source: dict[tuple[int, str, str, bool], set[str]] = {}
    for table in series:
        if table.get("rank") is not None:
            key = (int(table["rank"]), table["meter"], table["quantity"], bool(table["counter"]))
            subjects_by_source.setdefault(key, set()).add(table["subject"])
    return [
        Source(meter, quantity, rank, counter, tuple(sorted(subjects)))
        for (rank, meter, quantity, counter), subjects in sorted(subjects_by_source.items())
    ]


def choose(
    readings: Readings, series: Iterable[dict[str, Any]], spans: Sequence[Span]
) -> Source | None:
    """Return the preferred source that has a power in all of `spans` (ns), or None."""
    return next(covering(readings, series, spans), None)


def covering(
    readings: Readings, series: Iterable[dict[str, Any]], spans: Sequence[Span]
) -> Iterator[Source]:
    """Yield the sources that have a power in all of `spans` (ns), in order of preference."""
    for source in sources(series):
        if all(mean_w(readings, source, span) is not None for span in spans):
            yield source


def window_powers(
    readings: Readings, series: Iterable[dict[str, Any]], spans: Sequence[Span], window: Span
) -> tuple[Source | None, dict[str, Any]]:
    """Return the preferred source and the columns of the power (W) in the window.

    If another source covers the run too, the columns contain its power as well, which only the
    agreement of both uses.
    """
    first, second = (*itertools.islice(covering(readings, series, spans), 2), None, None)[:2]
    columns: dict[str, Any] = {
        "energy_source": first.name if first else None,
        "power_window_w": mean_w(readings, first, window),
    }
    if second is not None:
        columns["energy_source_second"] = second.name
        columns["power_window_second_w"] = mean_w(readings, second, window)
    return first, columns


def mean_w(readings: Readings, source: Source | None, span: Span) -> float | None:
    """Return the mean power (W) of `source` in a span (ns), summed over its subjects.

    Return None without a source, or if a subject was not read during the whole span.
    """
    if source is None or span[1] <= span[0]:
        return None
    watts = 0.0
    for subject in source.subjects:
        times, values = readings.of_meter(source.meter, source.quantity, subject)
        mean = _counter_w(times, values, span) if source.counter else _gauge_w(times, values, span)
        if mean is None:
            return None
        watts += mean
    return watts


def _is_read_at_ends(times: Any, span: Span) -> bool:
    """Return whether a source was read close to both ends of a span."""
    slack_ns = max(EDGE_NS, EDGE_SHARE * (span[1] - span[0]))
    inside = (times >= span[0] - slack_ns) & (times <= span[1] + slack_ns)
    if np.count_nonzero(inside) < 2:
        return False
    return bool(
        np.abs(times - span[0]).min() <= slack_ns and np.abs(times - span[1]).min() <= slack_ns
    )


def _counter_w(times: Any, values: Any, span: Span) -> float | None:
    """Return the mean power (W) in a span from a counter in µJ; None if it is not covered."""
    if not _is_read_at_ends(times, span):
        return None
    begin, end = np.interp(span, times, values)
    return float(end - begin) / 1e6 / ((span[1] - span[0]) / SECOND_NS)


def _gauge_w(times: Any, values: Any, span: Span) -> float | None:
    """Return the mean (W) of a gauge in µW by the trapezoidal rule; None if a gap is too long."""
    if not _is_read_at_ends(times, span):
        return None
    within = (times > span[0]) & (times < span[1])
    knots = np.concatenate(([span[0]], times[within], [span[1]]))
    if np.diff(knots).max() > max(HOLE_NS, HOLE_SHARE * (span[1] - span[0])):
        return None
    heights = np.interp(knots, times, values)
    area = float(np.sum(np.diff(knots) * (heights[1:] + heights[:-1]) / 2.0))
    return area / (span[1] - span[0]) / 1e6
