"""Which cells the conformance suite pairs with which."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from enum import Enum


class Pairs(Enum):
    """Which pairs of a middleware's cells `check` runs, each in both directions."""

    NONE = "none"
    CROSS = "cross"
    """A ring, each cell with the next one, and a star, the first one with all others: every cell
    is a client and a server of two strangers or more, for a number of pairs that is linear."""
    ALL = "all"


def pairs_of(wires: Mapping[str, str], pairs: Pairs) -> list[tuple[str, str]]:
    """The pairs among cells (name → wire), each once, with the earlier cell first.

    Only cells of one middleware that speak the same wire have a pair.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for name, wire in wires.items():
        groups.setdefault((name.partition("/")[0], wire), []).append(name)
    found: dict[tuple[str, str], None] = {}
    for names in groups.values():
        if pairs is Pairs.ALL:
            found |= dict.fromkeys(itertools.combinations(names, 2))
        elif pairs is Pairs.CROSS and len(names) > 1:
            ring = [*itertools.pairwise(names), (names[0], names[-1])]
            star = [(names[0], other) for other in names[1:]]
            found |= dict.fromkeys([*ring, *star])
    return list(found)


def unpaired(wires: Mapping[str, str], name: str) -> str:
    """Why a cell has no pair among `wires`; nothing where it has one."""
    middleware, own = name.partition("/")[0], wires[name]
    others = [other for other in wires if other.startswith(f"{middleware}/") and other != name]
    if any(wires[other] == own for other in others):
        return ""
    if not others:
        return f"no other cell of {middleware} is checked with it"
    spoken = sorted({wires[other] for other in others})
    return f"it speaks {own}, and the other cells of {middleware} speak {', '.join(spoken)}"


def partners(found: Sequence[tuple[str, str]], name: str, alone: bool) -> list[str]:
    """Whom a cell is checked with: the later one of each pair, or both where it is `alone`."""
    later = [second for first, second in found if first == name]
    return [first for first, second in found if alone and second == name] + later
