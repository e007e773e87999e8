"""Detect saturation from the ledger and the schedules of a run.

Above the capacity of a hop, its queue and the latency of its messages grow for as long as the
senders send. Messages that are still in the queue when `linger_ms` ends are neither delivered nor
lost (`Fate.UNDELIVERED`). If the sender has to wait instead, the queue is in its schedule: messages
that are due and not yet sent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from wattwire.model.deployment import Flow
from wattwire.model.ledger import EXPECTED, RECEIVED, Fate

GROWTH = "latency_growth_us_per_s"
GROWTH_SHARE_MAX, GROWTH_MIN, GROWTH_MIN_NS = 0.02, 3, 50_000_000
"""Growth of the backlog that shorter stalls of a busy machine reach: a share of the messages that
are due, a number of messages, and the time (ns) in which so many messages are due."""


@dataclass(frozen=True)
class Schedule:
    """The schedule of a sender in an open loop (C-10); all times in ns, on the reference clock.

    `scheduled` messages are due from `first_ns` on, every `period_ns`. The first `warm_up` of them
    belong to the warm-up.
    """

    first_ns: int
    period_ns: int
    scheduled: int
    warm_up: int

    @classmethod
    def of(cls, spec: Mapping[str, Any], start_ns: int) -> Schedule:
        """Return the schedule of a node's spec for a window that starts at `start_ns`."""
        period_ns, phase_ns = int(spec["period_ns"]), int(spec["phase_ns"])
        scheduled, warm_up = (
            max(0, -((phase_ns - int(spec[name])) // period_ns))
            for name in ("duration_ns", "warmup_ns")
        )
        return cls(start_ns + phase_ns, period_ns, scheduled, min(warm_up, scheduled))

    @property
    def after_warmup(self) -> int:
        """Return the number of messages that are due after the warm-up."""
        return self.scheduled - self.warm_up

    @property
    def checkpoints_ns(self) -> tuple[int, ...]:
        """Return the half, three quarters and the end of the schedule without its warm-up (ns)."""
        return tuple(
            self.first_ns + round((self.warm_up + share * self.after_warmup) * self.period_ns)
            for share in (0.5, 0.75, 1.0)
        )


class BacklogTally:
    """Messages in progress at three times of each sender's schedule, from parts of a run.

    The backlog at a time is the number of messages that are due and have not arrived yet, without
    those that never arrive. In a run that keeps up, it is the product of rate and latency, and
    constant. It grows if the sender, a hop or a server handles less than the offered rate.
    """

    def __init__(self, schedules: Mapping[int, Schedule]) -> None:
        self._schedules = schedules
        self._backlogs: dict[tuple[int, int], npt.NDArray[np.int64]] = {}

    def add(self, rows: pl.DataFrame) -> None:
        """Add the rows of one part of a ledger."""
        has_arrived = pl.col("latency_us").is_finite()
        counts = has_arrived & pl.col("sender").is_in(list(self._schedules))
        columns = ("sender", "node", "due_ns", "end_ns")
        arrived = rows.lazy().filter(counts).select(columns).collect()
        for (sender, node), frame in arrived.group_by("sender", "node"):
            due_ns, end_ns = (frame[name].to_numpy() for name in ("due_ns", "end_ns"))
            backlogs = [
                int(((due_ns < at_ns) & (end_ns >= at_ns)).sum())
                for at_ns in self._schedules[sender].checkpoints_ns
            ]
            stream = sender, node
            self._backlogs[stream] = self._backlogs.get(stream, 0) + np.array(backlogs, np.int64)

    def growing(self) -> dict[int, tuple[int, ...]]:
        """Return sender → the backlogs of a stream that grew between all checkpoints.

        Between two checkpoints, a quarter of the messages is due. The backlog must grow by at least
        GROWTH_SHARE_MAX of them, GROWTH_MIN messages, and those that are due in GROWTH_MIN_NS. A
        single stall, or two short ones, therefore do not saturate a run.
        """
        growing = {}
        for (sender, _), backlogs in self._backlogs.items():
            schedule = self._schedules[sender]
            due_share = GROWTH_SHARE_MAX * schedule.after_warmup / 4
            least = max(GROWTH_MIN, due_share, GROWTH_MIN_NS / schedule.period_ns)
            if (np.diff(backlogs) >= least).all():
                growing[sender] = tuple(int(backlog) for backlog in backlogs)
        return growing


def backlog_growth(backlogs: Mapping[int, Sequence[int]]) -> int:
    """Return the largest growth of the `backlogs` that grew until the end; 0 without any."""
    return max((of_stream[-1] - of_stream[0] for of_stream in backlogs.values()), default=0)


@dataclass
class Waits:
    """Numbers of a sender's calls: sent, answered, and without a reply at `timeout_ms`."""

    sent: int = 0
    answered: int = 0
    answered_ns: int = 0
    timed_out: int = 0


class WaitTally:
    """How long each sender's calls occupied it, accumulated from parts of a run's ledger."""

    def __init__(self, flows: Sequence[Flow]) -> None:
        self.waits = {flow.sender: Waits() for flow in flows if flow.result}

    def add(self, rows: pl.DataFrame) -> None:
        """Add the rows of one part."""
        for sender, waits in self.waits.items():
            calls = rows.filter(pl.col("sender") == sender)
            answered = calls.filter(pl.col("fate").is_in(RECEIVED))
            waits.sent += int(calls["fate"].is_in(EXPECTED).sum())
            waits.answered += len(answered)
            waits.answered_ns += int((answered["end_ns"] - answered["begin_ns"]).sum())
            waits.timed_out += int((calls["fate"] == Fate.LOST).sum())


def is_held_up(spec: Mapping[str, Any], waits: Waits, late: int) -> bool:
    """Return whether calls without a reply explain why `late` messages were late or never sent.

    Such a call occupies one of `outstanding_max` calls until `timeout_ns`. The calls with a reply
    must show that the sender would otherwise have kept up with its period.
    """
    at_once, period_ns = int(spec["outstanding_max"]), int(spec["period_ns"])
    held_ns = waits.timed_out * int(spec["timeout_ns"])
    keeps_up = waits.answered_ns <= waits.answered * period_ns * at_once
    return bool(waits.timed_out) and keeps_up and late * period_ns * at_once <= held_ns


class GrowthTally:
    """Growth of latency with the due time, accumulated from parts of a run's ledger.

    The growth is the slope of the least-squares line of latency over due time, without the
    warm-up and without messages that did not arrive. In a saturated open loop, it is the offered
    rate divided by the capacity, minus 1, times 10⁶ µs/s, whether the queue is in a hop or at a
    sender that must wait.
    """

    def __init__(self) -> None:
        self._origin_ns: int | None = None
        self._sums = np.zeros(5)

    def add(self, rows: pl.DataFrame) -> None:
        """Add the rows of one part of a ledger."""
        has_arrived = pl.col("latency_us").is_finite() & pl.col("due_ns").is_not_null()
        counts = ~pl.col("warm_up") & has_arrived
        arrived = rows.lazy().filter(counts).select("due_ns", "latency_us").collect()
        if arrived.is_empty():
            return
        if self._origin_ns is None:
            self._origin_ns = int(arrived["due_ns"][0])
        due_s = (arrived["due_ns"] - self._origin_ns).to_numpy() / 1e9
        latency_us = arrived["latency_us"].to_numpy()
        self._sums += np.array([
            len(due_s), due_s.sum(), latency_us.sum(), due_s @ due_s, due_s @ latency_us,
        ])  # fmt: skip

    def summary(self) -> dict[str, float | None]:
        """Return the growth (µs/s); None with fewer than two due times."""
        count, due_s, latency_us, squares, products = self._sums.tolist()
        spread = count * squares - due_s * due_s
        if count < 2 or spread <= 0:
            return {GROWTH: None}
        slope = (count * products - due_s * latency_us) / spread
        return {GROWTH: slope if math.isfinite(slope) else None}
