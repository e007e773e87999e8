"""Messages of one run, counted end to end: expected = unique received + failed + lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from wattwire.model.deliveries import deliveries, infinite, quantile_rank
from wattwire.model.records import FLAG_CORRUPT, FLAG_FAILED, FLAG_TIMEOUT, FLAG_WARM_UP
from wattwire.run.specs import NodePlan

CALL_KINDS = ("call", "result")
LATENCY_QUANTILES = {"p50": 0.50, "p90": 0.90, "p99": 0.99}
NONE_FAILED = np.empty(0, dtype=np.uint64)


@dataclass(frozen=True)
class Pair:
    """One expected stream: `sent` messages of `sender` that `receiver` is to get.

    sent = unique + failed + lost. Only calls fail: they end with an error before their timeout.
    """

    sender: int
    receiver: int
    sent: int
    unique: int
    lost: tuple[int, ...]
    duplicates: int
    out_of_range: int
    failed: int = 0


def count_pairs(messages: pl.DataFrame, nodes: list[NodePlan]) -> list[Pair]:
    """Loss per (sender, receiver). For calls the receiver of the reply is the sender itself."""
    pairs: list[Pair] = []
    for node in nodes:
        if not node.sends:
            continue
        if node.role == "publisher":
            sent = _counters(_sent_records(messages, node))
            receivers = [other.node for other in nodes if other.role == "subscriber"]
            arrived = messages.filter(pl.col("kind") == "message", pl.col("sender") == node.node)
            pairs += [
                _pair(node.node, r, sent, arrived.filter(pl.col("node") == r)) for r in receivers
            ]
        else:
            calls = _sent_records(messages, node)
            bad = FLAG_TIMEOUT | FLAG_FAILED
            answered = calls.filter((pl.col("flags") & bad) == 0)
            failed = _counters(calls.filter((pl.col("flags") & FLAG_FAILED) != 0))
            pairs.append(_pair(node.node, node.node, _counters(calls), answered, failed))
    return pairs


def _counters(frame: pl.DataFrame) -> npt.NDArray[np.uint64]:
    return frame["counter"].unique().sort().to_numpy().astype(np.uint64)


def _pair(
    sender: int,
    receiver: int,
    sent: npt.NDArray[np.uint64],
    arrived: pl.DataFrame,
    failed: npt.NDArray[np.uint64] = NONE_FAILED,
) -> Pair:
    unique = _counters(arrived)
    in_range = np.intersect1d(unique, sent, assume_unique=True)
    missing = np.setdiff1d(sent, unique, assume_unique=True)
    lost = np.setdiff1d(missing, failed, assume_unique=True)
    return Pair(
        sender,
        receiver,
        len(sent),
        len(in_range),
        tuple(int(c) for c in lost),
        len(arrived) - len(unique),
        len(unique) - len(in_range),
        len(missing) - len(lost),
    )


def expected_deliveries(messages: pl.DataFrame, nodes: list[NodePlan]) -> pl.DataFrame:
    """What the run's latency and losses are of (`model/deliveries.py`), warm-up included."""
    return deliveries(messages, {node.node: node.role for node in nodes})


def latency_summary(expected: pl.DataFrame) -> dict[str, float | None]:
    """Latency of one run in µs, warm-up left out. A quantile among lost messages and
    failed calls is null (infinite)."""
    kept = expected.filter(~pl.col("warm_up"))
    values = np.sort(kept.filter(pl.col("latency_us").is_finite())["latency_us"].to_numpy())
    unanswered, failed = infinite(kept), int(kept["failed"].sum())
    total = len(values) + unanswered
    summary: dict[str, float | None] = {
        "latency_samples": len(values),
        "expected_after_warmup": len(kept),
        "failed_after_warmup": failed,
        "lost_after_warmup": unanswered - failed,
    }
    for name, share in LATENCY_QUANTILES.items():
        at = quantile_rank(total, share) if total else 0
        summary[f"latency_{name}_us"] = float(values[at]) if at < len(values) else None
    summary["latency_mean_us"] = float(values.mean()) if len(values) else None
    response_us = kept["response_us"].drop_nulls()
    summary["response_p50_us"] = (
        float(response_us.median()) if len(response_us) else None  # type: ignore[arg-type]
    )
    return summary


def cost_window_start_ns(
    messages: pl.DataFrame, nodes: list[NodePlan], start_ns: int, warmup_ns: int, closed: bool
) -> int:
    """Return when the warm-up is over for every sender; costs count from here on.

    By time in open loop. In closed loop by the flags of the callers' records, whoever set them
    and why: the begin of the first call without the flag, of the caller that was last to get
    there. A caller whose calls are all warm-up holds it until its last one ends.
    """
    over_ns = start_ns + warmup_ns
    for node in nodes if closed else []:
        calls = _sent_records(messages, node) if node.sends else messages.clear()
        is_warm_up = (pl.col("flags") & FLAG_WARM_UP) != 0
        cold = calls.filter(is_warm_up)
        if cold.is_empty():
            continue
        settled = calls.filter(~is_warm_up)
        last_ns = cold.select(pl.max_horizontal("begin_ns", "end_ns").max())
        begins_ns = last_ns if settled.is_empty() else settled.select(pl.col("begin_ns").min())
        over_ns = max(over_ns, int(begins_ns.item()))
    return over_ns


def sent_since(messages: pl.DataFrame, nodes: list[NodePlan], begin_ns: int) -> int:
    """How many messages or calls the senders handed over at `begin_ns` or later."""
    return sum(
        len(_counters(_sent_records(messages, node).filter(pl.col("begin_ns") >= begin_ns)))
        for node in nodes
        if node.sends
    )


def _sent_records(messages: pl.DataFrame, node: NodePlan) -> pl.DataFrame:
    """A sender's own records of what it sent: taken messages; calls, taken or not."""
    own = messages.filter(pl.col("node") == node.node)
    if node.role == "publisher":
        return own.filter((pl.col("flags") & FLAG_FAILED) == 0)
    return own.filter(pl.col("kind").is_in(CALL_KINDS))


def schedule_lateness_us(messages: pl.DataFrame) -> dict[str, float | None]:
    """How late senders began, against their schedule, warm-up left out: p50 and p99, µs."""
    own = messages.filter(
        pl.col("node") == pl.col("sender"),
        pl.col("intended_ns").is_not_null(),
        (pl.col("flags") & FLAG_WARM_UP) == 0,
    )
    if own.is_empty():
        return {"schedule_late_p50_us": None, "schedule_late_p99_us": None}
    late = (own["begin_ns"] - own["intended_ns"]) / 1000.0
    return {
        "schedule_late_p50_us": float(late.quantile(0.5) or 0.0),
        "schedule_late_p99_us": float(late.quantile(0.99) or 0.0),
    }


def count_summary(
    messages: pl.DataFrame, pairs: list[Pair], expected: pl.DataFrame, late_after_ns: int
) -> dict[str, Any]:
    """Counts of one run, warm-up included. `late`: first arrivals in the drain's second half."""
    senders = {p.sender: p.sent for p in pairs}
    corrupt = messages.filter((pl.col("flags") & FLAG_CORRUPT) != 0)
    return {
        "sent": sum(senders.values()),
        "expected": sum(p.sent for p in pairs),
        "received_unique": sum(p.unique for p in pairs),
        "failed": sum(p.failed for p in pairs),
        "lost": sum(len(p.lost) for p in pairs),
        "duplicates": sum(p.duplicates for p in pairs),
        "late": int((expected["end_ns"] > late_after_ns).sum()),
        "corrupt": len(corrupt),
    }
