"""Prepare groups of unpaired values for tests and intervals: refusals, and a scale for sums."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wattwire.stats.results import NotComputable, TooFew

FloatArray = NDArray[np.float64]
Unanswered = TooFew | NotComputable
Values = Sequence[float] | FloatArray

# Scatter below this share of the largest magnitude is rounding error.
ROUNDING = 1e-12


def arrays(groups: Sequence[Values]) -> list[FloatArray]:
    """Return the groups as arrays of shape (n,)."""
    return [np.asarray(group, dtype=np.float64).ravel() for group in groups]


def refuse_groups(
    groups: Sequence[FloatArray], least: int, finite: bool = True
) -> Unanswered | None:
    """Return the reason why these groups cannot be tested, or None.

    A test needs at least two groups of at least `least` values each. Groups with missing values are
    refused, because the caller decides whether to exclude values. Infinite values are refused if
    `finite` is set. Rank tests accept infinite values.
    """
    if len(groups) < 2:
        return TooFew(len(groups), 2, "groups")
    missing = sum(int(np.isnan(group).sum()) for group in groups)
    if missing:
        total = sum(group.size for group in groups)
        return NotComputable(f"missing in {missing} of {total} values")
    unbounded = sum(int(np.isinf(group).sum()) for group in groups)
    if finite and unbounded:
        return NotComputable(f"infinite in {unbounded} values, which only ranks can represent")
    smallest_size = min(group.size for group in groups)
    if smallest_size < least:
        return TooFew(smallest_size, least, "values in the smallest group")
    return None


def standardised(groups: Sequence[FloatArray]) -> list[FloatArray]:
    """Return finite groups, jointly shifted and scaled to −1 … 1, so that no square overflows.

    Use the result only for statistics that are invariant to shift and scale.
    """
    largest, centre, spread = _scaling(groups)
    if spread <= ROUNDING:
        return [np.zeros_like(group) for group in groups]
    return [(group / largest - centre) / spread for group in groups]


def unit(groups: Sequence[FloatArray]) -> float:
    """Return the size of one standardised unit in the data's unit, which may be infinite."""
    largest, _, spread = _scaling(groups)
    return largest * spread


def _scaling(groups: Sequence[FloatArray]) -> tuple[float, float, float]:
    all_values = np.concatenate(groups)
    largest = float(np.max(np.abs(all_values))) or 1.0
    centre = float(np.median(all_values / largest))
    return largest, centre, float(np.max(np.abs(all_values / largest - centre)))


def scatters(groups: Sequence[FloatArray]) -> bool:
    """Return whether the values of any standardised group differ by more than rounding error."""
    return any(float(np.ptp(group)) > ROUNDING for group in groups)


def no_scatter() -> NotComputable:
    """Return the result for groups in which all values are equal."""
    return NotComputable("no scatter within the groups: all values of each group are equal")
