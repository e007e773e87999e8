"""The pairs of cells that the conformance suite checks."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from enum import Enum


class Pairs(Enum):
    """The choice of pairs, among a middleware's cells, that `check` runs in both directions."""

    NONE = "none"
    CROSS = "cross"
    """A ring (each cell with the next one) and a star (the first cell with all others).

    Every cell is a client and a server of at least two other cells, and the number of pairs grows
    only linearly with the number of cells.
    """
    ALL = "all"


def pairs_of(wires: Mapping[str, str], pairs: Pairs) -> list[tuple[str, str]]:
    """Return the pairs among cells (name → wire), each once, with the earlier cell first.

    Only cells of one middleware that speak the same wire have a pair.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for name, wire in wires.items():
        groups.setdefault((name.partition("/")[0], wire), []).append(name)
    chosen: dict[tuple[str, str], None] = {}
    for names in groups.values():
        if pairs is Pairs.ALL:
            chosen |= dict.fromkeys(itertools.combinations(names, 2))
        elif pairs is Pairs.CROSS and len(names) > 1:
            ring = [*itertools.pairwise(names), (names[0], names[-1])]
            star = [(names[0], partner) for partner in names[1:]]
            chosen |= dict.fromkeys([*ring, *star])
    return list(chosen)


def unpaired(wires: Mapping[str, str], name: str) -> str:
    """Return the reason a cell has no pair among `wires`; "" if it has one."""
    middleware, own_wire = name.partition("/")[0], wires[name]
    siblings = [
        sibling for sibling in wires if sibling.startswith(f"{middleware}/") and sibling != name
    ]
    if any(wires[sibling] == own_wire for sibling in siblings):
        return ""
    if not siblings:
        return f"no other cell of {middleware} is in this check"
    other_wires = sorted({wires[sibling] for sibling in siblings})
    return (
        f"it speaks {own_wire}, and the other cells of {middleware} speak {', '.join(other_wires)}"
    )


def partners(pairs: Sequence[tuple[str, str]], name: str, alone: bool) -> list[str]:
    """Return a cell's partners in the pairs where it is first, or in all if it is `alone`."""
    later = [second for first, second in pairs if first == name]
    return [first for first, second in pairs if alone and second == name] + later
