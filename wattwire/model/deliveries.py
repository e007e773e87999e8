"""What latency is of: every delivery that a run's senders asked for, each of them once.

The summary's quantiles and the page's curves are both made from `deliveries`; neither has a rule
of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import polars as pl

from wattwire.model.records import FLAG_CORRUPT, FLAG_FAILED, FLAG_TIMEOUT, FLAG_WARM_UP

CALLERS = {"client": "call", "ping": "call", "action_client": "result"}
"""Roles that wait for replies, and the kind of record that says how a call ended (C-27)."""
SUBSCRIBER, PUBLISHER = "subscriber", "publisher"

SCHEMA = {
    "node": pl.Int64, "sender": pl.Int64, "counter": pl.Int64, "due_ns": pl.Int64,
    "end_ns": pl.Int64, "warm_up": pl.Boolean, "failed": pl.Boolean, "latency_us": pl.Float64,
    "response_us": pl.Float64,
}  # fmt: skip
_IDENTITY = ("node", "sender", "counter")


def announced(origins: Iterable[tuple[int, int, str]], roles: Mapping[int, str]) -> frozenset[int]:
    """The publishers that left a record; `origins` are node, sender and kind of records."""
    return frozenset(
        sender
        for node, sender, kind in origins
        if kind == "message" and roles.get(node) == PUBLISHER
    )


def deliveries(
    messages: pl.DataFrame, roles: Mapping[int, str], known_senders: frozenset[int] | None = None
) -> pl.DataFrame:
    """Return a row (SCHEMA) per expected delivery, ordered by the time when it was due.

    Topics: a row per sent message and subscriber, from handed over to callback entered. Calls and
    actions: a row per call, from request to reply in hand. `roles` gives each node's role.
    Every row comes from records of one (sender, counter), so that a run may be taken in parts;
    then `known_senders` are those `announced` in any of them.

    - `latency_us` is +inf for what was lost (never arrived, timed out) or `failed` (a call that
      ended with an error). It is null for what arrived and has no latency: corrupt, or too short
      for a send time.
    - Of duplicates the first arrival counts.
    - `warm_up` and `due_ns` are the sender's own record of the message, so that a loss has them
      too. Only where a publisher left no record at all do its arrivals speak for themselves.
    - `response_us` runs from the intended time; null for topics.
    """
    role = pl.col("node").cast(pl.Int64).replace_strict(
        dict(roles), default=None, return_dtype=pl.String
    )  # fmt: skip
    known = messages.with_columns(
        pl.col("flags").cast(pl.Int64).fill_null(0), pl.col(_IDENTITY).cast(pl.Int64), role=role
    )
    if "intended_ns" not in known.columns:
        known = known.with_columns(intended_ns=pl.lit(None, pl.Int64))
    parts = [_calls(known, role, kind) for role, kind in CALLERS.items() if role in roles.values()]
    if PUBLISHER in roles.values() or SUBSCRIBER in roles.values():
        receivers = [n for n, role in roles.items() if role == SUBSCRIBER]
        parts.append(_topics(known, receivers, known_senders))
    if not parts:
        return pl.DataFrame(schema=SCHEMA)
    return pl.concat(parts).sort("due_ns", *_IDENTITY, nulls_last=True)


def infinite(frame: pl.DataFrame) -> int:
    """How many of these deliveries are lost or failed."""
    return int(frame["latency_us"].is_infinite().sum())


def quantile_rank(count: int, share: float) -> int:
    """Return the place, from 0, of the nearest-rank quantile among `count` ascending values."""
    return min(count, max(1, math.ceil(round(share * count, 9)))) - 1


def _has(flags: int) -> pl.Expr:
    return (pl.col("flags") & flags) != 0


def _shaped(frame: pl.DataFrame, response_us: pl.Expr) -> pl.DataFrame:
    """Give each delivery its latency; `flags` are the arrival's, `begin_ns` to `end_ns` its times.

    A row without `end_ns` is lost.
    """
    took_us = (pl.col("end_ns") - pl.col("begin_ns")).cast(pl.Float64) / 1000.0
    lost = pl.col("end_ns").is_null() | _has(FLAG_TIMEOUT | FLAG_FAILED)
    latency_us = (
        pl.when(lost).then(pl.lit(math.inf)).when(_has(FLAG_CORRUPT)).then(None).otherwise(took_us)
    )
    failed = _has(FLAG_FAILED)
    frame = frame.with_columns(latency_us=latency_us, response_us=response_us, failed=failed)
    frame = frame.with_columns(
        response_us=pl.when(pl.col("latency_us").is_finite()).then(pl.col("response_us"))
    )
    return frame.select(*SCHEMA).cast(SCHEMA)  # type: ignore[arg-type]


def _calls(known: pl.DataFrame, role: str, kind: str) -> pl.DataFrame:
    """Calls of one role by their callers' records; a goal without a result is due all the same."""
    own = known.filter(pl.col("role") == role)
    ended = own.filter(pl.col("kind") == kind).sort("end_ns", nulls_last=True)
    ended = ended.unique(_IDENTITY, keep="first", maintain_order=True)
    goals = own.filter(pl.col("kind") == "goal") if kind == "result" else own.clear()
    if goals.height:
        goals = goals.unique(_IDENTITY, keep="first", maintain_order=True)
        unanswered = goals.join(ended, on=list(_IDENTITY), how="anti")
        # Its `end_ns` is that of the acceptance, and no result.
        ended = pl.concat([ended, unanswered.with_columns(end_ns=pl.lit(None, pl.Int64))])
    ended = ended.with_columns(due_ns=pl.col("begin_ns"), warm_up=_has(FLAG_WARM_UP))
    return _shaped(ended, (pl.col("end_ns") - pl.col("intended_ns")).cast(pl.Float64) / 1000.0)


def _topics(
    known: pl.DataFrame, receivers: list[int], known_senders: frozenset[int] | None
) -> pl.DataFrame:
    """Sent messages × subscribers, each with its first arrival."""
    messages = known.filter(pl.col("kind") == "message")
    arrived = (
        messages.filter(pl.col("role") == SUBSCRIBER)
        .sort("end_ns")
        .unique(_IDENTITY, keep="first", maintain_order=True)
        .select(*_IDENTITY, "begin_ns", "end_ns", "flags")
    )
    published = messages.filter(pl.col("role") == PUBLISHER)
    senders = sorted(published["sender"].unique() if known_senders is None else known_senders)
    due = (
        published.filter(~_has(FLAG_FAILED))
        .unique(["sender", "counter"], keep="first", maintain_order=True)
        .select("sender", "counter", due_ns="begin_ns", warm_up=_has(FLAG_WARM_UP))
        .join(pl.DataFrame({"node": receivers}, schema={"node": pl.Int64}), how="cross")
    )
    unannounced = arrived.filter(~pl.col("sender").is_in(senders)).with_columns(
        due_ns=pl.col("begin_ns"), warm_up=_has(FLAG_WARM_UP)
    )
    matched = due.join(arrived, on=list(_IDENTITY), how="left").with_columns(
        pl.col("flags").fill_null(0)
    )
    every = pl.concat([matched, unannounced.select(matched.columns)])
    return _shaped(every, pl.lit(None, pl.Float64))
