"""Simulate the classes of a run's latencies, with and without spikes.

The promise: with 3 % spikes, at most 5 % of stationary series have another class than "flat" or
"cannot tell", and at least 95 % of series whose first 20 % are ten times slower show a warm-up.
"""

from __future__ import annotations

import numpy as np

from bench.populations import SEED, FloatArray
from wattwire import stats
from wattwire.stats.series.warm_up import CANNOT_TELL, FLAT, WARM_UP

LENGTHS = (360, 1125)
SERIES_MAX = 1_000
TYPICAL_US, SPREAD, SPIKE_SHARE, SPIKE_US, SLOWER = 150.0, 0.2, 0.03, 3000.0, 10.0
SLOW_SHARES = (0.0, 0.1, 0.2)
LEAST = 0.95


def latencies(rng: np.random.Generator, count: int, slow: float, spikes: bool) -> FloatArray:
    """Return a series of latencies in µs, slower in the first share `slow` of it."""
    values = TYPICAL_US * np.exp(rng.normal(0.0, SPREAD, count))
    values[: int(slow * count)] *= SLOWER
    hit = rng.random(count) < (SPIKE_SHARE if spikes else 0.0)
    return np.asarray(values + hit * rng.exponential(SPIKE_US, count), dtype=np.float64)


def main(trials: int) -> None:
    """Print the share of each class, and the broken promises."""
    series = min(trials, SERIES_MAX)
    print(f"\n## Steady state of a run, {series:,} series a row\n")
    print("| messages | spikes | slow start | flat or cannot tell, % | warm-up, % | other, % |")
    print("|---|---|---|---|---|---|")
    failures = []
    for count in LENGTHS:
        for spikes in (False, True):
            for slow in SLOW_SHARES:
                rng = np.random.default_rng([SEED, count, int(spikes), round(100 * slow)])
                names = [
                    stats.classify(latencies(rng, count, slow, spikes)).name for _ in range(series)
                ]
                flat = sum(name in (FLAT, CANNOT_TELL) for name in names) / series
                warm = names.count(WARM_UP) / series
                row = f"{count:,} | {'3 %' if spikes else 'none'} | {slow:.0%}"
                shares = " | ".join(f"{100 * share:.1f}" for share in (flat, warm, 1 - flat - warm))
                print(f"| {row} | {shares} |", flush=True)
                if (slow == 0.0 and flat < LEAST) or (slow == SLOW_SHARES[-1] and warm < LEAST):
                    failures.append(row)
    print(f"\n{'failed: ' + '; '.join(failures) if failures else 'All promises kept.'}")
