"""Follow the messages of a flow without replies from their sender over relays to receivers."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from wattwire.model.deployment import Flow
from wattwire.model.ledger.fates import Fate
from wattwire.model.ledger.rows import has_flags, with_latency
from wattwire.model.sample_codes import FLAG_CORRUPT, FLAG_FAILED, FLAG_WARM_UP

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
NEVER_NS = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Passages:
    """The first passage of each sent message at each stage of a flow, shape (stages, messages).

    Stage 0 is the sender. The relays follow in their order, then all receivers. NEVER_NS means
    that a stage has no record of a message. `counters`, `due_ns` and `warm_up` have shape
    (messages,), and the counters ascend. `repeated` are the records of arrivals beyond the first.
    """

    flow: Flow
    counters: Integers
    due_ns: Integers
    warm_up: Mask
    arrived_ns: Integers
    departed_ns: Integers
    corrupt: Mask
    sizes_bytes: Integers
    repeated: pl.DataFrame

    @classmethod
    def of(cls, records: pl.DataFrame, flow: Flow) -> Passages:
        """Return the passages of a flow in one part of a run's records."""
        own = records.filter(
            pl.col("sender") == flow.sender,
            pl.col("node").is_in(flow.nodes),
            (pl.col("node") != flow.sender) | ~has_flags(FLAG_FAILED),
        )
        counters, flags = own["counter"].to_numpy(), own["flags"].to_numpy()
        times = own.select(pl.col("intended_ns", "begin_ns", "end_ns").fill_null(NEVER_NS))
        intended_ns, begin_ns, end_ns = (times[name].to_numpy() for name in times.columns)
        stage, relays = _stages(own["node"].to_numpy(), flow), len(flow.relays)
        arrived_ns = np.select([stage == 0, stage <= relays], [begin_ns, intended_ns], end_ns)

        sent = np.unique(counters[stage == 0])
        message = np.searchsorted(sent, counters)
        is_sent = message < len(sent)
        is_sent[is_sent] = sent[message[is_sent]] == counters[is_sent]
        # Assign in descending order of arrival, so that the first arrival remains.
        order = np.flatnonzero(is_sent)
        order = order[np.argsort(arrived_ns[order], kind="stable")[::-1]]
        record = np.full((len(flow.nodes), len(sent)), -1)
        record[stage[order], message[order]] = order
        is_repeated = is_sent & (stage > relays) & (arrived_ns != NEVER_NS)
        is_repeated[record[record >= 0]] = False

        def at_stages(values: npt.NDArray[np.int64], default: int) -> Integers:
            return np.append(values, default)[record]  # record is -1 at stages without one

        return cls(
            flow,
            counters=sent.astype(np.int64),
            due_ns=at_stages(np.where(intended_ns == NEVER_NS, begin_ns, intended_ns), NEVER_NS)[0],
            warm_up=(at_stages(flags, 0)[0] & FLAG_WARM_UP) != 0,
            arrived_ns=at_stages(arrived_ns, NEVER_NS),
            departed_ns=at_stages(begin_ns, NEVER_NS),
            corrupt=(at_stages(flags, 0) & FLAG_CORRUPT) != 0,
            sizes_bytes=at_stages(own["bytes"].fill_null(0).to_numpy(), 0),
            repeated=own.filter(pl.Series(is_repeated)),
        )

    @functools.cached_property
    def passed(self) -> Mask:
        """Return whether each message reached a stage or a later one, shape (stages, messages).

        The record of a relay may be missing, so a message that reached any later node has passed
        it. No stage follows a receiver.
        """
        passed, last = self.arrived_ns != NEVER_NS, len(self.flow.relays)
        passed[0] = True
        passed[last] |= passed[last + 1 :].any(axis=0)
        passed[: last + 1] = np.logical_or.accumulate(passed[: last + 1][::-1])[::-1]
        return passed

    def rows(self, late_after_ns: int) -> pl.DataFrame:
        """Return the ledger of the flow by counter and receiver, without duplicates.

        Missing messages are lost.
        """
        receivers, relays = self.flow.receivers, len(self.flow.relays)
        each = len(receivers)
        end_ns, begin_ns, is_corrupt, sizes_bytes = (
            values[relays + 1 :].T.ravel()
            for values in (self.arrived_ns, self.departed_ns, self.corrupt, self.sizes_bytes)
        )
        has_arrived = end_ns != NEVER_NS
        received = np.where(end_ns > late_after_ns, np.uint8(Fate.LATE), np.uint8(Fate.ARRIVED))
        hop = np.repeat(self.passed[: relays + 1].sum(axis=0, dtype=np.uint8), each)
        frame = pl.DataFrame({
            "node": np.tile(np.array(receivers, np.int64), len(self.counters)),
            "sender": np.full(len(end_ns), self.flow.sender),
            "counter": np.repeat(self.counters, each),
            "due_ns": np.repeat(self.due_ns, each),
            "begin_ns": begin_ns,
            "end_ns": end_ns,
            "bytes": sizes_bytes,
            "warm_up": np.repeat(self.warm_up, each),
            "is_corrupt": is_corrupt,
            "fate": np.where(has_arrived, received, np.uint8(Fate.LOST)),
            "hop": np.where(has_arrived, np.uint8(0), hop),
        })  # fmt: skip
        times = (pl.col(name) for name in ("due_ns", "begin_ns", "end_ns"))
        return with_latency(frame.with_columns(pl.when(at != NEVER_NS).then(at) for at in times))


def _stages(nodes: npt.NDArray[np.integer], flow: Flow) -> Integers:
    """Return the stage of each record's node in the flow."""
    numbers = np.array(flow.nodes, nodes.dtype)
    in_order = np.argsort(numbers)
    return in_order[np.searchsorted(numbers[in_order], nodes)]
