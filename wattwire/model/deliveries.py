"""Derive the deliveries of a run, from which all its latencies are computed.

The quantiles of the summary and the curves of the page use the same `deliveries`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import polars as pl

from wattwire.model.deployment import Flow
from wattwire.model.sample_codes import FLAG_CORRUPT, FLAG_FAILED, FLAG_TIMEOUT, FLAG_WARM_UP

MESSAGE, GOAL = "message", "goal"
"""Kinds of the records of sent and received messages, and of accepted goals (C-25)."""

SCHEMA = {
    "node": pl.Int64, "sender": pl.Int64, "counter": pl.Int64, "due_ns": pl.Int64,
    "end_ns": pl.Int64, "warm_up": pl.Boolean, "failed": pl.Boolean, "latency_us": pl.Float64,
    "response_us": pl.Float64,
}  # fmt: skip
_IDENTITY = ("node", "sender", "counter")


def announced(origins: Iterable[tuple[int, int, str]], flows: Sequence[Flow]) -> frozenset[int]:
    """Return the senders of messages without replies that have a record.

    `origins` contains the node, the sender and the kind of each record.
    """
    senders = {flow.sender for flow in flows if not flow.result}
    return frozenset(
        sender for node, sender, kind in origins if kind == MESSAGE and node in senders
    )


def deliveries(
    messages: pl.DataFrame, flows: Sequence[Flow], known_senders: frozenset[int] | None = None
) -> pl.DataFrame:
    """Return one row per expected delivery (columns: SCHEMA), sorted by due time.

    Flows without replies have one row per sent message and receiver, timed from hand-over to entry
    of the callback. Flows of calls have one row per call, timed from the request to the reply. A
    row depends only on the records of one (sender, counter), so callers may process a run in parts.
    `known_senders` must then be the union of the senders that `announced` returns for all parts.

    - `latency_us` is +inf for a lost delivery (never arrived, timed out) and for a `failed`
      delivery (a call that ended with an error). It is null for an arrival whose payload is corrupt
      or too short for a send time.
    - The first arrival of a message determines its latency. Later arrivals are duplicates.
    - `warm_up` and `due_ns` come from the sender's record, so lost messages have them too. For a
      sender without records, they come from the arrivals.
    - `response_us` starts at the intended send time. It is null for messages without replies.
    """
    records = messages.with_columns(
        pl.col("flags").cast(pl.Int64).fill_null(0), pl.col(_IDENTITY).cast(pl.Int64)
    )
    if "intended_ns" not in records.columns:
        records = records.with_columns(intended_ns=pl.lit(None, pl.Int64))
    kinds = dict.fromkeys(flow.result for flow in flows if flow.result)
    frames = [
        _calls(records, [flow.sender for flow in flows if flow.result == kind], kind)
        for kind in kinds
    ]
    one_way = [flow for flow in flows if not flow.result]
    if one_way:
        frames.append(_messages(records, one_way, known_senders))
    if not frames:
        return pl.DataFrame(schema=SCHEMA)
    return pl.concat(frames).sort("due_ns", *_IDENTITY, nulls_last=True)


def infinite(frame: pl.DataFrame) -> int:
    """Return the number of lost or failed deliveries in `frame`."""
    return int(frame["latency_us"].is_infinite().sum())


def quantile_rank(count: int, share: float) -> int:
    """Return the 0-based index of the nearest-rank quantile `share` in `count` sorted values."""
    return min(count, max(1, math.ceil(round(share * count, 9)))) - 1


def _has(flags: int) -> pl.Expr:
    """Return an expression that is true for records with any of these flags."""
    return (pl.col("flags") & flags) != 0


def _with_latency(frame: pl.DataFrame, response_us: pl.Expr) -> pl.DataFrame:
    """Return the deliveries with their latencies, with the columns and types of SCHEMA.

    `frame` contains the `flags` and the times `begin_ns` and `end_ns` of each arrival. A row
    without `end_ns` is lost.
    """
    elapsed_us = (pl.col("end_ns") - pl.col("begin_ns")).cast(pl.Float64) / 1000.0
    lost = pl.col("end_ns").is_null() | _has(FLAG_TIMEOUT | FLAG_FAILED)
    latency_us = (
        pl.when(lost)
        .then(pl.lit(math.inf))
        .when(_has(FLAG_CORRUPT))
        .then(None)
        .otherwise(elapsed_us)
    )
    failed = _has(FLAG_FAILED)
    frame = frame.with_columns(latency_us=latency_us, response_us=response_us, failed=failed)
    frame = frame.with_columns(
        response_us=pl.when(pl.col("latency_us").is_finite()).then(pl.col("response_us"))
    )
    return frame.select(*SCHEMA).cast(SCHEMA)  # type: ignore[arg-type]


def _calls(records: pl.DataFrame, callers: list[int], kind: str) -> pl.DataFrame:
    """Return one row per call, from the callers' records; `kind` contains the result of a call.

    A goal without a result is also an expected delivery.
    """
    own_records = records.filter(pl.col("node").is_in(callers))
    ended = own_records.filter(pl.col("kind") == kind).sort("end_ns", nulls_last=True)
    ended = ended.unique(_IDENTITY, keep="first", maintain_order=True)
    goals = own_records.filter(pl.col("kind") == GOAL)
    if goals.height:
        goals = goals.unique(_IDENTITY, keep="first", maintain_order=True)
        unanswered = goals.join(ended, on=list(_IDENTITY), how="anti")
        # `end_ns` of a goal is the time of its acceptance.
        ended = pl.concat([ended, unanswered.with_columns(end_ns=pl.lit(None, pl.Int64))])
    ended = ended.with_columns(due_ns=pl.col("begin_ns"), warm_up=_has(FLAG_WARM_UP))
    return _with_latency(
        ended, (pl.col("end_ns") - pl.col("intended_ns")).cast(pl.Float64) / 1000.0
    )


def _messages(
    records: pl.DataFrame, flows: Sequence[Flow], known_senders: frozenset[int] | None
) -> pl.DataFrame:
    """Return one row per sent message and receiver, with the first arrival if there is one."""
    messages = records.filter(pl.col("kind") == MESSAGE)
    ends = [(flow.sender, receiver) for flow in flows for receiver in flow.receivers]
    deliveries_of = pl.DataFrame(ends, schema={"sender": pl.Int64, "node": pl.Int64}, orient="row")
    arrived = (
        messages.filter(pl.col("node").is_in(sorted({receiver for _, receiver in ends})))
        .sort("end_ns")
        .unique(_IDENTITY, keep="first", maintain_order=True)
        .select(*_IDENTITY, "begin_ns", "end_ns", "flags")
    )
    sent = messages.filter(pl.col("node").is_in([flow.sender for flow in flows]))
    senders = sorted(sent["sender"].unique() if known_senders is None else known_senders)
    due = (
        sent.filter(~_has(FLAG_FAILED))
        .unique(["sender", "counter"], keep="first", maintain_order=True)
        .select("sender", "counter", due_ns="begin_ns", warm_up=_has(FLAG_WARM_UP))
        .join(deliveries_of, on="sender")
    )
    unannounced = arrived.filter(~pl.col("sender").is_in(senders)).with_columns(
        due_ns=pl.col("begin_ns"), warm_up=_has(FLAG_WARM_UP)
    )
    matched = due.join(arrived, on=list(_IDENTITY), how="left").with_columns(
        pl.col("flags").fill_null(0)
    )
    expected = pl.concat([matched, unannounced.select(matched.columns)])
    return _with_latency(expected, pl.lit(None, pl.Float64))
