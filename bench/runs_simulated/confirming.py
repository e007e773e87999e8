"""Simulate the false alarms of a comparison with two looks (`--confirm`).

A treatment that is worse or undecided at the first look is measured again, in as many blocks. All
its runs decide, or the added runs alone if all runs together are undecided. Each of the three tests
has a third of the error probability. The promise is at most 5 % of campaigns with a treatment that
is worse, if every treatment is slower by exactly the margin. The table also shows how often a
change of 20 % is found in a treatment.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.populations import SEED, FloatArray
from bench.twins import block_interval_limits
from wattwire import stats
from wattwire.analysis.topics.comparison.variants import TESTS_OF_LOOKS

MOST_FALSE = 0.05
CAMPAIGNS = 10_000
TREATMENTS = (1, 4, 12)
BLOCKS = (3, 5, 10)
MARGIN, CHANGE = 0.05, 0.20
SPREAD = 0.07
"""Standard deviation of a block's log ratio."""


@dataclass(frozen=True)
class Noise:
    """Errors of log ratios; the first look scatters `first` times as much as the second."""

    name: str
    first: float = 1.0
    heavy_tails: bool = False

    def ratios(self, rng: np.random.Generator, blocks: int, treatments: int) -> FloatArray:
        """Return log ratios without a change, shape (campaigns, 2·blocks, treatments)."""
        shape = (CAMPAIGNS, 2 * blocks, treatments)
        errors = (
            rng.standard_t(3, shape) / np.sqrt(3.0)
            if self.heavy_tails
            else rng.standard_normal(shape)
        )
        errors[:, :blocks] *= self.first
        return SPREAD * errors


NOISES = (
    Noise("normal"),
    Noise("first look 4 times as noisy", 4.0),
    Noise("second look 4 times as noisy", 0.25),
    Noise("t3", heavy_tails=True),
)


def worse_after_two_looks(ratios: FloatArray, change: float) -> FloatArray:
    """Return whether each treatment is worse in the end, shape (campaigns, treatments)."""
    blocks, treatments = ratios.shape[1] // 2, ratios.shape[2]
    level = stats.bonferroni(stats.bonferroni(0.95, TESTS_OF_LOOKS), treatments)
    limit = np.log1p(MARGIN) - np.log1p(change)
    _, first_high = block_interval_limits(ratios[:, :blocks], level)
    low, high = block_interval_limits(ratios, level)
    later_low, _ = block_interval_limits(ratios[:, blocks:], level)
    is_undecided = (low <= limit) & (high > limit)
    is_suspect = first_high > limit
    return np.asarray(is_suspect & ((low > limit) | (is_undecided & (later_low > limit))))


def main(_trials: int) -> None:
    """Print a row for each number of treatments and blocks, and the broken promises."""
    print(f"\n## Confirming look, {CAMPAIGNS:,} campaigns a row\n")
    print(f"| errors | treatments | blocks | worse at the margin, % | {CHANGE:.0%} found, % |")
    print("|---|---|---|---|---|")
    failures = []
    for noise in NOISES:
        for treatments in TREATMENTS:
            for blocks in BLOCKS:
                rng = np.random.default_rng([SEED, *noise.name.encode(), blocks, treatments])
                ratios = noise.ratios(rng, blocks, treatments)
                false = float(worse_after_two_looks(ratios, MARGIN).any(axis=1).mean())
                true = float(worse_after_two_looks(ratios, CHANGE).mean())
                name = f"{noise.name} | {treatments} | {blocks} + {blocks}"
                print(f"| {name} | {100 * false:.2f} | {100 * true:.0f} |", flush=True)
                if false > MOST_FALSE:
                    failures.append(name)
    print(f"\n{'failed: ' + '; '.join(failures) if failures else 'All promises kept.'}")
