"""Estimate the number of blocks that a question needs, from the errors of a pilot campaign.

What it computes: the number of blocks for an interval of a given width or for equivalence within a
margin, and the smallest difference in joules per message that a given number of blocks resolves.
How: the error of the contrast in the pilot (`contrast_errors.py`) gives the variance of one block's
log ratio. The width of a t interval decreases with the square root of the number of blocks. The
power of an equivalence test is the probability that the whole interval is within the margin if the
true ratio is 1, averaged over the distribution of the sample standard deviation. A pilot estimates
the variance imprecisely, so the number of blocks is also computed with the upper PILOT_CONFIDENCE
limit of the variance.
What it misses: other machines and days than those of the pilot; heavy tails; incomplete blocks.
Reference: Kieser & Wassmer 1996, Biometrical Journal 38:941 (upper limit of a pilot's variance);
Schuirmann 1987, J. Pharmacokinetics and Biopharmaceutics 15:657 (two one-sided tests); Phillips
1990, same journal 18:137 (its power).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from wattwire.stats.blocked import Fit, Level, contrast_error, contrast_weights, is_estimable
from wattwire.stats.results import NotComputable, TooFew

Unanswered = TooFew | NotComputable

PILOT_CONFIDENCE = 0.8
POWER = 0.8
BLOCKS_MAX = 1_000_000
SPREADS = 2_000
"""Number of quantiles of the sample standard deviation over which the power is averaged."""


@dataclass(frozen=True)
class Pilot:
    """A pilot's variance of one block's log ratio for one contrast, with its degrees of freedom.

    The error of a campaign with n blocks has (n − 1)·`block_degrees` degrees of freedom.
    """

    block_variance: float
    degrees: float
    block_degrees: float
    block_count: int

    @property
    def cautious(self) -> Pilot:
        """Return this pilot with the upper PILOT_CONFIDENCE limit of its variance."""
        quantile = float(special.chdtri(self.degrees, PILOT_CONFIDENCE))
        variance = self.block_variance * self.degrees / quantile
        return Pilot(variance, self.degrees, self.block_degrees, self.block_count)


def pilot_of(
    fit: Fit, factor: str, level: Level, baseline: Level
) -> Pilot | TooFew | NotComputable:
    """Return the estimate for one contrast on the log scale from the fit of a pilot campaign."""
    if fit.kind != "treatments" or fit.degrees < 1:
        return TooFew(fit.block_count, 2, "blocks in the pilot")
    weights, strata = contrast_weights(fit, factor, level, baseline, None)
    if not strata or not is_estimable(fit, weights):
        return NotComputable(f"{factor}: {level} and {baseline} are not compared in the pilot")
    error, degrees = contrast_error(fit, weights)
    if not error > 0:
        return NotComputable("the pilot's runs do not scatter")
    blocks = fit.block_count
    return Pilot(error**2 * blocks, degrees, degrees / (blocks - 1), blocks)


def half_width(pilot: Pilot, blocks: int, confidence: float) -> float:
    """Return the predicted half width of the interval, as a share of the ratio (0.05 is ± 5 %)."""
    quantile = float(special.stdtrit((blocks - 1) * pilot.block_degrees, 0.5 + confidence / 2))
    return math.expm1(quantile * math.sqrt(pilot.block_variance / blocks))


def blocks_for_width(pilot: Pilot, width: float, confidence: float = 0.95) -> int | NotComputable:
    """Return the smallest number of blocks with a half width of at most `width`.

    `width` is a share of the ratio.
    """
    if not width > 0:
        raise ValueError(f"width: found {width}; allowed: a number above 0")
    return _fewest(lambda blocks: half_width(pilot, blocks, confidence) <= width)


def equivalence_power(pilot: Pilot, margin: float, blocks: int, confidence: float = 0.95) -> float:
    """Return the probability of an interval within 1/(1 + margin) … 1 + margin at a ratio of 1.

    `confidence` is the level of the two-sided interval; 0.90 is Schuirmann's test at 5 %.
    """
    degrees = (blocks - 1) * pilot.block_degrees
    error = math.sqrt(pilot.block_variance / blocks)
    quantile = float(special.stdtrit(degrees, 0.5 + confidence / 2))
    probabilities = (np.arange(SPREADS) + 0.5) / SPREADS
    deviations = np.sqrt(special.chdtri(degrees, 1.0 - probabilities) / degrees)
    distance = np.maximum(0.0, math.log1p(margin) / error - quantile * deviations)
    return float(np.mean(2.0 * special.ndtr(distance) - 1.0))


def blocks_for_equivalence(
    pilot: Pilot, margin: float, confidence: float = 0.95, power: float = POWER
) -> int | NotComputable:
    """Return the smallest number of blocks that show equivalence with probability `power`.

    The true ratio is assumed to be 1.
    """
    if not margin > 0:
        raise ValueError(f"margin: found {margin}; allowed: a number above 0")
    return _fewest(lambda blocks: equivalence_power(pilot, margin, blocks, confidence) >= power)


def message_resolution_j(
    delta_sd_w: float, rate_hz: float, blocks: int, confidence: float = 0.95
) -> float:
    """Return the smallest detectable energy (J) per message: t·SE(ΔP)/r.

    `delta_sd_w` is the standard deviation of the ΔP of one block. If the power of replicates has
    standard deviation `s` (W), the difference of two runs has √2·s.
    """
    quantile = float(special.stdtrit(blocks - 1, 0.5 + confidence / 2))
    return quantile * delta_sd_w / math.sqrt(blocks) / rate_hz


def blocks_for_message_energy(
    delta_sd_w: float, rate_hz: float, message_j: float, share: float, confidence: float = 0.95
) -> int | NotComputable:
    """Return the smallest number of blocks with a resolution of `share` · `message_j`."""
    resolution_j = share * message_j
    return _fewest(
        lambda blocks: message_resolution_j(delta_sd_w, rate_hz, blocks, confidence) <= resolution_j
    )


def _fewest(enough: Callable[[int], bool]) -> int | NotComputable:
    """Return the smallest number of blocks, at least 2, for which `enough` is true."""
    low, high = 1, 2
    while not enough(high):
        low, high = high, high * 2
        if high > BLOCKS_MAX:
            return NotComputable(f"more than {BLOCKS_MAX:,} blocks")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
