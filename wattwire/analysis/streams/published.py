"""Divide the records of a probe among the publishers of a window."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wattwire.analysis.streams.recorded import NO_SEQUENCE, Graph, Records

LOOKBACK_NS = 60_000_000_000
"""Time (ns) before the window in which a message is looked for that arrives again."""


@dataclass(frozen=True)
class Published:
    """The records of one publisher, or of several that followed one another."""

    fact: Mapping[str, Any]
    before: Records
    inside: Records
    after: Records
    """Records shortly before, in and after the window."""
    messages_before: int
    """Number of all messages before the window."""
    gone_ns: int | None
    publishers: int = 1

    @property
    def is_numbered(self) -> bool:
        numbers = self.inside["sequence"]
        return bool(numbers.size) and not bool(np.any(numbers == NO_SEQUENCE))

    def shifted(self, by: int) -> Published:
        """Return the same records with other numbers of their publications."""
        parts = {name: getattr(self, name).copy() for name in ("before", "inside", "after")}
        for records in parts.values():
            records["sequence"] += np.uint64(by % (1 << 64))
        return replace(self, **parts)

    @property
    def numbers(self) -> NDArray[np.uint64]:
        parts = (self.before, self.inside, self.after)
        return np.concatenate([records["sequence"] for records in parts])


def published_in(graph: Graph, records: Records, begin_ns: int, end_ns: int) -> Iterator[Published]:
    """Yield the records of each publisher of the window, also of those without a message.

    Where messages do not name their publisher, the publishers that the graph names have none.
    """
    since, begin = np.searchsorted(records["monotonic_ns"], [begin_ns - LOOKBACK_NS, begin_ns])
    highest = max(graph.streams, default=0)
    counts_before = np.bincount(records["stream"][:begin], minlength=highest + 1)
    records = records[since:]
    order = np.argsort(records["stream"], kind="stable")
    indices = records["stream"][order]
    unattributed = {f["topic"] for f in graph.streams.values() if f.get("mark")}
    for index, fact in graph.streams.items():
        own = records[order[slice(*np.searchsorted(indices, [index, index + 1]))]]
        first, last = np.searchsorted(own["monotonic_ns"], [begin_ns, end_ns])
        gone_ns = graph.gone_ns.get(index)
        if first == last and (
            fact.get("read") is False
            or (gone_ns is not None and gone_ns < begin_ns)
            or (fact.get("topic") in unattributed and not counts_before[index] and not own.size)
        ):
            continue
        before = int(counts_before[index])
        yield Published(fact, own[:first], own[first:last], own[last:], before, gone_ns)


def successors_joined(published: list[Published]) -> list[Published]:
    """Return the publishers, joined if those of one node and topic followed one another."""
    by_name: dict[tuple[str, str], list[Published]] = {}
    for one in published:
        if one.inside.size and one.fact.get("node"):
            by_name.setdefault((one.fact.get("topic", ""), one.fact["node"]), []).append(one)
    joined = {id(one): one for one in published}
    for several in by_name.values():
        several.sort(key=lambda one: int(one.inside["monotonic_ns"][0]))
        if any(
            earlier.inside["monotonic_ns"][-1] >= later.inside["monotonic_ns"][0]
            for earlier, later in zip(several, several[1:], strict=False)
        ):
            continue
        successor = several[0]
        for one in several[1:]:
            del joined[id(successor)], joined[id(one)]
            successor = _joined(successor, one)
            joined[id(successor)] = successor
    return list(joined.values())


def _joined(earlier: Published, later: Published) -> Published:
    """Return the records of two publishers, whose numbers continue from one to the other."""
    if earlier.is_numbered and later.is_numbered:
        later = later.shifted(int(earlier.numbers.max()) + 1 - int(later.numbers.min()))
    hosts = {earlier.fact.get("same_host"), later.fact.get("same_host")}
    return Published(
        {**later.fact, "same_host": hosts.pop() if len(hosts) == 1 else None},
        np.concatenate([earlier.before, later.before]),
        np.concatenate([earlier.inside, later.inside]),
        np.concatenate([earlier.after, later.after]),
        earlier.messages_before + later.messages_before,
        later.gone_ns,
        earlier.publishers + later.publishers,
    )
