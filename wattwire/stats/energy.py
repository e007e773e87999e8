"""Estimate joules per message, and test the additivity of attributed costs.

What it computes: the energy per message from the power above the baseline of connected, silent
nodes, paired by block; the error of attributing energy to two loads that run simultaneously.
How: the mean of ΔP over blocks with a t interval, divided by the achieved rate. If the interval
includes zero, the result is an upper limit instead of an estimate. Additivity is the ratio of the
joint cost to the sum of the separate costs, by block, with a t interval.
What it misses: drift within a block. A wake-up cost that saturates makes the energy per message
depend on the rate, so no slope over rates is estimated.
Reference: Taylor, An Introduction to Error Analysis, ch. 4; JCGM 100:2008 (GUM), 5.1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import special

from wattwire.stats.blocked import geometric_mean
from wattwire.stats.results import BelowResolution, Interval, NotComputable, TooFew


def joules_per_message(
    power_above_silent_w: Sequence[float], rate_hz: Sequence[float], confidence: float = 0.95
) -> Interval | BelowResolution | TooFew | NotComputable:
    """Return J per message from one ΔP (W) and one achieved rate (1/s) per block.

    At least three blocks are required. Below the resolution t·SE(ΔP)/r, the result is
    `BelowResolution` with its limit.
    """
    power_w = np.asarray(power_above_silent_w, dtype=np.float64)
    rates_hz = np.asarray(rate_hz, dtype=np.float64)
    if power_w.shape != rates_hz.shape:
        raise ValueError(
            f"found {power_w.size} powers and {rates_hz.size} rates; "
            "allowed: the same number of each"
        )
    if power_w.size < 3:
        return TooFew(power_w.size, 3, "blocks with measured power")
    if not (np.isfinite(power_w).all() and np.isfinite(rates_hz).all() and (rates_hz > 0).all()):
        return NotComputable("power or rate is missing or not positive in a block")
    message_j = power_w / rates_hz
    centre = float(np.mean(message_j))
    error = float(np.std(message_j, ddof=1) / np.sqrt(power_w.size))
    margin = float(special.stdtrit(power_w.size - 1, 0.5 + confidence / 2)) * error
    if centre <= margin:
        return BelowResolution(max(0.0, centre) + margin, confidence, int(power_w.size))
    return Interval(
        centre,
        centre - margin,
        centre + margin,
        confidence,
        int(power_w.size),
        "t, paired in blocks",
        float(power_w.size - 1),
    )


def additivity(
    together: Sequence[float], alone_sums: Sequence[float], confidence: float = 0.95
) -> Interval | TooFew | NotComputable:
    """Return the ratio of the joint cost of loads to the sum of their costs, paired by block.

    A ratio of 1 means that costs are additive. Both costs are in the same unit (ns of CPU time, J).
    At least three blocks are required.
    """
    joint_costs = np.asarray(together, dtype=np.float64)
    lone_costs = np.asarray(alone_sums, dtype=np.float64)
    if joint_costs.shape != lone_costs.shape:
        raise ValueError(
            f"found {joint_costs.size} joint and {lone_costs.size} separate costs; "
            "allowed: the same number of each"
        )
    if (joint_costs <= 0).any() or (lone_costs <= 0).any():
        return NotComputable("a cost is zero or negative")
    return geometric_mean(joint_costs / lone_costs, confidence)
