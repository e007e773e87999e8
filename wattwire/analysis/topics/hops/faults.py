"""Find the messages that each hop of a path lost, doubled, swapped, altered or did not record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

import polars as pl

from wattwire.model.deployment import Flow
from wattwire.model.ledger import Fate, deliveries
from wattwire.model.sample_codes import FLAG_CORRUPT, FLAG_FAILED

KINDS = ("lost", "doubled", "swapped", "altered", "unrecorded")


@dataclass(frozen=True)
class HopFaults:
    """The counters of the messages with faults at one hop, which leads to `node` of the path.

    - `lost`: the message is missing at this hop in the ledger.
    - `doubled`: the node has more records of the message than the node before.
    - `swapped`: the message arrived at another rank than at the node before.
    - `altered`: the message is corrupt here, and was not at the node before.
    - `unrecorded`: a later node has a record of the message, but this node has none.
    """

    hop: int
    node: int
    lost: frozenset[int] = frozenset()
    doubled: frozenset[int] = frozenset()
    swapped: frozenset[int] = frozenset()
    altered: frozenset[int] = frozenset()
    unrecorded: frozenset[int] = frozenset()

    @property
    def faults(self) -> dict[str, frozenset[int]]:
        """Return kind → counters, without kinds that have no message."""
        return {kind: counters for kind in KINDS if (counters := getattr(self, kind))}


@dataclass(frozen=True)
class _Stage:
    """The passages of one node: its messages in the order of arrival, and their properties."""

    order: tuple[int, ...]
    counts: Counter[int]
    corrupt: frozenset[int]

    @property
    def present(self) -> frozenset[int]:
        return frozenset(self.order)

    def ranks(self, among: Collection[int]) -> dict[int, int]:
        """Return message → its rank among these messages."""
        return {message: rank for rank, message in enumerate(m for m in self.order if m in among)}


def hop_faults(messages: pl.DataFrame, flow: Flow) -> list[HopFaults]:
    """Return the faults of each hop of a flow with one receiver, from hop 1.

    All records are of the messages of the flow's sender, and their times on one clock.
    """
    path = (flow.sender, *flow.relays, *flow.receivers)
    own = messages.filter(pl.col("sender") == flow.sender)
    lost = deliveries(own, [flow]).filter(pl.col("fate") == Fate.LOST)
    stages = [
        _stage(own.filter(pl.col("node") == node), position, len(path) - 1)
        for position, node in enumerate(path)
    ]
    found = []
    for hop in range(1, len(path)):
        before, here = stages[hop - 1], stages[hop]
        later = frozenset().union(*(stage.present for stage in stages[hop + 1 :]))
        common = before.present & here.present
        ranks_before, ranks_here = before.ranks(common), here.ranks(common)
        found.append(
            HopFaults(
                hop,
                path[hop],
                lost=frozenset(lost.filter(pl.col("hop") == hop)["counter"]),
                doubled=frozenset(
                    m for m, count in here.counts.items() if count > max(1, before.counts[m])
                ),
                swapped=frozenset(m for m in common if ranks_before[m] != ranks_here[m]),
                altered=here.corrupt - before.corrupt,
                unrecorded=later - here.present,
            )
        )
    return found


def _stage(records: pl.DataFrame, position: int, last: int) -> _Stage:
    arrival = "begin_ns" if position == 0 else "end_ns" if position == last else "intended_ns"
    if position == 0:
        records = records.filter((pl.col("flags") & FLAG_FAILED) == 0)
    counters = records.sort(arrival)["counter"].to_list()
    corrupt = records.filter((pl.col("flags") & FLAG_CORRUPT) != 0)["counter"].to_list()
    return _Stage(tuple(dict.fromkeys(counters)), Counter(counters), frozenset(corrupt))
