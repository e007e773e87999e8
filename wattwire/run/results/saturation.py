"""Detect saturation, and separate messages in the queue of a saturated hop from lost messages.

Above the capacity of a hop, its queue and the latency of its messages grow for as long as the
senders send. Messages that are still in the queue when `linger_ms` ends are neither delivered nor
lost. If the sender has to wait instead, the queue is in its schedule: messages that are due and not
yet sent.
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
from wattwire.model.sample_codes import FLAG_FAILED, FLAG_TIMEOUT

Mask = npt.NDArray[np.bool_]
GROWTH = "latency_growth_us_per_s"
GROWTH_SHARE_MAX, GROWTH_MIN, GROWTH_MIN_NS = 0.02, 3, 50_000_000
"""Growth of the backlog that shorter stalls of a busy machine reach: a share of the messages that
are due, a number of messages, and the time (ns) in which so many messages are due."""
GAPS = 3
"""Arrivals on a saturated link come in bursts, so a gap can be longer than their mean."""


@dataclass
class Arrivals:
    """Number of arrivals at a node, and the times (ns) of its first and its last one."""

    count: int = 0
    first_ns: int = 0
    last_ns: int = 0

    def add(self, arrived_ns: npt.NDArray[np.int64]) -> None:
        """Add the arrivals of one part, of shape (arrivals,), at least one."""
        first_ns, last_ns = int(arrived_ns.min()), int(arrived_ns.max())
        self.first_ns = min(first_ns, self.first_ns) if self.count else first_ns
        self.last_ns = max(last_ns, self.last_ns) if self.count else last_ns
        self.count += len(arrived_ns)

    @property
    def gap_ns(self) -> float:
        """Return the mean time between two arrivals; infinite with one arrival."""
        return (self.last_ns - self.first_ns) / (self.count - 1) if self.count > 1 else math.inf


@dataclass(frozen=True)
class Drain:
    """The time after STOP in which receivers wait for messages that are still in queues.

    A node that receives after `until_ns` ends only when `linger_ms` ends, which is at `end_ns`.
    `end_ns` is None if silence ends a node earlier.
    """

    until_ns: int
    end_ns: int | None = None

    def has_lasted(self, arrivals: Arrivals) -> bool:
        """Return whether a node was still receiving when the drain ended.

        A node that waits until `end_ns` in any case was receiving if its last arrival is no older
        than GAPS mean times between arrivals.
        """
        silent_from_ns: float = self.until_ns
        if self.end_ns is not None:
            silent_from_ns = max(silent_from_ns, self.end_ns - GAPS * arrivals.gap_ns)
        return arrivals.last_ns > silent_from_ns


@dataclass
class Tail:
    """Messages of one hop that have not passed it, after the last counter that has.

    `missing` is the number of all messages that have not passed the hop. `tail` and
    `tail_after_warmup` are those after the last counter that has, with and without the warm-up.
    """

    missing: int = 0
    tail: int = 0
    tail_after_warmup: int = 0

    def add(self, due: Mask, passed: Mask, warm_up: Mask) -> None:
        """Add a part of the messages in the order of their counters, each of shape (messages,).

        `due` messages have passed all earlier hops.
        """
        is_missing = due & ~passed
        self.missing += int(is_missing.sum())
        passed_at = np.flatnonzero(passed)
        if passed_at.size:
            self.tail = self.tail_after_warmup = 0
            is_missing[: passed_at[-1]] = False
        self.tail += int(is_missing.sum())
        self.tail_after_warmup += int((is_missing & ~warm_up).sum())


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

    def add(self, expected: pl.DataFrame) -> None:
        """Add the deliveries of one part (`model/deliveries.py`)."""
        arrived = expected.filter(
            pl.col("latency_us").is_finite() & pl.col("sender").is_in(list(self._schedules))
        )
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
    """How long each sender's calls occupied it, accumulated from parts of a run."""

    def __init__(self, flows: Sequence[Flow]) -> None:
        self._kinds = {flow.sender: flow.result for flow in flows if flow.result}
        self.waits = {sender: Waits() for sender in self._kinds}

    def add(self, part: pl.DataFrame) -> None:
        """Add the records of one part."""
        for sender, kind in self._kinds.items():
            calls = part.filter(pl.col("node") == sender, pl.col("kind") == kind)
            answered = calls.filter((pl.col("flags") & (FLAG_TIMEOUT | FLAG_FAILED)) == 0)
            waits = self.waits[sender]
            waits.sent += len(calls)
            waits.answered += len(answered)
            waits.answered_ns += int((answered["end_ns"] - answered["begin_ns"]).sum())
            waits.timed_out += len(calls.filter((pl.col("flags") & FLAG_TIMEOUT) != 0))


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
    """Growth of latency with the due time, accumulated from parts of a run's deliveries.

    The growth is the slope of the least-squares line of latency over due time, without the
    warm-up and without messages that did not arrive. In a saturated open loop, it is the offered
    rate divided by the capacity, minus 1, times 10⁶ µs/s, whether the queue is in a hop or at a
    sender that must wait.
    """

    def __init__(self) -> None:
        self._origin_ns: int | None = None
        self._sums = np.zeros(5)

    def add(self, expected: pl.DataFrame) -> None:
        """Add the deliveries of one part (`model/deliveries.py`)."""
        arrived = expected.filter(
            ~pl.col("warm_up") & pl.col("latency_us").is_finite() & pl.col("due_ns").is_not_null()
        )
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
