"""How many blocks a question takes, from the errors of a pilot campaign.

What: blocks for an interval of a wanted width, blocks for showing equivalence within a margin, and
the least difference in joules per message that so many blocks resolve.
How: the pilot's residual variance inside blocks and the contrast's own weights give the variance of
one block's log ratio; t intervals shrink with the root of the blocks. The power of equivalence is
that of the whole interval within the margin where the true ratio is 1, averaged over the errors
that a sample's own spread makes. Since a pilot knows its variance badly, the same is asked with the
variance's upper PILOT_CONFIDENCE limit.
What it misses: machines and days other than the pilot's; heavy tails; incomplete blocks to come.
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

from wattwire.stats.blocked import Fit, Level, contrast_weights, is_estimable
from wattwire.stats.results import NotComputable, TooFew

Unanswered = TooFew | NotComputable

PILOT_CONFIDENCE = 0.8
POWER = 0.8
BLOCKS_MAX = 1_000_000
SPREADS = 2_000
"""Quantiles of a sample's spread over which the power is averaged."""


@dataclass(frozen=True)
class Pilot:
    """What a pilot says of one contrast: the variance of a block's log ratio, and its degrees.

    A campaign of n blocks has (n − 1)·`block_degrees` degrees of freedom for its error.
    """

    block_variance: float
    degrees: int
    block_degrees: int
    block_count: int

    @property
    def cautious(self) -> Pilot:
        """The same with the variance's upper PILOT_CONFIDENCE limit."""
        quantile = float(special.chdtri(self.degrees, PILOT_CONFIDENCE))
        variance = self.block_variance * self.degrees / quantile
        return Pilot(variance, self.degrees, self.block_degrees, self.block_count)


def pilot_of(
    fit: Fit, factor: str, level: Level, baseline: Level
) -> Pilot | TooFew | NotComputable:
    """What the fit of a pilot campaign says of one contrast on the log scale."""
    if fit.kind != "treatments" or fit.degrees < 1:
        return TooFew(fit.block_count, 2, "blocks in the pilot")
    weights, strata = contrast_weights(fit, factor, level, baseline, None)
    if not strata or not is_estimable(fit, weights):
        return NotComputable(f"{factor}: {level} and {baseline} are not compared in the pilot")
    variance = fit.variance * float(weights @ fit.covariance_base @ weights) * fit.block_count
    if not variance > 0:
        return NotComputable("the pilot's runs do not scatter")
    return Pilot(variance, fit.degrees, max(1, len(fit.treatments) - 1), fit.block_count)


def half_width(pilot: Pilot, blocks: int, confidence: float) -> float:
    """How far the ratio's interval will reach, as a share of the ratio (0.05 for ± 5 %)."""
    quantile = float(special.stdtrit((blocks - 1) * pilot.block_degrees, 0.5 + confidence / 2))
    return math.expm1(quantile * math.sqrt(pilot.block_variance / blocks))


def blocks_for_width(pilot: Pilot, width: float, confidence: float = 0.95) -> int | NotComputable:
    """Fewest blocks whose interval reaches no further than `width` (a share of the ratio)."""
    if not width > 0:
        raise ValueError(f"width: {width} found, above 0 is allowed")
    return _fewest(lambda blocks: half_width(pilot, blocks, confidence) <= width)


def equivalence_power(pilot: Pilot, margin: float, blocks: int, confidence: float = 0.95) -> float:
    """Chance that the interval lies within 1/(1 + margin) … 1 + margin where the ratio is 1.

    `confidence` is that of the two-sided interval; 0.90 is Schuirmann's test at 5 %.
    """
    degrees = (blocks - 1) * pilot.block_degrees
    error = math.sqrt(pilot.block_variance / blocks)
    quantile = float(special.stdtrit(degrees, 0.5 + confidence / 2))
    shares = (np.arange(SPREADS) + 0.5) / SPREADS
    spread = np.sqrt(special.chdtri(degrees, 1.0 - shares) / degrees)
    room = np.maximum(0.0, math.log1p(margin) / error - quantile * spread)
    return float(np.mean(2.0 * special.ndtr(room) - 1.0))


def blocks_for_equivalence(
    pilot: Pilot, margin: float, confidence: float = 0.95, power: float = POWER
) -> int | NotComputable:
    """Fewest blocks that show equivalence with chance `power` where the true ratio is 1."""
    if not margin > 0:
        raise ValueError(f"margin: {margin} found, above 0 is allowed")
    return _fewest(lambda blocks: equivalence_power(pilot, margin, blocks, confidence) >= power)


def message_resolution_j(
    delta_sd_w: float, rate_hz: float, blocks: int, confidence: float = 0.95
) -> float:
    """Least joules per message told from none: t·SE(ΔP)/r, for one ΔP a block of sd `delta_sd_w`.

    Powers of two runs with `s` watts between like runs differ by √2·s.
    """
    quantile = float(special.stdtrit(blocks - 1, 0.5 + confidence / 2))
    return quantile * delta_sd_w / math.sqrt(blocks) / rate_hz


def blocks_for_message_energy(
    delta_sd_w: float, rate_hz: float, message_j: float, share: float, confidence: float = 0.95
) -> int | NotComputable:
    """Fewest blocks that know `message_j` joules per message to ± `share` of it."""
    wanted = share * message_j
    return _fewest(
        lambda blocks: message_resolution_j(delta_sd_w, rate_hz, blocks, confidence) <= wanted
    )


def _fewest(enough: Callable[[int], bool]) -> int | NotComputable:
    """The least count of blocks, 2 or more, from which on `enough` holds."""
    low, high = 1, 2
    while not enough(high):
        low, high = high, high * 2
        if high > BLOCKS_MAX:
            return NotComputable(f"more than {BLOCKS_MAX:,} blocks")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
