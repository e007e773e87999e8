"""Place the nodes of a graph in rows, and route its edges between them.

How: each node is below the senders of its messages, as far as the graph has no loop (longest path).
An edge over several rows passes an empty place in each row between (Sugiyama, Tagawa & Toda 1981).
Nodes and empty places are sorted by the mean place of their neighbours above, then below.
What it misses: the least number of crossings, whose computation takes exponential time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

ROW_NODES_MAX = 5
"""Maximum number of nodes in a row, whose boxes then have room for a name."""
NODE_WIDTH, EMPTY_SHARE = 0.18, 0.3
"""Least width of a node, of which ROW_NODES_MAX fit, and the part of it that an empty place has."""
SWEEPS = 4
Edge = tuple[str, str]
Route = list[tuple[float, float]]
"""Points (x, y) from the sender to the receiver; x is from 0 to 1, and y is the row from 0."""


def placed(nodes: Sequence[str], edges: Iterable[Edge]) -> tuple[dict[str, Route], list[Route]]:
    """Return node → its point as a route of one, and a route per edge, in the order of `edges`."""
    edges = list(edges)
    ranks = _ranks(nodes, edges)
    rows = _rows(nodes, ranks)
    row_of = {node: at for at, row in enumerate(rows) for node in row}
    places: list[list[str]] = [list(row) for row in rows]
    chains: list[list[str]] = []
    for number, (sender, receiver) in enumerate(edges):
        first, last = row_of[sender], row_of[receiver]
        step = 1 if last >= first else -1
        between = [f"@{number}@{row}" for row in range(first + step, last, step)]
        for name in between:
            places[int(name.rpartition("@")[2])].append(name)
        chains.append([sender, *between, receiver])
    x = _sorted(places, chains)
    y = {name: float(at) for at, row in enumerate(places) for name in row}
    points = {name: (x[name], y[name]) for name in x}
    return {node: [points[node]] for node in nodes}, [[points[n] for n in c] for c in chains]


def _ranks(nodes: Sequence[str], edges: Sequence[Edge]) -> dict[str, int]:
    """Return the length of the longest path to each node, without the edges that close a loop."""
    order = {node: at for at, node in enumerate(_order(nodes, edges))}
    ranks = dict.fromkeys(nodes, 0)
    for sender, receiver in sorted(edges, key=lambda edge: order[edge[0]]):
        if order[sender] < order[receiver]:
            ranks[receiver] = max(ranks[receiver], ranks[sender] + 1)
    return ranks


def _order(nodes: Sequence[str], edges: Iterable[Edge]) -> list[str]:
    """Return the nodes in an order that few edges oppose (Eades, Lin & Smyth 1993).

    Nodes without receivers are last, those without senders first. In a loop, the node with the most
    receivers more than senders is next.
    """
    left = dict.fromkeys(nodes)
    present = {edge for edge in edges if edge[0] != edge[1]}
    first: list[str] = []
    last: list[str] = []
    while left:
        outgoing, incoming = Counter(s for s, _ in present), Counter(r for _, r in present)
        node = next((n for n in left if not outgoing[n]), None)
        if node is not None:
            last.insert(0, node)
        else:
            node = next((n for n in left if not incoming[n]), None) or max(
                left, key=lambda n: outgoing[n] - incoming[n]
            )
            first.append(node)
        del left[node]
        present = {edge for edge in present if node not in edge}
    return first + last


def _rows(nodes: Sequence[str], ranks: Mapping[str, int]) -> list[list[str]]:
    """Return the nodes by rank; a rank with more than ROW_NODES_MAX nodes has several rows."""
    rows: list[list[str]] = []
    for rank in sorted(set(ranks.values())):
        row = [node for node in nodes if ranks[node] == rank]
        parts = -(-len(row) // ROW_NODES_MAX)
        size = -(-len(row) // parts)
        rows += [row[at : at + size] for at in range(0, len(row), size)]
    return rows


def _sorted(places: list[list[str]], chains: Sequence[Sequence[str]]) -> dict[str, float]:
    """Sort the rows by their neighbours, and return the x of each place."""
    neighbours: dict[str, list[str]] = {}
    for chain in chains:
        for one, other in zip(chain, chain[1:], strict=False):
            neighbours.setdefault(one, []).append(other)
            neighbours.setdefault(other, []).append(one)
    x: dict[str, float] = {}
    row_of = {name: at for at, row in enumerate(places) for name in row}

    def spread(row: list[str]) -> None:
        nodes = sum(not name.startswith("@") for name in row)
        empty = len(row) - nodes
        width = max(NODE_WIDTH, 1 / (nodes + EMPTY_SHARE * empty)) if nodes else 0.0
        of_empty = (1 - nodes * width) / empty if empty else 0.0
        begin = 0.0
        for name in row:
            end = begin + (of_empty if name.startswith("@") else width)
            x[name], begin = (begin + end) / 2, end

    for row in places:
        spread(row)
    for sweep in range(SWEEPS):
        step = 1 if sweep % 2 == 0 else -1
        for at in range(len(places))[::step]:

            def mean(name: str, at: int = at, step: int = step) -> float:
                aligned = [x[n] for n in neighbours.get(name, ()) if (row_of[n] - at) * step < 0]
                return sum(aligned) / len(aligned) if aligned else x[name]

            places[at].sort(key=mean)
            spread(places[at])
    return x
