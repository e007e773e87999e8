"""Derive the ledger of a run from its records."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from wattwire.model.deployment import Flow
from wattwire.model.ledger.fates import SCHEMA
from wattwire.model.ledger.passages import NEVER_NS, Passages
from wattwire.model.ledger.queues import Drain, Queues
from wattwire.model.ledger.rows import IDENTITY, calls, duplicates, unannounced

MESSAGE = "message"
"""Kind of the records of sent and received messages (C-25)."""
_OPTIONAL = {"intended_ns", "bytes"}
"""Columns of records that only some runs have."""


def announced(origins: Iterable[tuple[int, int, str]], flows: Sequence[Flow]) -> frozenset[int]:
    """Return the senders of messages without replies that have a record.

    `origins` contains the node, the sender and the kind of each record.
    """
    senders = {flow.sender for flow in flows if not flow.result}
    return frozenset(
        sender for node, sender, kind in origins if kind == MESSAGE and node in senders
    )


@dataclass(frozen=True)
class LedgerPart:
    """A part of a run: its records, the ledger of its deliveries, and the passages at relays.

    `deliveries` has the columns SCHEMA. Its arrivals are sorted by due time. `passages` are those
    of flows with relays.
    """

    records: pl.DataFrame
    deliveries: pl.DataFrame
    passages: Sequence[Passages]


def ledger(
    parts: Iterable[pl.DataFrame],
    flows: Sequence[Flow],
    known_senders: frozenset[int],
    late_after_ns: int = NEVER_NS,
    drain: Drain | None = None,
    unrecorded: Collection[int] = (),
) -> Iterator[LedgerPart]:
    """Yield the ledger of a run: one row per expected delivery and per duplicate.

    `parts` are the records by ascending counters, each counter in one part (`Messages.parts`).
    `known_senders` are the senders that `announced` returns for the run. Arrivals after
    `late_after_ns` are late.

    A message is undelivered, not lost, if no later message passed the same hop and the node behind
    the hop was still receiving when `drain` ended. Without `drain`, all missing messages are lost.
    The nodes in `unrecorded` left no records, for example because they were killed. Messages that
    may be undelivered come later than their records, in parts of their own without records. Until
    then, they take less memory than the latencies of messages that arrived.
    """
    one_way = [flow for flow in flows if not flow.result]
    queues = Queues(one_way, drain, unrecorded) if drain else None
    records = pl.DataFrame()
    for records in parts:
        rows, of_flows = _part(records, flows, known_senders, late_after_ns)
        if queues:
            rows = queues.settled(rows, of_flows)
        yield LedgerPart(records, rows, [p for p in of_flows if p.flow.relays])
        for lost in queues.lost() if queues else ():
            yield LedgerPart(records.clear(), lost, [])
    for rest in queues.rest() if queues else ():
        yield LedgerPart(records.clear(), rest, [])


def deliveries(
    records: pl.DataFrame, flows: Sequence[Flow], known_senders: frozenset[int] | None = None
) -> pl.DataFrame:
    """Return the ledger of records without a drain (columns: SCHEMA), sorted by due time.

    Flows without replies have one row per sent message and receiver, which ends at the entry of the
    callback. Flows of calls have one row per call, which ends at the reply.

    - `latency_us` starts when the message was due, so a late sender cannot hide its delay. In a
      closed loop, and for a message that a native timer sent early, it starts at the send call.
    - `since_send_us` starts at the send call.
    - Both are +inf for a delivery with a fate in MISSING. Both are null for an arrival whose
      payload is corrupt or too short for a send time, and for a duplicate.
    - The first arrival of a message determines its latency.
    - `warm_up` and `due_ns` come from the sender's record, so lost messages have them too. For a
      sender without records, they come from the arrivals, and both latencies start at the send
      call.
    """
    if known_senders is None:
        origins = records.select("node", "sender", "kind").unique().iter_rows()
        known_senders = announced(origins, flows)
    return _part(records, flows, known_senders, NEVER_NS)[0]


def infinite(rows: pl.DataFrame) -> int:
    """Return the number of deliveries in `rows` that did not arrive."""
    return int(rows["latency_us"].is_infinite().sum())


def _part(
    records: pl.DataFrame,
    flows: Sequence[Flow],
    known_senders: frozenset[int],
    late_after_ns: int,
) -> tuple[pl.DataFrame, list[Passages]]:
    """Return the rows of one part, and the passages of its flows without replies."""
    records = records.with_columns(
        pl.col("flags").cast(pl.Int64).fill_null(0),
        *(pl.lit(None, pl.Int64).alias(name) for name in _OPTIONAL - {*records.columns}),
    )
    frames = [
        calls(records, [f.sender for f in flows if f.result == kind], kind, late_after_ns)
        for kind in dict.fromkeys(flow.result for flow in flows if flow.result)
    ]
    of_flows = [Passages.of(records, flow) for flow in flows if not flow.result]
    for passages in of_flows:
        frames.append(passages.rows(late_after_ns))
        if passages.repeated.height:
            frames.append(duplicates(passages.repeated))
    if of_flows:
        unknown = _of_unannounced(records, of_flows, known_senders)
        frames += [unannounced(unknown)] if unknown.height else []
    frames = [frame for frame in frames if frame.height]
    if not frames:
        return pl.DataFrame(schema=SCHEMA), of_flows
    rows = pl.concat(frames)
    if len(frames) > 1 or not _is_sorted(rows["due_ns"]):
        rows = rows.sort("due_ns", *IDENTITY, nulls_last=True)
    return rows, of_flows


def _of_unannounced(
    records: pl.DataFrame, of_flows: Sequence[Passages], known_senders: frozenset[int]
) -> pl.DataFrame:
    """Return the arrivals at receivers of messages whose senders left no records."""
    receivers = sorted({node for passages in of_flows for node in passages.flow.receivers})
    return records.filter(
        ~pl.col("sender").is_in(sorted(known_senders)),
        pl.col("kind") == MESSAGE,
        pl.col("node").is_in(receivers),
        pl.col("end_ns").is_not_null(),
    )


def _is_sorted(due_ns: pl.Series) -> bool:
    """Return whether all times are known and increase, so that the order needs no other key."""
    return not due_ns.null_count() and bool((due_ns.diff().drop_nulls() > 0).all())
