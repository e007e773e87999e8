"""Format the streams of a window as a table."""

from __future__ import annotations

import math

from wattwire.analysis.streams.numbers import (
    AHEAD,
    NO_MESSAGE,
    NO_STAMPS,
    NO_TIME,
    OTHER_CLOCK,
    OTHER_HOST,
    ZERO_STAMPS,
    Delays,
    Stream,
    Watched,
)
from wattwire.analysis.streams.remarks import NEVER
from wattwire.cli import wrap
from wattwire.cli.quantities import size_words
from wattwire.model.words import MISSING, count, duration, listed, number

TITLES = (
    "topic", "node", "Hz", "± ms", "size", "per s", "p50 µs", "p95 µs", "p99 µs", "max µs",
    "age p50", "lost", "reordered",
)  # fmt: skip
OMITTED_FIRST = ("± ms", "per s", "size", "p95 µs", "reordered", "max µs", "p99 µs")
"""Columns that a narrow screen omits, in this order."""
UNSEQUENCED = "no seq."
REASONS = {
    OTHER_HOST: "other host",
    NO_TIME: "no time",
    AHEAD: "other clock",
    NO_MESSAGE: MISSING,
    NO_STAMPS: MISSING,
    ZERO_STAMPS: "zero",
    OTHER_CLOCK: "other clock",
}
"""Reason for a missing latency or age → the text of its cell."""


def lines_of(result: Watched, width: int) -> list[str]:
    """Return the lines of the heading and of the table, with a row per publisher and topic.

    A table that is wider than the screen has fewer columns.
    """
    messages = sum(stream.messages for stream in result.streams)
    heading = (
        f"{count(messages)} messages in {duration(result.window_s)}; latency from the publication "
        "to the take by the probe"
    )
    rows = [list(TITLES), *(cells(stream) for stream in result.streams)]
    widths = [max(map(len, texts)) for texts in zip(*rows, strict=True)]
    kept = list(range(len(TITLES)))
    for title in OMITTED_FIRST:
        if sum(len(wrap.GAP) + widths[at] for at in kept) <= width:
            break
        kept.remove(TITLES.index(title))
    shown = [[row[at] for at in kept] for row in rows]
    omitted = [title for title in TITLES if TITLES.index(title) not in kept]
    notes = []
    if omitted:
        text = f"Omitted on this narrow screen: {listed(omitted)}. --json has all columns."
        notes = wrap.wrapped(text, width, hanging="").splitlines()
    return [heading, *wrap.table(shown, "<<" + ">" * (len(kept) - 2), width), *notes]


def cells(stream: Stream) -> list[str]:
    faults = stream.faults
    unsequenced = UNSEQUENCED if stream.messages else MISSING
    return [
        stream.topic,
        stream.node or MISSING,
        number(stream.rate_hz),
        number(stream.interval_sd_ms, 2),
        MISSING if stream.bytes_mean is None else size_words(stream.bytes_mean),
        MISSING if stream.bytes_per_s is None else size_words(stream.bytes_per_s),
        *percentiles(stream.latency, stream.no_latency),
        age(stream.age, stream.no_age),
        unsequenced if faults is None else count(faults.lost),
        MISSING if faults is None else count(faults.reordered),
    ]


def percentiles(delays: Delays | None, reason: str) -> list[str]:
    if delays is None:
        return [REASONS[reason], MISSING, MISSING, MISSING]
    values = (delays.p50_us, delays.p95_us, delays.p99_us, delays.max_us)
    return [NEVER if value is not None and math.isinf(value) else number(value) for value in values]


def age(delays: Delays | None, reason: str) -> str:
    """Return the median age with its unit, or the reason why there is none."""
    if delays is None:
        return REASONS[reason]
    return MISSING if delays.p50_us is None else f"{number(delays.p50_us / 1e3)} ms"
