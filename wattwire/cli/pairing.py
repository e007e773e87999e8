"""Select the pairs of cells that the conformance suite checks."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from enum import Enum


class Pairs(Enum):
    """The pairs of a middleware's cells that `check` tests in both directions."""

    NONE = "none"
    CROSS = "cross"
    """A ring (each cell and the next) and a star (the first cell and all others). Each cell is
    client and server of at least two other cells. The number of pairs is linear in the number of
    cells.
    """
    ALL = "all"


def pairs_of(wires: Mapping[str, str], pairs: Pairs) -> list[tuple[str, str]]:
    """Return the pairs of cells to check, each pair once, with the earlier cell first.

    `wires` maps cell name → wire protocol. The cells of a pair have the same middleware and wire
    protocol.
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
    """Return the reason that a cell has no pair in `wires`, or "" if it has a pair."""
    middleware, own_wire = name.partition("/")[0], wires[name]
    siblings = [
        sibling for sibling in wires if sibling.startswith(f"{middleware}/") and sibling != name
    ]
    if any(wires[sibling] == own_wire for sibling in siblings):
        return ""
    if not siblings:
        return f"this check has no other cell of {middleware}"
    other_wires = sorted({wires[sibling] for sibling in siblings})
    return (
        f"it uses the wire format {own_wire}, and the other cells of {middleware} use "
        f"{', '.join(other_wires)}"
    )


def partners(pairs: Sequence[tuple[str, str]], name: str, alone: bool) -> list[str]:
    """Return the partners of a cell in the pairs in which it comes first.

    If `alone` is true, return its partners in all pairs.
    """
    later = [second for first, second in pairs if first == name]
    return [first for first, second in pairs if alone and second == name] + later
