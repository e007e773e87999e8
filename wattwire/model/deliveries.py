"""Derive the deliveries of a run, and from them all its latencies.

The quantiles of the summary, the curves of the page and the re-reading of older campaigns use the
same `deliveries`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from wattwire.model.deployment import Flow
from wattwire.model.sample_codes import FLAG_CORRUPT, FLAG_FAILED, FLAG_TIMEOUT, FLAG_WARM_UP

MESSAGE, GOAL = "message", "goal"
"""Kinds of the records of sent and received messages, and of accepted goals (C-25)."""

SCHEMA = {
    "node": pl.Int64, "sender": pl.Int64, "counter": pl.Int64, "due_ns": pl.Int64,
    "end_ns": pl.Int64, "warm_up": pl.Boolean, "failed": pl.Boolean, "latency_us": pl.Float64,
    "since_send_us": pl.Float64,
}  # fmt: skip
_IDENTITY = ("node", "sender", "counter")
LATENCY, SINCE_SEND = "latency", "since_send"
"""Stems of the columns: the time from the due time, and the time from the send call."""
LATENCY_QUANTILES = {
    "p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99, "p999": 0.999, "max": 1.0,
}  # fmt: skip
MISSED = {
    "soft_deadline_missed_share": (0.2, 5_000_000),
    "hard_deadline_missed_share": (1.0, 50_000_000),
}
"""Column → share of the period and upper limit (ns); the smaller of both is the deadline."""


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

    Flows without replies have one row per sent message and receiver, which ends at the entry of the
    callback. Flows of calls have one row per call, which ends at the reply. A row depends only on
    the records of one (sender, counter), so callers may process a run in parts. `known_senders`
    must then be the union of the senders that `announced` returns for all parts.

    - `latency_us` starts when the message was due, so a late sender cannot hide its delay. In a
      closed loop, and for a message that a native timer sent early, it starts at the send call.
    - `since_send_us` starts at the send call.
    - Both are +inf for a lost delivery (never arrived, timed out) and for a `failed` delivery (a
      call that ended with an error). Both are null for an arrival whose payload is corrupt or too
      short for a send time.
    - The first arrival of a message determines its latency. Later arrivals are duplicates.
    - `warm_up` and `due_ns` come from the sender's record, so lost messages have them too. For a
      sender without records, they come from the arrivals, and both latencies start at the send
      call.
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


def _with_latency(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the deliveries with their latencies, with the columns and types of SCHEMA.

    `frame` contains the `flags`, the due time `due_ns`, and the times `begin_ns` and `end_ns` of
    each arrival. A row without `end_ns` is lost.
    """
    lost = pl.col("end_ns").is_null() | _has(FLAG_TIMEOUT | FLAG_FAILED)

    def elapsed_us(start_ns: pl.Expr) -> pl.Expr:
        return (
            pl.when(lost)
            .then(pl.lit(math.inf))
            .when(_has(FLAG_CORRUPT) | pl.col("begin_ns").is_null())
            .then(None)
            .otherwise((pl.col("end_ns") - start_ns).cast(pl.Float64) / 1000.0)
        )

    frame = frame.with_columns(
        latency_us=elapsed_us(pl.min_horizontal("due_ns", "begin_ns")),
        since_send_us=elapsed_us(pl.col("begin_ns")),
        failed=_has(FLAG_FAILED),
    )
    return frame.select(*SCHEMA).cast(SCHEMA)  # type: ignore[arg-type]


def _due_ns() -> pl.Expr:
    """Return the due time (ns) of a sender's record; the send call if no due time is recorded."""
    return pl.coalesce("intended_ns", "begin_ns")


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
    return _with_latency(ended.with_columns(due_ns=_due_ns(), warm_up=_has(FLAG_WARM_UP)))


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
        .select("sender", "counter", due_ns=_due_ns(), warm_up=_has(FLAG_WARM_UP))
        .join(deliveries_of, on="sender")
    )
    unannounced = arrived.filter(~pl.col("sender").is_in(senders)).with_columns(
        due_ns=pl.col("begin_ns"), warm_up=_has(FLAG_WARM_UP)
    )
    matched = due.join(arrived, on=list(_IDENTITY), how="left").with_columns(
        pl.col("flags").fill_null(0)
    )
    expected = pl.concat([matched, unannounced.select(matched.columns)])
    return _with_latency(expected)


class LatencyTally:
    """Latency (µs) of a run without its warm-up, accumulated from parts of its deliveries."""

    def __init__(self) -> None:
        self.expected = 0
        """Deliveries after the warm-up of messages that were sent."""
        self._infinite = self._failed = 0
        self._values_us: dict[str, list[pl.Series]] = {LATENCY: [], SINCE_SEND: []}

    def add(self, expected: pl.DataFrame) -> None:
        """Add the deliveries of one part."""
        kept = expected.filter(~pl.col("warm_up"))
        self.expected += len(kept)
        self._infinite += infinite(kept)
        self._failed += int(kept["failed"].sum())
        arrived = kept.filter(pl.col("latency_us").is_finite())
        for stem, parts in self._values_us.items():
            parts.append(arrived[f"{stem}_us"])

    def summary(self, period_ns: int = 0, scheduled: int = 0) -> dict[str, float | None]:
        """Return the summary of all parts. Call this once, after the last part.

        A quantile is null (infinite) if it falls among messages that never arrived. `scheduled` is
        the number of deliveries after the warm-up that the schedule requires, 0 if unknown; those
        that were never sent are infinitely late, but have no time since a send call. Shares of
        missed deadlines require the period of an open loop; messages without arrival miss their
        deadlines.
        """
        unsent = max(0, scheduled - self.expected)
        infinite_of = {LATENCY: self._infinite + unsent, SINCE_SEND: self._infinite}
        summary: dict[str, float | None] = {
            "latency_samples": sum(map(len, self._values_us[LATENCY])),
            "expected_after_warmup": self.expected,
            "failed_after_warmup": self._failed,
            "lost_after_warmup": self._infinite - self._failed,
        }
        if scheduled:
            summary["unsent_after_warmup"] = unsent
        for stem, parts in self._values_us.items():
            values = concatenated(parts)
            values.sort()
            total = len(values) + infinite_of[stem]
            for name, share in LATENCY_QUANTILES.items():
                rank = quantile_rank(total, share) if total else 0
                at_rank = float(values[rank]) if rank < len(values) else None
                summary[f"{stem}_{name}_us"] = at_rank
            summary[f"{stem}_mean_us"] = float(values.mean()) if len(values) else None
            if stem == LATENCY and period_ns and total:
                summary |= _missed_shares(values, total, period_ns)
        return summary


def latency_summary(expected: pl.DataFrame) -> dict[str, float | None]:
    """Return the latency (µs) of one run from all its deliveries, without the warm-up."""
    tally = LatencyTally()
    tally.add(expected)
    return tally.summary()


def _missed_shares(
    values_us: npt.NDArray[np.float64], total: int, period_ns: int
) -> dict[str, float]:
    """Return the share of `total` deliveries that missed each deadline; the values are sorted."""
    shares = {}
    for name, (share, limit_ns) in MISSED.items():
        deadline_us = min(share * period_ns, limit_ns) / 1000
        in_time = int(np.searchsorted(values_us, deadline_us, side="right"))
        shares[name] = (total - in_time) / total
    return shares


def concatenated(parts: list[pl.Series]) -> npt.NDArray[np.float64]:
    """Return the values of all parts in one array, and empty `parts` to free memory."""
    values = np.concatenate([np.empty(0), *(part.to_numpy() for part in parts)])
    parts.clear()
    return values
