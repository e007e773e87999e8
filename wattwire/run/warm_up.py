"""Which records of a closed loop are warm-up, where the warm-up is counted in calls.

The contract's nodes know a warm-up by time only (C-13); calls are flagged here, after the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import polars as pl

from wattwire.model.records import FLAG_WARM_UP
from wattwire.run.specs import NodePlan

CALL_KINDS = ("call", "goal")


Batches = Callable[[], Iterable[pl.DataFrame]]
"""Gives the records piece by piece, each time it is called."""


def first_counters(batches: Batches, nodes: list[NodePlan], calls: int) -> dict[int, int]:
    """Return each client's first counter whose call is no warm-up; without it, all its calls are.

    Warm-up is what belongs to calls that began before every client had made `calls` of them. One
    moment parts the run for all: from there on costs are counted, too. A client that was faster
    than the last one has more than `calls` of its calls flagged. If any client never got so far,
    everything is warm-up.
    """
    callers = [node.node for node in nodes if node.sends]
    passed = _least(
        own.filter(pl.col("counter") >= calls).group_by("sender").agg(pl.col("begin_ns").min())
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


def flag_calls(messages: pl.DataFrame, first: Mapping[int, int]) -> pl.DataFrame:
    """Flag records whose call is warm-up by `first_counters`, at the server as at the client."""
    known = pl.DataFrame(
        {"sender": list(first), "first": list(first.values())},
        schema={"sender": messages.schema["sender"], "first": messages.schema["counter"]},
    )
    joined = messages.join(known, on="sender", how="left", maintain_order="left")
    # A client that was through with its calls by then has none that count.
    cold = pl.col("first").is_null() | (pl.col("counter") < pl.col("first"))
    flags = pl.col("flags").fill_null(0)
    flagged = pl.when(cold).then(flags | FLAG_WARM_UP).otherwise(flags)
    return joined.with_columns(flags=flagged.cast(messages.schema["flags"])).drop("first")


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
