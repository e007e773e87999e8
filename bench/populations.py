"""Simulate runs: log responses of campaigns whose levels differ only by an added shift.

The arrays have shape (trials, blocks, levels), with one run per level and block. Every level has
the same location, so a shift that is added to a level is the true value for the intervals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import signal

FloatArray = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, int, int], FloatArray]

NORMAL_CV = 0.1
LOGNORMAL_SIGMA = 0.3
"""Three in four of a paper's 120 treatments have a smaller spread of energy between runs."""
CONTAMINATED_SHARE, CONTAMINATED_FACTOR = 0.1, 10.0
NOISY_FACTOR = 4.0
BLOCK_FACTOR = 4.0
CORRELATION = 0.6
SEED = 20_260_401


@dataclass(frozen=True)
class Population:
    """A distribution of runs. `sigma` is the standard deviation of the errors within blocks.

    `own` marks the block model itself. `held` marks the populations to which the promises of the
    default path apply.
    """

    name: str
    says: str
    draw: Draw
    sigma: float = 1.0
    own: bool = False
    held: bool = False
    level_by_level: bool = False
    """Whether the runs of a level are consecutive in the run order."""

    def order(self, blocks: int, levels: int) -> FloatArray:
        """Return the position of each run in the run order, shape (blocks·levels,), by block."""
        places = np.arange(blocks * levels, dtype=np.float64)
        if not self.level_by_level:
            return places
        return np.ascontiguousarray(places.reshape(levels, blocks).T).ravel()


def generator(population: Population, *cell: int) -> np.random.Generator:
    """Return the seeded generator of one cell, which is independent of the other cells."""
    return np.random.default_rng([SEED, *population.name.encode(), *cell])


def _lognormal(rng: np.random.Generator, trials: int, blocks: int, levels: int) -> FloatArray:
    return rng.normal(0.0, LOGNORMAL_SIGMA, (trials, blocks, levels))


def _normal(rng: np.random.Generator, trials: int, blocks: int, levels: int) -> FloatArray:
    values = np.log1p(NORMAL_CV * rng.standard_normal((trials, blocks, levels)))
    return np.asarray(values - _MEAN_OF_LOG_NORMAL, dtype=np.float64)


def _log_moments() -> tuple[float, float]:
    """Return mean and standard deviation of log(1 + NORMAL_CV·z) by Gauss–Hermite quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    weights = weights / weights.sum()
    # The response is not positive at the outermost nodes, whose weights are negligible.
    logs = np.log(np.maximum(1.0 + NORMAL_CV * nodes, 1e-3))
    mean = float(weights @ logs)
    return mean, float(np.sqrt(weights @ (logs - mean) ** 2))


_MEAN_OF_LOG_NORMAL, _SD_OF_LOG_NORMAL = _log_moments()


def _t3(rng: np.random.Generator, trials: int, blocks: int, levels: int) -> FloatArray:
    return rng.standard_t(3, (trials, blocks, levels))


def _blocked(rng: np.random.Generator, trials: int, blocks: int, levels: int) -> FloatArray:
    shared = BLOCK_FACTOR * rng.standard_normal((trials, blocks, 1))
    return shared + rng.standard_normal((trials, blocks, levels))


def _contaminated(rng: np.random.Generator, trials: int, blocks: int, levels: int) -> FloatArray:
    values = rng.standard_normal((trials, blocks, levels))
    is_contaminated = rng.random(values.shape) < CONTAMINATED_SHARE
    return np.where(is_contaminated, CONTAMINATED_FACTOR * values, values)


def _heteroscedastic(rng: np.random.Generator, trials: int, blocks: int, levels: int) -> FloatArray:
    values = rng.standard_normal((trials, blocks, levels))
    values[:, :, 1] *= NOISY_FACTOR
    return values


def _autocorrelated(rng: np.random.Generator, trials: int, blocks: int, levels: int) -> FloatArray:
    """Return errors that are AR(1) in the run order, with a random order within blocks."""
    warm_up = 50
    noise = rng.standard_normal((trials, warm_up + blocks * levels))
    series = signal.lfilter([1.0], [1.0, -CORRELATION], noise, axis=1)[:, warm_up:]
    errors = series.reshape(trials, blocks, levels)
    return np.asarray(rng.permuted(errors, axis=2), dtype=np.float64)


def _fixed_order(rng: np.random.Generator, trials: int, blocks: int, levels: int) -> FloatArray:
    """Return AR(1) errors with all runs of a level in sequence, as in a loop over treatments."""
    warm_up = 50
    noise = rng.standard_normal((trials, warm_up + blocks * levels))
    series = signal.lfilter([1.0], [1.0, -CORRELATION], noise, axis=1)[:, warm_up:]
    return np.ascontiguousarray(series.reshape(trials, levels, blocks).transpose(0, 2, 1))


def _skewed(rng: np.random.Generator, trials: int, blocks: int, levels: int) -> FloatArray:
    values = rng.lognormal(0.0, 1.0, (trials, blocks, levels))
    return np.asarray(values - np.exp(0.5), dtype=np.float64)


_SKEWED_SD = float(np.sqrt((np.e - 1.0) * np.e))
POPULATIONS = (
    Population("lognormal", f"lognormal responses, sigma {LOGNORMAL_SIGMA:g}", _lognormal,
               LOGNORMAL_SIGMA, own=True, held=True),
    Population("blocked", f"the same, blocks differing {BLOCK_FACTOR:g} times as much", _blocked,
               1.0, own=True, held=True),
    Population("normal", f"normal responses, CV {NORMAL_CV:.0%}", _normal, _SD_OF_LOG_NORMAL,
               held=True),
    Population("t3", "logs with t errors of 3 degrees", _t3, float(np.sqrt(3.0)), held=True),
    Population("heteroscedastic", f"one level scatters {NOISY_FACTOR:g} times as much",
               _heteroscedastic),
    Population("contaminated", f"{CONTAMINATED_SHARE:.0%} of runs scatter "
               f"{CONTAMINATED_FACTOR:g} times as much", _contaminated),
    Population("autocorrelated", f"AR(1) of {CORRELATION:g} along the runs, order random in blocks",
               _autocorrelated),
    Population("fixed order", "the same, each level's runs one after the other", _fixed_order,
               level_by_level=True),
    Population("skewed", "logs that are lognormal themselves, sigma 1", _skewed, _SKEWED_SD),
)  # fmt: skip
