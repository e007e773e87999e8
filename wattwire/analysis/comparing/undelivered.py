"""Messages lost and calls that failed: shares compared by their difference, not by a ratio.

Costs and latency say nothing of them: a head that drops a tenth of its messages may be as fast as
its base and cheaper. So they are compared whatever else is asked for, where there were any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from wattwire import stats
from wattwire.analysis.comparing.common import Runs, values_of
from wattwire.analysis.comparing.decision import (
    NOT_WORSE,
    UNCLEAR,
    WORSE,
    Estimate,
    Item,
    share_margin,
)
from wattwire.analysis.controls import differences, noise_floor
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.responses import Response, resolve
from wattwire.model.derived import FloatArray

SHARES = tuple(map(resolve, ("loss_share", "failed_share")))
NOTHING = "No message was lost and no call failed in the runs compared."
SAME = "the same in all runs"
RUNS_MIN = 3


def to_compare(
    sides: Sequence[tuple[Evidence, Sequence[Runs]]], asked: Sequence[Response]
) -> list[Response]:
    """Both shares where any run has some, and what was asked for in any case."""
    return [one for one in SHARES if one in asked or any(_some(*side, one) for side in sides)]


def _some(evidence: Evidence, tables: Sequence[Runs], response: Response) -> bool:
    return any(bool((values_of(evidence, runs, response) > 0).any()) for runs in tables)


def difference_of_blocks(base: FloatArray, head: FloatArray, level: float) -> Estimate:
    """Head − base of neighbours, one a block: its mean with a t interval."""
    apart = head - base
    if same := _without_scatter(apart, apart, level):
        return same
    return stats.block_intervals([apart], level)[0]


def difference_of_occasions(base: FloatArray, head: FloatArray, level: float) -> Estimate:
    """Head − base of runs of two occasions, by Welch's t."""
    if min(base.size, head.size) and (same := _without_scatter(head, base, level)):
        return replace(same, estimate=float(head[0] - base[0]), low=float(head[0] - base[0]),
                       high=float(head[0] - base[0]))  # fmt: skip
    return stats.welch_difference(head, base, level)


def _without_scatter(one: FloatArray, other: FloatArray, level: float) -> stats.Interval | None:
    """An interval without any width, where every run gave the same: three at least, or all 0."""
    if not one.size or np.ptp(one) > 0 or np.ptp(other) > 0:
        return None
    if min(one.size, other.size) < RUNS_MIN and (one.any() or other.any()):
        return None
    centre = float(one[0])
    return stats.Interval(centre, centre, centre, level, int(one.size), SAME)


def has_width(found: Estimate) -> bool:
    """Whether it is an interval that may miss, so that it counts in the family of all answers."""
    return isinstance(found, stats.Interval) and found.low < found.high


def judged_share(item: Item, noise: float | None, margin: float) -> Item:
    """The item with its verdict, by the rules of ratios; `noise` is a difference of shares."""
    found, most = item.difference, share_margin(margin)
    if not isinstance(found, stats.Interval):
        return replace(item, verdict=UNCLEAR, why=str(found))
    if found.high <= most:
        return replace(item, verdict=NOT_WORSE)
    if found.low <= most:
        return replace(item, verdict=UNCLEAR, why="the interval reaches across the margin")
    if noise is not None and found.estimate <= noise:
        why = f"two identical labels may differ by {100 * noise:.2g} percentage points"
        return replace(item, verdict=UNCLEAR, why=f"{why}: no difference is claimed")
    return replace(item, verdict=WORSE)


def noise_of_share(evidence: Evidence, response: Response) -> float | None:
    """By how much the share of two identical labels may differ; None without control runs."""
    return noise_floor(differences(evidence, response))


def notes(compared: Sequence[Response], margin: float) -> list[str]:
    """How shares were compared, or that there is nothing to compare."""
    if not compared:
        return [NOTHING]
    most = f"{100 * share_margin(margin):.4g}"
    unit = "percentage point" if most == "1" else "percentage points"
    return [
        "Shares of messages lost and of calls failed are compared by their difference, with a "
        f"margin of {most} {unit}."
    ]
