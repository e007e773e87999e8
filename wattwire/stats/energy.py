"""Joules per message, and whether attributed costs add up.

What: energy per message from the power above the connected-silent baseline, paired in blocks;
the error of attributing two loads that ran together.
How: mean of ΔP over blocks with a t interval, divided by the achieved rate. Where the interval
reaches zero there is no number: only the upper limit. Additivity: cost together against the
sum of costs alone, run by run, as a ratio with a t interval.
What it misses: drift inside a block; a wake-up cost that saturates makes J per message depend
on the rate, so no slope over rates is taken.
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
    """J per message from one ΔP (W) and one achieved rate (1/s) per block, paired.

    Three blocks or more. Below t·SE(ΔP)/r the answer is `BelowResolution` with its limit.
    """
    delta = np.asarray(power_above_silent_w, dtype=np.float64)
    rates = np.asarray(rate_hz, dtype=np.float64)
    if delta.shape != rates.shape:
        raise ValueError(f"{delta.size} powers and {rates.size} rates; one of each per block")
    if delta.size < 3:
        return TooFew(delta.size, 3, "blocks with measured power")
    if not (np.isfinite(delta).all() and np.isfinite(rates).all() and (rates > 0).all()):
        return NotComputable("power or rate is missing or not positive in a block")
    per_message = delta / rates
    centre = float(np.mean(per_message))
    error = float(np.std(per_message, ddof=1) / np.sqrt(delta.size))
    half = float(special.stdtrit(delta.size - 1, 0.5 + confidence / 2)) * error
    if centre <= half:
        return BelowResolution(max(0.0, centre) + half, confidence, int(delta.size))
    return Interval(
        centre,
        centre - half,
        centre + half,
        confidence,
        int(delta.size),
        "t, paired in blocks",
        float(delta.size - 1),
    )


def additivity(
    together: Sequence[float], alone_sums: Sequence[float], confidence: float = 0.95
) -> Interval | TooFew | NotComputable:
    """Cost of loads run together over the sum of their lone costs, paired by block; 1 = adds up.

    Both in the same unit (ns of CPU time, J); three blocks or more.
    """
    both = np.asarray(together, dtype=np.float64)
    apart = np.asarray(alone_sums, dtype=np.float64)
    if both.shape != apart.shape:
        raise ValueError(f"{both.size} joint and {apart.size} lone costs; one of each per block")
    if (both <= 0).any() or (apart <= 0).any():
        return NotComputable("a cost is zero or negative")
    return geometric_mean(both / apart, confidence)
