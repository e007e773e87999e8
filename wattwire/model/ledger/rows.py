"""Build the rows of a ledger from records."""

from __future__ import annotations

import math

import polars as pl

from wattwire.model.ledger.fates import MISSING, SCHEMA, Fate
from wattwire.model.sample_codes import FLAG_CORRUPT, FLAG_FAILED, FLAG_TIMEOUT, FLAG_WARM_UP

GOAL = "goal"
"""Kind of the records of accepted goals (C-25)."""
IDENTITY = ["node", "sender", "counter"]


def has_flags(flags: int) -> pl.Expr:
    """Return an expression that is true for records with any of these flags."""
    return (pl.col("flags") & flags) != 0


_OF_RECORD = {
    "hop": pl.lit(0), "warm_up": has_flags(FLAG_WARM_UP), "is_corrupt": has_flags(FLAG_CORRUPT),
}  # fmt: skip
"""Columns of a delivery of which only one record exists or counts."""
OF_MISSING = ("node", "counter", "due_ns", "warm_up")
"""Columns of a missing message that are not the same for all messages of a hop."""


def calls(records: pl.DataFrame, callers: list[int], kind: str, late_after_ns: int) -> pl.DataFrame:
    """Return one row per call, from the callers' records; `kind` contains the result of a call.

    A goal without a result is also an expected delivery.
    """
    own = records.filter(pl.col("node").is_in(callers))
    ended = own.filter(pl.col("kind") == kind).sort("end_ns", nulls_last=True)
    first = ended.unique(IDENTITY, keep="first", maintain_order=True)
    repeated = len(ended) - len(first)
    goals = own.filter(pl.col("kind") == GOAL)
    if goals.height:
        goals = goals.unique(IDENTITY, keep="first", maintain_order=True)
        unanswered = goals.join(first, on=IDENTITY, how="anti")
        # `end_ns` of a goal is the time of its acceptance.
        first = pl.concat([first, unanswered.with_columns(end_ns=pl.lit(None, pl.Int64))])
    answered = pl.col("end_ns").is_not_null() & ~has_flags(FLAG_TIMEOUT | FLAG_FAILED)
    fate = (
        pl.when(answered)
        .then(pl.when(pl.col("end_ns") > late_after_ns).then(Fate.LATE).otherwise(Fate.ARRIVED))
        .when(has_flags(FLAG_FAILED))
        .then(Fate.FAILED)
        .otherwise(Fate.LOST)
    )
    due_ns = pl.coalesce("intended_ns", "begin_ns")
    rows = with_latency(first.with_columns(fate=fate, due_ns=due_ns, **_OF_RECORD))
    if not repeated:
        return rows
    again = ended.filter(~pl.struct(IDENTITY).is_first_distinct() & answered)
    return pl.concat([rows, duplicates(again)])


def unannounced(arrivals: pl.DataFrame) -> pl.DataFrame:
    """Return one row per receiver and message, from arrivals whose senders left no records."""
    first = arrivals.sort("end_ns", maintain_order=True)
    first = first.unique(IDENTITY, keep="first", maintain_order=True)
    fate, due_ns = pl.lit(Fate.UNKNOWN), pl.col("begin_ns")
    return with_latency(first.with_columns(fate=fate, due_ns=due_ns, **_OF_RECORD))


def duplicates(arrivals: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of arrivals beyond the first: their identity, without times."""
    names = ("due_ns", "begin_ns", "end_ns", "latency_us", "since_send_us")
    without_times = arrivals.with_columns(pl.lit(None).alias(name) for name in names)
    return _rows(without_times.with_columns(fate=pl.lit(Fate.DUPLICATE), **_OF_RECORD))


def missing(messages: pl.DataFrame, sender: int, hop: int, fate: Fate) -> pl.DataFrame:
    """Return the rows of the messages of a sender that are missing at a hop, from OF_MISSING."""
    unknown = pl.lit(None, pl.Int64)
    return with_latency(
        messages.with_columns(
            sender=pl.lit(sender),
            begin_ns=unknown,
            end_ns=unknown,
            bytes=pl.lit(0),
            is_corrupt=pl.lit(False),
            fate=pl.lit(fate),
            hop=pl.lit(hop),
        )
    )


def with_latency(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of deliveries from all other columns."""

    def elapsed_us(start_ns: pl.Expr) -> pl.Expr:
        return (
            pl.when(pl.col("fate").is_in(MISSING))
            .then(pl.lit(math.inf))
            .when(pl.col("is_corrupt") | pl.col("begin_ns").is_null())
            .then(None)
            .otherwise((pl.col("end_ns") - start_ns).cast(pl.Float64) / 1000.0)
        )

    return _rows(
        frame.with_columns(
            latency_us=elapsed_us(pl.min_horizontal("due_ns", "begin_ns")),
            since_send_us=elapsed_us(pl.col("begin_ns")),
        )
    )


def _rows(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame with the columns and types of a ledger."""
    return frame.select(*SCHEMA).cast(SCHEMA)  # type: ignore[arg-type]
