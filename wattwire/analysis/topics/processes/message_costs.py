"""Compute the costs of a message of a command, and the rate at which it sent messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from wattwire.analysis.topics.processes.executed import Executed, Value, mean_of
from wattwire.stats import Band, BelowResolution, Interval, NotComputable, TooFew

TOTALS_ENDED = 2.0
"""Number of periods without a running total after which the load had probably ended."""
UNCOUNTED_SHARE = 0.01
"""Share of the messages above which messages after the last total are stated."""


@dataclass(frozen=True)
class Without:
    """The numbers of the repeats without a value, of `count` repeats."""

    repeats: tuple[int, ...]
    count: int


@dataclass(frozen=True)
class AfterLastTotal:
    """The time (s) after the last running total, and what was sent in it at most.

    The totals came every `period_s`. `messages` and `percent` are those of a sender that continued
    at its rate: as another total did not come, they are fewer than those between two totals.
    """

    gap_s: float
    period_s: float
    messages: int
    percent: float

    @property
    def has_ended(self) -> bool:
        """Whether the load had probably ended."""
        return self.gap_s > TOTALS_ENDED * self.period_s


@dataclass(frozen=True)
class Rate:
    """The rate of messages, from running totals that span `span_s`, or from whole windows.

    `percent` is the resolution of a rate from running totals, else None. `after` is None if the
    time after the last total hardly matters.
    """

    per_s: float
    percent: float | None = None
    span_s: float | None = None
    after: AfterLastTotal | None = None


@dataclass(frozen=True)
class Messages:
    """The messages of a command: the mean number over the repeats, and the costs of one.

    `count` is None if no repeat has a number, and `uncounted` names the repeats without one if the
    command should print it. Costs are CPU time (µs), measured energy and modelled energy (mJ).
    """

    count: float | None = None
    uncounted: Without | None = None
    cpu_us: Value = None
    energy_mj: Value | BelowResolution | TooFew | NotComputable = None
    estimate_mj: Band | None = None
    rate: Rate | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the mean number is a whole number."""
        return self.count is not None and self.count == int(self.count)


def messages(executed: Executed) -> Messages:
    """Return the costs of a message and the rate of messages."""
    counts = executed.values("messages")
    has_counter = bool(executed.request.count_from) and len(executed.repeats) > 1
    uncounted = repeats_without(executed, "messages") if has_counter else None
    if not counts:
        return Messages(uncounted=uncounted)
    low, high = (executed.values(f"energy_estimate_{end}_j_per_message") for end in ("low", "high"))
    return Messages(
        sum(counts) / len(counts),
        uncounted,
        mean_of(executed.values("cpu_us_per_message")),
        _thousandfold(executed.energy_per_message()),
        Band(*(1000.0 * sum(ends) / len(ends) for ends in (low, high))) if low and high else None,
        _rate(executed, counts),
    )


def repeats_without(executed: Executed, figure: str) -> Without | None:
    """Return the repeats without a figure; None if all have it."""
    blocks = sorted(row["block"] for row in executed.repeats if row.get(figure) is None)
    return Without(tuple(blocks), len(executed.repeats)) if blocks else None


def _thousandfold(value: Any) -> Any:
    """Return 1000 times a number or an interval, and a reason as it is."""
    if isinstance(value, Interval):
        ends = {end: 1000.0 * getattr(value, end) for end in ("estimate", "low", "high")}
        return replace(value, **ends)
    return 1000.0 * value if isinstance(value, float) else value


def _rate(executed: Executed, counts: Sequence[float]) -> Rate:
    """Return the rate from running totals if available, otherwise from counts and windows."""
    rates = executed.values("messages_per_s")
    if not rates:
        counted = (row["window_s"] for row in executed.repeats if row["messages"] is not None)
        return Rate(sum(counts) / sum(counted))
    spans_s = executed.values("messages_span_s")
    rate = sum(r * s for r, s in zip(rates, spans_s, strict=True)) / sum(spans_s)
    share = max(executed.values("messages_per_s_resolution_share"))
    after = _after_last_total(executed, rate, sum(counts) / len(counts))
    return Rate(rate, 100 * share, sum(spans_s) / len(spans_s), after)


def _after_last_total(executed: Executed, rate: float, counted: float) -> AfterLastTotal | None:
    """Return the time after the last running total; None if it hardly matters.

    No output tells whether messages followed the last total.
    """
    spans_s, gaps_s, totals = (
        executed.values(name)
        for name in ("messages_span_s", "messages_uncounted_s", "messages_totals")
    )
    gap_s = sum(gaps_s) / len(gaps_s)
    periods_s = [span_s / (count - 1) for span_s, count in zip(spans_s, totals, strict=True)]
    period_s = sum(periods_s) / len(periods_s)
    uncounted = rate * min(gap_s, period_s)
    if uncounted < UNCOUNTED_SHARE * counted:
        return None
    return AfterLastTotal(gap_s, period_s, round(uncounted), 100 * uncounted / counted)
