"""Which calls of a closed loop count, where the contract's nodes cannot know it (C-13).

Nodes know a warm-up by time only. What belongs to calls of a warm-up that is counted in calls, and
what several clients do after the end of what counts, is flagged here, after the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from wattwire.model.records import FLAG_WARM_UP
from wattwire.run.node_specs import NodePlan

CALL_KINDS = ("call", "goal")
NEVER = 2**62

Batches = Callable[[], Iterable[pl.DataFrame]]
"""Gives the records piece by piece, each time it is called."""


@dataclass(frozen=True)
class Counted:
    """The counters of one client's calls that count: from `first` to the one before `stop`."""

    first: int
    stop: int


def counted_calls(
    batches: Batches, nodes: list[NodePlan], warm_up: int, end_ns: int | None = None
) -> dict[int, Counted]:
    """Return each client's calls that count; of a client that is missing there, none does.

    Warm-up is what belongs to calls that began before every client had made `warm_up` of them. One
    moment parts the run for all: from there on costs are counted, too. A client that was faster
    than the last one has more than `warm_up` of its calls left out. If any client never got so
    far, nothing counts. With `end_ns` (CLOCK_MONOTONIC) calls count that began before it.
    """
    callers = [node.node for node in nodes if node.sends]
    first = dict.fromkeys(callers, 0)
    if warm_up:
        first = _first_counters(batches, callers, warm_up)
    stop = dict.fromkeys(callers, NEVER)
    if end_ns is not None:
        stop = _stop_counters(batches, callers, end_ns)
    return {node: Counted(first[node], stop[node]) for node in callers if node in first}


def _first_counters(batches: Batches, callers: list[int], warm_up: int) -> dict[int, int]:
    passed = _least(
        own.filter(pl.col("counter") >= warm_up).group_by("sender").agg(pl.min("begin_ns"))
        for own in _own_calls(batches(), callers)
    )
    moments = [moment for moment in passed.values() if moment is not None]
    if len(passed) < len(callers) or not moments:
        return {}
    later = _least(
        own.filter(pl.col("begin_ns") >= max(moments)).group_by("sender").agg(pl.min("counter"))
        for own in _own_calls(batches(), callers)
    )
    return {sender: counter for sender, counter in later.items() if counter is not None}


def _stop_counters(batches: Batches, callers: list[int], end_ns: int) -> dict[int, int]:
    """The counter of each client's first call that began at `end_ns` or later.

    A call that was open then counts, however long it took: left out, the longest would be missing.
    """
    later = _least(
        own.filter(pl.col("begin_ns") >= end_ns).group_by("sender").agg(pl.min("counter"))
        for own in _own_calls(batches(), callers)
    )
    known = {sender: counter for sender, counter in later.items() if counter is not None}
    return {**dict.fromkeys(callers, NEVER), **known}


def flag_calls(messages: pl.DataFrame, counted: Mapping[int, Counted]) -> pl.DataFrame:
    """Flag records whose call does not count by `counted_calls`, at the server as at the client."""
    counter = messages.schema["counter"]
    known = pl.DataFrame(
        {
            "sender": list(counted),
            "first": [calls.first for calls in counted.values()],
            "stop": [calls.stop for calls in counted.values()],
        },
        schema={"sender": messages.schema["sender"], "first": counter, "stop": counter},
    )
    joined = messages.join(known, on="sender", how="left", maintain_order="left")
    # A client of which nothing counts is not among the known ones.
    left_out = (
        pl.col("first").is_null()
        | (pl.col("counter") < pl.col("first"))
        | (pl.col("counter") >= pl.col("stop"))
    )
    flags = pl.col("flags").fill_null(0)
    flagged = pl.when(left_out).then(flags | FLAG_WARM_UP).otherwise(flags)
    return joined.with_columns(flags=flagged.cast(messages.schema["flags"])).drop("first", "stop")


def first_counted_ns(parts: Iterable[pl.DataFrame], nodes: list[NodePlan]) -> int | None:
    """When the first call began that `flag_calls` left without a flag; None without such a call."""
    callers = [node.node for node in nodes if node.sends]
    counted = (pl.col("flags") & FLAG_WARM_UP) == 0
    begins_ns = [
        own.filter(counted).select(pl.min("begin_ns")).item() for own in _own_calls(parts, callers)
    ]
    return min((int(one) for one in begins_ns if one is not None), default=None)


def _own_calls(batches: Iterable[pl.DataFrame], callers: list[int]) -> Iterator[pl.DataFrame]:
    for messages in batches:
        yield messages.filter(
            pl.col("node").is_in(callers),
            pl.col("node") == pl.col("sender"),
            pl.col("kind").is_in(CALL_KINDS),
        )


def _least(frames: Iterable[pl.DataFrame]) -> dict[int, int | None]:
    """The least value of each sender in any of the frames; None where it has unknown ones only."""
    found: dict[int, int | None] = {}
    for frame in frames:
        for sender, value in frame.iter_rows():
            known = [one for one in (found.get(sender), value) if one is not None]
            found[sender] = min(known, default=None)
    return found
