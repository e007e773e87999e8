"""Joules per second of CPU time from steps of load, in blocks.

What: the range of c in P = idle + c x busy, where P (W) is the machine's power and busy (cores) the
CPU time that it uses per second.
How: least squares within each block, so that drift between blocks cannot become a slope; a t
interval over the blocks' slopes. Beside it each level of load against its own block's idle steps:
one busy core and all of them cost differently, and the range covers both. That a counter responds
at all takes more than an interval above 0, which chance gives one counter in forty: the common
slope must also stand out from the scatter of the steps around it, by a t test at 0.1 %.
What it misses: what other work than the load's costs; drift inside a block.
Reference: Draper & Smith, Applied Regression Analysis, ch. 1; JCGM 100:2008 (GUM), 4.2.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from wattwire.stats.results import BelowResolution, Interval, NotComputable, TooFew

BLOCKS_MIN = 3
RESPONSE_P_MAX = 0.001
RISE_CORES_MIN = 0.2
"""A level that raised the busy CPU time by less says nothing of its own."""


@dataclass(frozen=True)
class Step:
    """One step: what was asked of how many cores, and what was measured."""

    block: int
    asked_cores: float
    busy_cores: float
    power_w: float


@dataclass(frozen=True)
class Calibrated:
    """c in joules per CPU second: the interval of the slope, each level, the range over both."""

    slope: Interval
    levels: dict[float, float]
    low: float
    high: float


def joules_per_cpu_second(
    steps: Sequence[Step], confidence: float = 0.95
) -> Calibrated | BelowResolution | TooFew | NotComputable:
    """c from steps of at least three blocks, each with idle steps (asked_cores 0) and others."""
    blocks: dict[int, list[Step]] = defaultdict(list)
    for step in steps:
        blocks[step.block].append(step)
    if len(blocks) < BLOCKS_MIN:
        return TooFew(len(blocks), BLOCKS_MIN, "blocks of load steps")
    slopes, rises = [], defaultdict(list)
    loads: list[np.ndarray] = []
    powers: list[np.ndarray] = []
    for number, block in sorted(blocks.items()):
        busy = np.array([s.busy_cores for s in block])
        if np.ptp(busy) < RISE_CORES_MIN or not any(s.asked_cores == 0 for s in block):
            return NotComputable(
                f"in block {number} the load did not show in the machine's CPU time: other "
                f"programs kept {busy.min():.2g} cores busy throughout. Calibrate while they rest"
            )
        loads.append(busy - busy.mean())
        power = np.array([s.power_w for s in block])
        powers.append(power - power.mean())
        slopes.append(_slope(loads[-1], powers[-1]))
        for asked, rise in _rises(block):
            rises[asked].append(rise)
    centre = float(np.mean(slopes))
    error = float(np.std(slopes, ddof=1) / np.sqrt(len(slopes)))
    half = float(special.stdtrit(len(slopes) - 1, 0.5 + confidence / 2)) * error
    p = _chance_of(np.concatenate(loads), np.concatenate(powers), len(blocks))
    if centre - half <= 0 or p > RESPONSE_P_MAX:
        return BelowResolution(max(0.0, centre + half), confidence, len(slopes))
    slope = Interval(
        centre, centre - half, centre + half, confidence, len(slopes), "t, slopes within blocks",
        float(len(slopes) - 1),
    )  # fmt: skip
    levels = {asked: float(np.mean(found)) for asked, found in sorted(rises.items())}
    bounds = [slope.low, slope.high, *(c for c in levels.values() if c > 0)]
    return Calibrated(slope, levels, min(bounds), max(bounds))


def _slope(load: np.ndarray, power: np.ndarray) -> float:
    """Least squares of what is centred within its block."""
    return float(np.dot(load, power) / np.dot(load, load))


def _chance_of(load: np.ndarray, power: np.ndarray, blocks: int) -> float:
    """How often chance gives so steep a rise where power does not depend on load: one-sided p.

    Both are centred within their blocks; the scatter is that around the common slope.
    """
    freedom = len(load) - blocks - 1
    slope = _slope(load, power)
    scatter = float(np.sum((power - slope * load) ** 2)) / freedom
    if scatter == 0.0:
        return 0.0 if slope > 0 else 1.0
    return float(special.stdtr(freedom, -(slope * np.sqrt(np.dot(load, load) / scatter))))


def _rises(block: Sequence[Step]) -> list[tuple[float, float]]:
    """Each loaded step against the mean of its block's idle ones: (asked cores, J per CPU s)."""
    idle = [s for s in block if s.asked_cores == 0]
    base_w = float(np.mean([s.power_w for s in idle]))
    base = float(np.mean([s.busy_cores for s in idle]))
    return [
        (s.asked_cores, (s.power_w - base_w) / (s.busy_cores - base))
        for s in block
        if s.asked_cores > 0 and s.busy_cores - base >= RISE_CORES_MIN
    ]
