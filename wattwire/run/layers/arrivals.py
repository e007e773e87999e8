"""Find the notification of each message among those of a process."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from wattwire.run.layers.ends import CODES, NONE, first_after
from wattwire.run.layers.recordings import Recording, Times

COVERED_SHARE_MIN = 0.9
"""Share of the messages of a subscription that notify the condition variable of its reader."""
Spans = tuple[Times, Times]
"""Begins and ends (ns)."""
SAMPLED_MAX = 2000
"""Number of messages from which the condition variable of a reader is learned."""
LATE_NS_MAX = 10_000_000
"""Longest time from the take of a message to its notification. A message can be taken between its
storing and the notification by another thread; it then arrived at the latest at the take."""


def arrivals(recording: Recording, got: Mapping[str, Times], written_ns: Times) -> Times:
    """Return the time (ns) of the notification of each message that a process took; else NONE.

    `got` has the marks of the takes, and `written_ns` the begin of the write at the other end. A
    thread that waits sleeps on a condition variable; the first notification of it after the write
    is that of the message. If the thread did other work when the message arrived, it sleeps on
    none. The middleware then notifies the reader of the subscription alone.
    """
    by_condition = _notifications(recording)
    result = np.full(len(written_ns), NONE)
    for condition in np.unique(got["condition"]):
        times = by_condition.get(int(condition))
        if condition != NONE and times is not None:
            rows = np.flatnonzero(got["condition"] == condition)
            begin = np.maximum(written_ns[rows], got["asleep"][rows])
            result[rows] = first_after(times, begin - 1, got["woken"][rows] + 1)
    taken_ns = np.where(got["rcl"] == NONE, got["rmw_end"], got["rcl"])
    for endpoint in np.unique(got["endpoint"][result == NONE]):
        of_endpoint = got["endpoint"] == endpoint
        rows = np.flatnonzero(of_endpoint & (result == NONE))
        spans = written_ns[of_endpoint], taken_ns[of_endpoint]
        busy_spans = written_ns[rows], taken_ns[rows] + LATE_NS_MAX
        times = _of_reader(by_condition, spans, busy_spans)
        if times is not None:
            notified_ns = first_after(times, busy_spans[0] - 1, busy_spans[1] + 1)
            result[rows] = np.minimum(notified_ns, taken_ns[rows])
    return result


def _of_reader(by_condition: Mapping[int, Times], spans: Spans, busy_spans: Spans) -> Times | None:
    """Return the notifications of a subscription's reader; None if no variable is its own.

    They are those of the variable that was notified between the write and the take of the most
    messages. Those that a busy thread took decide first, because the variable of an idle thread is
    not notified then; the fewest notifications decide last, because other readers share the others.
    """
    every = max(1, len(spans[0]) // SAMPLED_MAX)
    sampled = spans[0][::every], spans[1][::every]
    ranked = [
        (-_covered(times, *busy_spans).sum(), -share, len(times), times)
        for times in by_condition.values()
        if (share := _covered(times, *sampled).mean()) >= COVERED_SHARE_MIN
    ]
    return min(ranked, key=lambda rank: rank[:3])[3] if ranked else None


def _covered(times: Times, begin: Times, end: Times) -> npt.NDArray[np.bool_]:
    return np.searchsorted(times, end, side="right") > np.searchsorted(times, begin)


def _notifications(recording: Recording) -> dict[int, Times]:
    """Return the sorted times (ns) of the notifications of each condition variable."""
    parts = [
        events[events["point"] == CODES["notify"]][["t", "a"]]
        for events in recording.threads.values()
    ]
    events = np.concatenate(parts) if parts else np.zeros(0, [("t", "<i8"), ("a", "<i8")])
    if not len(events):
        return {}
    events = np.sort(events, order=("a", "t"))
    addresses, first = np.unique(events["a"], return_index=True)
    times = np.split(events["t"].astype(np.int64), first[1:])
    return dict(zip(addresses.tolist(), times, strict=True))
