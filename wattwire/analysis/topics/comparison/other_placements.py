"""Refuse a verdict on costs and times if the nodes of both sides ran in different placements.

Two nodes on one core exchange a message several times faster than on two cores, and the scheduler's
choice may differ between two occasions or two builds. The cause of a difference is then unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from wattwire.analysis.topics.comparison.decision import UNCLEAR, Item, OtherPlacement
from wattwire.analysis.topics.comparison.pairing import Case, Runs, Sides
from wattwire.analysis.topics.placements.apart import different_shares, shares_of
from wattwire.model.cores.topology import NEARNESS
from wattwire.model.derived import FloatArray

SIZES = ("bytes", "KiB")
"""Units of responses that do not depend on the placement."""


def in_equal_placements(items: Sequence[Item], cases: Sequence[Case]) -> list[Item]:
    """Return the items, without a verdict where base and head ran in different placements.

    Verdicts on losses, completed runs and sizes do not change. Neither do those on sides that
    differ in the factor `cores`, because the study asked for different placements.
    """
    sides = {
        (case.treatment, case.head_name): (_shares_of_runs(case.base), _shares_of_runs(case.head))
        for case in cases
        if case.base.cores == case.head.cores
    }
    known = {key: pair for key, pair in sides.items() if all(map(len, pair))}
    keys = [*known]
    compared = [[pair] for pair in known.values()]
    reasons = {
        keys[index]: _reason(share, known[keys[index]])
        for index, share in different_shares(compared)
    }
    return [
        replace(item, verdict=UNCLEAR, why=reasons[key])
        if (key := (item.treatment, item.head)) in reasons and _depends_on_placement(item)
        else item
        for item in items
    ]


def _shares_of_runs(runs: Runs) -> FloatArray:
    """Return the shares of NEARNESS of each run with readings, shape (runs, len(NEARNESS))."""
    shares = shares_of(runs.evidence.usable[list(runs.rows)])
    return shares[np.isfinite(shares).all(axis=1)]


def _reason(share: int, sides: Sides) -> OtherPlacement:
    base, head = (float(side[:, share].mean()) for side in sides)
    return OtherPlacement(NEARNESS[share], (base, head))


def _depends_on_placement(item: Item) -> bool:
    return not item.response.share and item.response.unit not in SIZES
