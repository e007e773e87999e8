"""Compare shares of lost messages and failed calls by differences instead of ratios.

Costs and latency do not reveal losses. A head that drops a tenth of its messages may be as fast as
its base, and cheaper. If any message was lost or any call failed, a comparison therefore always
includes these shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from wattwire import stats
from wattwire.analysis.responses import Response, resolve
from wattwire.analysis.topics.comparison.decision import Estimate, share_margin
from wattwire.analysis.topics.comparison.notes import SharesNote
from wattwire.analysis.topics.comparison.pairing import Runs
from wattwire.model.derived import FloatArray
from wattwire.model.verdict import Outcome

SHARES = tuple(map(resolve, ("loss_share", "failed_share")))
SAME = "the same in all runs"
INCOMPLETE = (Outcome.TIMED_OUT.value, Outcome.DIED.value)
"""Outcomes of runs that may lack a share; the comparison counts such runs."""
RUNS_MIN = 3


def to_compare(
    campaigns: Sequence[Sequence[Runs]], requested: Sequence[Response]
) -> list[Response]:
    """Return the shares to compare: requested shares, and shares above zero in any run."""
    treatments = [runs for campaign in campaigns for runs in campaign]
    return [
        share
        for share in SHARES
        if share in requested or any((runs.values(share) > 0).any() for runs in treatments)
    ]


def shares_note(
    campaigns: Sequence[Sequence[Runs]], compared: Sequence[Response], margin: float
) -> SharesNote:
    """Return the note on the margin of the compared shares, and on the shares that were observed.

    A share that is absent is not zero: commands and imported data may have neither share.
    """
    observed = tuple(
        share.column for share in SHARES if all(_observed(runs, share) for runs in campaigns)
    )
    return SharesNote(share_margin(margin) if compared else None, observed)


def _observed(treatments: Sequence[Runs], share: Response) -> bool:
    """Return whether all completed runs of the treatments have the share; at least one run has."""
    values = np.concatenate([runs.values(share) for runs in treatments])
    outcomes = [outcome for runs in treatments for outcome in runs.outcomes]
    known = np.isfinite(values)
    return bool(known.any()) and all(
        is_known or outcome in INCOMPLETE
        for is_known, outcome in zip(known.tolist(), outcomes, strict=True)
    )


def difference_of_blocks(base: FloatArray, head: FloatArray, level: float) -> Estimate:
    """Return the mean of head − base over blocks with a t interval.

    The arrays have one pair of values per block.
    """
    differences = head - base
    if interval := _without_scatter(differences, differences, level):
        return interval
    return stats.block_intervals([differences], level)[0]


def difference_of_occasions(base: FloatArray, head: FloatArray, level: float) -> Estimate:
    """Return the mean of head − base over unpaired runs with Welch's t interval."""
    if min(base.size, head.size) and (interval := _without_scatter(head, base, level)):
        return replace(interval, estimate=float(head[0] - base[0]), low=float(head[0] - base[0]),
                       high=float(head[0] - base[0]))  # fmt: skip
    return stats.welch_difference(head, base, level)


def _without_scatter(first: FloatArray, second: FloatArray, level: float) -> stats.Interval | None:
    """Return an interval of width zero if neither side has scatter, else None.

    Each side needs RUNS_MIN runs, unless all values are 0.
    """
    if not first.size or np.ptp(first) > 0 or np.ptp(second) > 0:
        return None
    if min(first.size, second.size) < RUNS_MIN and (first.any() or second.any()):
        return None
    centre = float(first[0])
    return stats.Interval(centre, centre, centre, level, int(first.size), SAME)


def from_zero(base: FloatArray, head: FloatArray) -> bool:
    """Return whether a run has 0 and all values are finite counts or amounts."""
    values = np.concatenate([base, head])
    is_amount = bool((np.isfinite(values) & (values >= 0)).all())
    return bool(base.size and head.size) and is_amount and not values.all()


def has_width(estimate: Estimate) -> bool:
    """Return whether `estimate` is an interval of nonzero width; only these count in the family."""
    return isinstance(estimate, stats.Interval) and estimate.low < estimate.high
