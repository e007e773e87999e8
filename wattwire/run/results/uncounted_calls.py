"""Flag the calls of a closed loop that do not count, because nodes cannot flag them (C-13).

Nodes know only a warm-up by time. Warm-up calls, and calls that clients make after the counted
window, are flagged here after the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from wattwire.model.deployment import Node
from wattwire.model.sample_codes import FLAG_WARM_UP

CALL_KINDS = ("call", "goal")
NEVER = 2**62

Batches = Callable[[], Iterable[pl.DataFrame]]
"""Function that yields the records in batches. Each call starts again at the first batch."""


@dataclass(frozen=True)
class Counted:
    """Range of the counters of one client's valid calls; `stop` is excluded."""

    first: int
    stop: int


def counted_calls(
    batches: Batches, nodes: Sequence[Node], warm_up: int, end_ns: int | None = None
) -> dict[int, Counted]:
    """Return the range of each client's counted calls, by node, without clients that have none.

    The warm-up ends when every client has made `warm_up` calls. This time is the same for all
    clients, and costs count from it, too. Calls that began earlier are excluded, so a fast client
    loses more than `warm_up` calls. If any client makes fewer calls than `warm_up`, no call counts.
    With `end_ns` (CLOCK_MONOTONIC), only calls that began before it count.
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
    """Return the counter of each client's first call after the warm-up.

    Return an empty dictionary if a client does not complete its warm-up.
    """
    reached_ns = _minimum_by_sender(
        calls.filter(pl.col("counter") >= warm_up).group_by("sender").agg(pl.min("begin_ns"))
        for calls in _own_calls(batches(), callers)
    )
    known_ns = [time_ns for time_ns in reached_ns.values() if time_ns is not None]
    if len(reached_ns) < len(callers) or not known_ns:
        return {}
    first = _minimum_by_sender(
        calls.filter(pl.col("begin_ns") >= max(known_ns)).group_by("sender").agg(pl.min("counter"))
        for calls in _own_calls(batches(), callers)
    )
    return {sender: counter for sender, counter in first.items() if counter is not None}


def _stop_counters(batches: Batches, callers: list[int], end_ns: int) -> dict[int, int]:
    """Return the counter of each client's first call that began at or after `end_ns`.

    A call that is open at `end_ns` counts regardless of its duration. Otherwise, the longest calls
    would be missing.
    """
    stop = _minimum_by_sender(
        calls.filter(pl.col("begin_ns") >= end_ns).group_by("sender").agg(pl.min("counter"))
        for calls in _own_calls(batches(), callers)
    )
    known_stop = {sender: counter for sender, counter in stop.items() if counter is not None}
    return {**dict.fromkeys(callers, NEVER), **known_stop}


def flag_calls(messages: pl.DataFrame, counted: Mapping[int, Counted]) -> pl.DataFrame:
    """Flag the records of calls that `counted_calls` excludes, at the server and at the client."""
    counter = messages.schema["counter"]
    limits = pl.DataFrame(
        {
            "sender": list(counted),
            "first": [calls.first for calls in counted.values()],
            "stop": [calls.stop for calls in counted.values()],
        },
        schema={"sender": messages.schema["sender"], "first": counter, "stop": counter},
    )
    joined = messages.join(limits, on="sender", how="left", maintain_order="left")
    # A client without counted calls is not in `counted`.
    excluded = (
        pl.col("first").is_null()
        | (pl.col("counter") < pl.col("first"))
        | (pl.col("counter") >= pl.col("stop"))
    )
    flags = pl.col("flags").fill_null(0)
    flagged = pl.when(excluded).then(flags | FLAG_WARM_UP).otherwise(flags)
    return joined.with_columns(flags=flagged.cast(messages.schema["flags"])).drop("first", "stop")


def first_counted_ns(parts: Iterable[pl.DataFrame], nodes: Sequence[Node]) -> int | None:
    """Return the begin (ns) of the first call without the flag; None if all are flagged."""
    callers = [node.node for node in nodes if node.sends]
    counted = (pl.col("flags") & FLAG_WARM_UP) == 0
    begins_ns = [
        calls.filter(counted).select(pl.min("begin_ns")).item()
        for calls in _own_calls(parts, callers)
    ]
    return min((int(begin_ns) for begin_ns in begins_ns if begin_ns is not None), default=None)


def _own_calls(batches: Iterable[pl.DataFrame], callers: list[int]) -> Iterator[pl.DataFrame]:
    """Yield, for each batch, the records that clients wrote of their calls."""
    for messages in batches:
        yield messages.filter(
            pl.col("node").is_in(callers),
            pl.col("node") == pl.col("sender"),
            pl.col("kind").is_in(CALL_KINDS),
        )


def _minimum_by_sender(frames: Iterable[pl.DataFrame]) -> dict[int, int | None]:
    """Return each sender's minimum over all frames; None if all its values are unknown."""
    minima: dict[int, int | None] = {}
    for frame in frames:
        for sender, value in frame.iter_rows():
            known = [item for item in (minima.get(sender), value) if item is not None]
            minima[sender] = min(known, default=None)
    return minima
