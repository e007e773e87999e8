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

from wattwire.model.outside_meters import SLACK_SHARE, WINDOWS_PER_READING
from wattwire.run.node_specs import SECOND_NS
from wattwire.run.results.resources import Readings

EDGE_SHARE = 1 / WINDOWS_PER_READING
"""Maximum share of a span before the first or after the last reading, which its mean leaves out."""
HOLE_NS = 2_500_000_000
"""Maximum gap (ns) between two readings that a value is taken from, or HOLE_SHARE of the span."""
HOLE_SHARE = 0.1
MARK_NS = 100_000_000
"""Maximum time (ns) between a mark and the reading that belongs to it."""

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
    window_s: float = 0.0
    """The time over which a meter outside the machine averages a reading."""

    @property
    def name(self) -> str:
        return f"{self.meter}/{self.quantity}"

    def shortfall(self, spans: Sequence[Span]) -> str:
        """Return why the shortest of `spans` (ns) is too short for the meter, or ""."""
        needed_s = WINDOWS_PER_READING * self.window_s
        shortest_s = min(((end - begin) / SECOND_NS for begin, end in spans), default=needed_s)
        if shortest_s >= needed_s * (1 - SLACK_SHARE):
            return ""
        return (
            f"{self.name}: too short for this meter: a baseline or the window has less than "
            f"{needed_s:g} s"
        )


def sources(series: Iterable[dict[str, Any]]) -> list[Source]:
    """Return all energy sources among the sampled series, in order of preference."""
    subjects_by_source: dict[tuple[int, str, str, bool], set[str]] = {}
    windows_s: dict[str, float] = {}
    for table in series:
        if table.get("rank") is not None:
            key = (int(table["rank"]), table["meter"], table["quantity"], bool(table["counter"]))
            subjects_by_source.setdefault(key, set()).add(table["subject"])
            windows_s[table["meter"]] = table.get("window_s", 0.0)
    return [
        Source(meter, quantity, rank, counter, tuple(sorted(subjects)), windows_s[meter])
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
    """Yield the sources that have a power in all of `spans` (ns), in order of preference.

    Each span must be long enough for the source's meter.
    """
    for source in sources(series):
        if not source.shortfall(spans) and all(
            mean_w(readings, source, span) is not None for span in spans
        ):
            yield source


def window_powers(
    readings: Readings, series: Iterable[dict[str, Any]], spans: Sequence[Span], window: Span
) -> tuple[Source | None, dict[str, Any]]:
    """Return the preferred source and the columns of the power (W) in the window.

    If another source covers the run too, the columns contain its power as well, which only the
    agreement of both uses. They name the meters for which a span is too short.
    """
    series = list(series)
    first, second = (*itertools.islice(covering(readings, series, spans), 2), None, None)[:2]
    columns: dict[str, Any] = {
        "energy_source": first.name if first else None,
        "power_window_w": mean_w(readings, first, window),
    }
    if second is not None:
        columns["energy_source_second"] = second.name
        columns["power_window_second_w"] = mean_w(readings, second, window)
    shortfalls = [text for source in sources(series) if (text := source.shortfall(spans))]
    if shortfalls:
        columns["energy_too_short"] = "; ".join(shortfalls)
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


def _covered(times: Any, span: Span) -> Span | None:
    """Return a span without its short parts before the first and after the last reading.

    Return None if such a part is too long, or if an end is in a hole between two readings.
    """
    if not len(times):
        return None
    begin, end = max(span[0], int(times[0])), min(span[1], int(times[-1]))
    edge_ns = EDGE_SHARE * (span[1] - span[0])
    if begin >= end or begin - span[0] > edge_ns or span[1] - end > edge_ns:
        return None
    for t_ns in (begin, end):
        after = int(np.searchsorted(times, t_ns))
        before_ns = t_ns - times[max(0, after - 1)]
        after_ns = times[after] - t_ns
        is_far = min(before_ns, after_ns) > MARK_NS
        if after_ns and is_far and before_ns + after_ns > _hole_ns(span):
            return None
    return begin, end


def _hole_ns(span: Span) -> float:
    return max(HOLE_NS, HOLE_SHARE * (span[1] - span[0]))


def _counter_w(times: Any, values: Any, span: Span) -> float | None:
    """Return the mean power (W) in a span from a counter in µJ; None if it is not covered."""
    covered = _covered(times, span)
    if covered is None:
        return None
    begin, end = np.interp(covered, times, values)
    return float(end - begin) / 1e6 / ((covered[1] - covered[0]) / SECOND_NS)


def _gauge_w(times: Any, values: Any, span: Span) -> float | None:
    """Return the mean (W) of a gauge in µW by the trapezoidal rule; None if a gap is too long."""
    covered = _covered(times, span)
    if covered is None:
        return None
    within = (times > covered[0]) & (times < covered[1])
    knots = np.concatenate(([covered[0]], times[within], [covered[1]]))
    if np.diff(knots).max() > _hole_ns(span):
        return None
    heights = np.interp(knots, times, values)
    area = float(np.sum(np.diff(knots) * (heights[1:] + heights[:-1]) / 2.0))
    return area / (covered[1] - covered[0]) / 1e6
