"""Calibrate the energy (J) per second of CPU time with load steps in blocks.

What it computes: the range of c in P = idle + c × busy. P (W) is the machine's power, and busy
(cores) is its CPU time per second.
How: least squares within each block, so that drift between blocks does not affect the slope, and a
t interval over the slopes of the blocks. In addition, each load level is compared with the idle
steps of its block. The cost per core differs between one busy core and all cores, and the range
includes both. An interval above 0 does not prove that a counter responds, because one unresponsive
counter in forty has such an interval by chance. The common slope must therefore also pass a
one-sided t test at 0.1 % against the scatter of the steps.
What it misses: the cost of work that differs from the load; drift within a block.
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
"""Smallest rise of busy CPU time at which a level has its own estimate."""


@dataclass(frozen=True)
class Step:
    """One step of load: the cores requested, and the measured CPU time and power."""

    block: int
    requested_cores: float
    busy_cores: float
    power_w: float


@dataclass(frozen=True)
class Calibrated:
    """The energy c in J per CPU second.

    `slope` is the interval of the slope. `levels` contains the mean of each load level. The range
    from `low` to `high` includes the interval and all positive means.
    """

    slope: Interval
    levels: dict[float, float]
    low: float
    high: float


def joules_per_cpu_second(
    steps: Sequence[Step], confidence: float = 0.95
) -> Calibrated | BelowResolution | TooFew | NotComputable:
    """Return c in J per CPU second, from steps of at least three blocks.

    Each block has idle steps (`requested_cores` is 0) and loaded steps.
    """
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
        if np.ptp(busy) < RISE_CORES_MIN or not any(s.requested_cores == 0 for s in block):
            return NotComputable(
                f"in block {number}, the load did not increase the machine's CPU time, because "
                f"other programs used {busy.min():.2g} cores throughout; calibrate while these "
                "programs are idle"
            )
        loads.append(busy - busy.mean())
        power = np.array([s.power_w for s in block])
        powers.append(power - power.mean())
        slopes.append(_slope(loads[-1], powers[-1]))
        for cores, rise in _rises(block):
            rises[cores].append(rise)
    centre = float(np.mean(slopes))
    error = float(np.std(slopes, ddof=1) / np.sqrt(len(slopes)))
    margin = float(special.stdtrit(len(slopes) - 1, 0.5 + confidence / 2)) * error
    p = _slope_p(np.concatenate(loads), np.concatenate(powers), len(blocks))
    if centre - margin <= 0 or p > RESPONSE_P_MAX:
        return BelowResolution(max(0.0, centre + margin), confidence, len(slopes))
    slope = Interval(
        centre, centre - margin, centre + margin, confidence, len(slopes),
        "t, slopes within blocks", float(len(slopes) - 1),
    )  # fmt: skip
    levels = {cores: float(np.mean(level_rises)) for cores, level_rises in sorted(rises.items())}
    bounds = [slope.low, slope.high, *(c for c in levels.values() if c > 0)]
    return Calibrated(slope, levels, min(bounds), max(bounds))


def _slope(load: np.ndarray, power: np.ndarray) -> float:
    """Return the least-squares slope of power on load, both centred within their blocks."""
    return float(np.dot(load, power) / np.dot(load, load))


def _slope_p(load: np.ndarray, power: np.ndarray, blocks: int) -> float:
    """Return the one-sided p-value of the slope if power is independent of load.

    `load` and `power` are centred within their blocks. The scatter is measured around the common
    slope.
    """
    freedom = len(load) - blocks - 1
    slope = _slope(load, power)
    scatter = float(np.sum((power - slope * load) ** 2)) / freedom
    if scatter == 0.0:
        return 0.0 if slope > 0 else 1.0
    return float(special.stdtr(freedom, -(slope * np.sqrt(np.dot(load, load) / scatter))))


def _rises(block: Sequence[Step]) -> list[tuple[float, float]]:
    """Return (requested cores, J per CPU second) of each loaded step relative to the idle mean."""
    idle = [s for s in block if s.requested_cores == 0]
    base_w = float(np.mean([s.power_w for s in idle]))
    base_busy = float(np.mean([s.busy_cores for s in idle]))
    return [
        (s.requested_cores, (s.power_w - base_w) / (s.busy_cores - base_busy))
        for s in block
        if s.requested_cores > 0 and s.busy_cores - base_busy >= RISE_CORES_MIN
    ]
