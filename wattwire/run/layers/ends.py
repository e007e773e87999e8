"""Find the marks of each message in the events of one thread, on the side of each end.

All functions work on positions: the index of an event among those of its thread. A thread does one
thing at a time, so the last event of a kind before another one belongs to the same message, unless
the event of an earlier message is in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from wattwire.model.layers import POINTS
from wattwire.run.layers.recordings import Endpoint, Events, Recording, Times

NONE = -1
"""A time or a position that is not known."""
CODES = {name: code for code, name in enumerate(POINTS)}
TIMER, SERVICE, APPLICATION = -2, -3, -1
"""What started the work of a thread, if it was no message of a known subscription."""


@dataclass(frozen=True)
class Published:
    """Marks of the messages that one process published (times in ns; NONE where unknown)."""

    thread: Times
    endpoint: Times
    """Index of the publisher in the process's list of endpoints."""
    stamp: Times
    """Time stamp (CLOCK_REALTIME) that the receivers see; 0 if the distribution gives none."""
    library: Times
    """Call of the client library, if it has a tracepoint."""
    rcl: Times
    rmw: Times
    write: Times
    """Begin of the DDS write; the time of the stamp if the process has no such point."""
    written: Times
    cause: Times
    """Row of `Taken`, in this process, of the message whose work published this one; else TIMER,
    SERVICE or APPLICATION."""

    @property
    def begin(self) -> Times:
        """Return the first mark of each message."""
        return first_known(self.library, self.rcl, self.rmw, self.write)


@dataclass(frozen=True)
class Taken:
    """Marks of the messages that one process took (times in ns; NONE where unknown)."""

    thread: Times
    endpoint: Times
    stamp: Times
    waited: Times
    """Begin of the last wait before the take."""
    woken: Times
    """End of the last wait before the take."""
    asleep: Times
    """Time at which that wait began to sleep; NONE if it did not."""
    condition: Times
    """Address of the condition variable on which it slept."""
    rcl: Times
    rmw: Times
    dds: Times
    dds_end: Times
    rmw_end: Times
    rcl_end: Times
    callback: Times
    """Begin of the callback, or the client library's last mark; NONE without such marks."""

    @property
    def end(self) -> Times:
        """Return the last mark of each message before the application has it."""
        return first_known(self.callback, self.rcl_end, self.rmw_end)


def first_known(*times: Times) -> Times:
    """Return the first time that is known, element by element."""
    result = times[0].copy()
    for later in times[1:]:
        result = np.where(result == NONE, later, result)
    return result


def last_before(positions: Times, at: Times, after: Times) -> Times:
    """Return the last of `positions` that is below `at` and above `after`, or NONE."""
    if not len(positions):
        return np.full(len(at), NONE)
    index = np.searchsorted(positions, at) - 1
    previous = np.where(index >= 0, positions[np.maximum(index, 0)], NONE)
    return np.where(previous > after, previous, NONE)


def first_after(positions: Times, at: Times, until: Times) -> Times:
    """Return the first of `positions` that is above `at` and below `until`, or NONE."""
    if not len(positions):
        return np.full(len(at), NONE)
    index = np.searchsorted(positions, at, side="right")
    last = len(positions) - 1
    following = np.where(index <= last, positions[np.minimum(index, last)], NONE)
    return np.where(following < until, following, NONE)


def _previous(positions: Times) -> Times:
    return np.concatenate(([NONE], positions[:-1])).astype(np.int64)


def _next(positions: Times, size: int) -> Times:
    return np.concatenate((positions[1:], [size])).astype(np.int64)


class Thread:
    """The events of one thread, by point."""

    def __init__(self, events: Events) -> None:
        self.events = events
        self._points = events["point"]

    def positions(self, name: str) -> Times:
        return np.flatnonzero(self._points == CODES[name]).astype(np.int64)

    def at(self, positions: Times, name: str = "t") -> Times:
        """Return a field of the events at these positions; NONE where the position is NONE."""
        if not len(self.events):
            return np.full(len(positions), NONE)
        values = self.events[name].astype(np.int64)[np.maximum(positions, 0)]
        return np.where(positions == NONE, NONE, values)


def endpoints_of(ends: Mapping[int, list[Endpoint]]) -> list[Endpoint]:
    """Return the endpoints of a process as a list, to which `endpoint` refers."""
    return [endpoint for endpoints in ends.values() for endpoint in endpoints]


def _endpoint_indices(handles: Times, times: Times, ends: Mapping[int, list[Endpoint]]) -> Times:
    """Return the index in `endpoints_of(ends)` for each handle at a time; NONE if unknown.

    A handle's memory is used again after the end of its endpoint, so the latest one counts.
    """
    result = np.full(len(handles), NONE)
    first = 0
    for handle, endpoints in ends.items():
        since = np.array([endpoint.since_ns for endpoint in endpoints])
        of_handle = handles == np.int64(handle)
        index = np.searchsorted(since, times[of_handle], side="right") - 1
        result[of_handle] = np.where(index >= 0, first + index, NONE)
        first += len(endpoints)
    return result


def published(recording: Recording) -> Published:
    """Return the marks of all messages that a process published."""
    taken_rows, parts = 0, []
    for number, events in recording.threads.items():
        thread = Thread(events)
        stamps = thread.positions("stamp")
        endpoint = _endpoint_indices(
            thread.at(stamps, "a"), thread.at(stamps), recording.publishers
        )
        before, after = _previous(stamps), _next(stamps, len(events))
        rmw = last_before(thread.positions("rmw_begin"), stamps, before)
        rcl = last_before(thread.positions("rcl_publish"), stamps, before)
        client = last_before(thread.positions("client_publish"), stamps, before)
        # rclcpp passes no handle of the publisher, so the message joins both calls.
        client = np.where(thread.at(client, "b") == thread.at(rmw, "b"), client, NONE)
        write = first_after(thread.positions("dds_write"), stamps, after)
        begin = np.where(rcl == NONE, stamps, rcl)
        rows, kinds = _work(thread, recording, taken_rows)
        started = np.searchsorted(rows, begin) - 1
        cause = np.where(started >= 0, kinds[np.maximum(started, 0)], APPLICATION)
        is_known = endpoint != NONE
        taken_rows += int((kinds >= 0).sum())
        columns = (
            np.full(len(stamps), number),
            endpoint,
            thread.at(stamps, "b"),
            thread.at(client),
            thread.at(rcl),
            thread.at(rmw),
            first_known(thread.at(write, "a"), thread.at(stamps)),
            thread.at(write),
            cause,
        )
        parts.append([column[is_known] for column in columns])
    return Published(*_joined(parts, len(fields(Published))))


def _joined(parts: list[list[Times]], count: int) -> list[Times]:
    empty = np.zeros(0, np.int64)
    return [np.concatenate([empty, *(part[at] for part in parts)]) for at in range(count)]


def _work(thread: Thread, recording: Recording, first_row: int) -> tuple[Times, Times]:
    """Return the positions at which work of a thread begins, and what started each.

    A kind of 0 or more is the row of the message in `taken()`. The end of a wait begins work of
    the application, until a message is taken or a timer is called.
    """
    takes = _takes(thread, recording)
    marks = [(takes, first_row + np.arange(len(takes)))]
    for name, kind in (("timer", TIMER), ("service", SERVICE), ("wait", APPLICATION)):
        positions = thread.positions(name)
        marks.append((positions, np.full(len(positions), kind)))
    positions = np.concatenate([mark[0] for mark in marks])
    kinds = np.concatenate([mark[1] for mark in marks])
    order = np.argsort(positions, kind="stable")
    if not len(order):
        return np.array([NONE]), np.array([APPLICATION])
    return positions[order], kinds[order]


def _takes(thread: Thread, recording: Recording) -> Times:
    """Return the positions at which messages of known subscriptions were taken."""
    positions = thread.positions("rmw_taken")
    positions = positions[thread.at(positions, "c") == 1]
    endpoint = _endpoint_indices(
        thread.at(positions, "a"), thread.at(positions), recording.subscriptions
    )
    return positions[endpoint != NONE]


def taken(recording: Recording) -> Taken:
    """Return the marks of all messages that a process took, thread by thread."""
    threads = {number: Thread(events) for number, events in recording.threads.items()}
    waits = _waits(threads)
    parts = []
    for number, thread in threads.items():
        at = _takes(thread, recording)
        before, after = _previous(at), _next(at, len(thread.events))
        rcl = last_before(thread.positions("rcl_take"), at, before)
        entered = np.where(rcl == NONE, before, rcl)
        rmw = last_before(thread.positions("rmw_take"), at, entered)
        dds = last_before(thread.positions("dds_take"), at, entered)
        begin = first_known(thread.at(rcl), thread.at(rmw), thread.at(at))
        rcl_end = first_after(thread.positions("rcl_taken"), at, after)
        until = after
        for work in ("rcl_take", "wait", "timer", "service"):
            other = first_after(thread.positions(work), at, after)
            until = np.where(other == NONE, until, np.minimum(until, other))
        # A message inside the process has a callback too, but no take.
        callbacks = thread.positions("callback_start")
        callback = first_after(callbacks[thread.at(callbacks, "c") == 0], at, until)
        client = first_after(thread.positions("client_taken"), at, until)
        own_waits = waits[waits[:, 0] == number]
        wait = _wait_before(own_waits if len(own_waits) else waits, begin)
        parts.append(
            [
                np.full(len(at), number),
                _endpoint_indices(thread.at(at, "a"), thread.at(at), recording.subscriptions),
                thread.at(at, "b"),
                *wait,
                thread.at(rcl),
                thread.at(rmw),
                thread.at(dds, "a"),
                thread.at(dds),
                thread.at(at),
                thread.at(rcl_end),
                first_known(thread.at(callback), thread.at(client)),
            ]
        )
    return Taken(*_joined(parts, len(fields(Taken))))


def _waits(threads: Mapping[int, Thread]) -> Times:
    """Return rows of thread, begin, end, begin of the sleep and condition, sorted by end."""
    rows = [np.zeros((0, 5), np.int64)]
    for number, thread in threads.items():
        ends = thread.positions("wait")
        sleep = last_before(thread.positions("sleep"), ends, _previous(ends))
        columns = (
            np.full(len(ends), number), thread.at(ends, "a"), thread.at(ends),
            thread.at(sleep), thread.at(sleep, "a"),
        )  # fmt: skip
        rows.append(np.column_stack(columns))
    waits = np.concatenate(rows)
    return waits[np.argsort(waits[:, 2], kind="stable")]


def _wait_before(waits: Times, times: Times) -> tuple[Times, Times, Times, Times]:
    """Return begin, end, begin of the sleep and condition of the last wait before each time."""
    if not len(waits):
        none = np.full(len(times), NONE)
        return none, none, none, none
    index = np.searchsorted(waits[:, 2], times, side="right") - 1
    rows = np.where((index >= 0)[:, None], waits[np.maximum(index, 0)], NONE)
    return rows[:, 1], rows[:, 2], rows[:, 3], rows[:, 4]
