"""Which records of a closed loop are warm-up, where the warm-up is counted in calls.

The contract's nodes know a warm-up by time only (C-13); calls are flagged here, after the run.
"""

from __future__ import annotations

import polars as pl

from wattwire.model.records import FLAG_WARM_UP
from wattwire.run.specs import NodePlan

CALL_KINDS = ("call", "goal")


def flag_calls(messages: pl.DataFrame, nodes: list[NodePlan], calls: int) -> pl.DataFrame:
    """Flag what belongs to calls that began before every client had made `calls` of them.

    One moment parts the run for all: from there on costs are counted, too. A client that was
    faster than the last one has more than `calls` of its calls flagged. If any client never got
    so far, everything is warm-up. Records at the server carry the flag of their call.
    """
    callers = [node.node for node in nodes if node.sends]
    if not calls or not callers or messages.is_empty():
        return messages
    own = messages.filter(
        pl.col("node").is_in(callers),
        pl.col("node") == pl.col("sender"),
        pl.col("kind").is_in(CALL_KINDS),
    )
    passed = own.filter(pl.col("counter") >= calls).group_by("node").agg(pl.col("begin_ns").min())
    if passed.height < len(callers):
        cold = pl.lit(True)
    else:
        later = own.filter(pl.col("begin_ns") >= passed["begin_ns"].max())
        first = later.group_by("sender").agg(first=pl.col("counter").min())
        messages = messages.join(first, on="sender", how="left", maintain_order="left")
        # A client that was through with its calls by then has none that count.
        cold = pl.col("first").is_null() | (pl.col("counter") < pl.col("first"))
    flags = pl.col("flags").fill_null(0)
    flagged = pl.when(cold).then(flags | FLAG_WARM_UP).otherwise(flags)
    return messages.with_columns(flags=flagged.cast(messages.schema["flags"])).drop(
        "first", strict=False
    )


def first_counted_ns(messages: pl.DataFrame, nodes: list[NodePlan]) -> int | None:
    """When the first call began that `flag_calls` left without a flag; None without such a call."""
    own = messages.filter(
        pl.col("node").is_in([node.node for node in nodes if node.sends]),
        pl.col("node") == pl.col("sender"),
        pl.col("kind").is_in(CALL_KINDS),
        (pl.col("flags") & FLAG_WARM_UP) == 0,
    )
    first = own["begin_ns"].min()
    return None if first is None else int(first)  # type: ignore[arg-type]
