"""Simulate the rule that finds levels of another factor that contradict each other.

A campaign compares two levels of a factor at 2, 5 or 10 levels of another factor, in random order.
The promise is at most 5 % of campaigns with a contradiction if the ratio is the same at all levels,
and at least 95 % if the ratio is 0.52 at the first half of the levels and 1.9 at the others, and
runs scatter by 10 %. The table also shows a scatter of 30 %, and the rule with 95 % intervals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.populations import SEED, FloatArray
from bench.runs_simulated.run_order import CAMPAIGNS, Design, Noise, contrast_margins
from wattwire import stats
from wattwire.analysis.answering.disagreement import confidence_at_levels, contradict
from wattwire.stats.blocked import RANDOM

MOST_FALSE, LEAST_FOUND = 0.05, 0.95
LEVELS = (2, 5, 10)
BLOCKS = (5, 10)
MARGIN = 0.05
PLANTED = (0.52, 1.9)
CHECKED = 2
NOISES = (Noise("normal"), Noise("AR 0.8", 0.8), Noise("t3", draw=lambda rng, shape: (
    rng.standard_t(3, shape) / np.sqrt(3.0))))  # fmt: skip


@dataclass(frozen=True)
class Truth:
    """The ratio at each level, and the standard deviation of a run's logarithm."""

    name: str
    spread: float
    ratios: tuple[float, ...]

    def logs(self, levels: int) -> FloatArray:
        """Return the log ratio at each level, shape (levels,): equal parts, in order."""
        parts = np.arange(levels) * len(self.ratios) // levels
        return np.log(np.array(self.ratios))[parts]


SAME = (
    Truth("none", 0.1, (1.0,)),
    Truth("1.04, spread 2 %", 0.02, (1.04,)),
    Truth("1.05, spread 5 %", 0.05, (1.05,)),
    Truth("1.3", 0.1, (1.3,)),
)
OPPOSITE = (
    Truth("0.52 and 1.9, spread 10 %", 0.1, PLANTED),
    Truth("0.52 and 1.9, spread 30 %", 0.3, PLANTED),
)


def share_contradicting(
    truth: Truth, levels: int, blocks: int, noise: Noise, corrected: bool
) -> float:
    """Return the share of campaigns in which the rule finds a contradiction."""
    design = Design(
        f"{levels}", [(side, str(level)) for side in "ab" for level in range(levels)],
        [(0, "b", "a")],
    )  # fmt: skip
    rng = np.random.default_rng([SEED, *f"{truth.name} {noise.name}".encode(), levels, blocks])
    data = truth.spread * noise.errors(rng, design, blocks, RANDOM)
    data[:, :, levels:] += truth.logs(levels)
    means = data.mean(axis=1)
    residuals = data - data.mean(axis=2, keepdims=True)
    residuals -= residuals.mean(axis=1, keepdims=True)
    one_level = np.hstack([-np.eye(levels), np.eye(levels)])
    confidence = confidence_at_levels([levels], 0.95) if corrected else 0.95
    sides = [
        (means @ weights.T, contrast_margins(residuals, weights, level, RANDOM))
        for weights, level in ((one_level, confidence), (design.weights(), 0.95))
    ]
    (centres, margins), (pooled, pooled_margins) = sides
    _check(data[:CHECKED], levels, confidence, centres, margins)
    found = 0
    for row in range(len(data)):
        at_levels = [
            _interval(*limits, confidence)
            for limits in zip(centres[row], margins[row], strict=True)
        ]
        over_all = _interval(pooled[row, 0], pooled_margins[row, 0], 0.95)
        conclusions = [(stats.conclusion(interval, MARGIN), interval) for interval in at_levels]
        found += contradict(conclusions, stats.conclusion(over_all, MARGIN), MARGIN)
    return found / len(data)


def _interval(centre: float, margin: float, level: float) -> stats.Interval:
    estimate, low, high = np.exp([centre, centre - margin, centre + margin]).tolist()
    return stats.Interval(estimate, low, high, level, 0, "t")


def _check(
    data: FloatArray, levels: int, confidence: float, centres: FloatArray, margins: FloatArray
) -> None:
    """Raise AssertionError if an interval of the product differs in the first campaigns."""
    blocks = data.shape[1]
    numbers = [str(level) for level in range(levels)]
    factors = {"side": (["a"] * levels + ["b"] * levels) * blocks, "other": numbers * 2 * blocks}
    block_of_run = np.repeat(np.arange(blocks), 2 * levels).tolist()
    for campaign, values in enumerate(data):
        fit = stats.fit_log(np.exp(values.ravel()), block_of_run, factors)
        assert isinstance(fit, stats.Fit)
        for index, number in enumerate(numbers):
            ratio = stats.ratio(fit, "side", "b", "a", confidence, ("other", number))
            assert isinstance(ratio, stats.Ratio)
            centre, margin = centres[campaign, index], margins[campaign, index]
            limits = np.log([ratio.interval.low, ratio.interval.high])
            assert np.allclose(limits, [centre - margin, centre + margin], rtol=1e-7)


def main(_trials: int) -> None:
    """Print the rates of the rule, and the broken promises."""
    print(f"\n## Levels that contradict each other, {CAMPAIGNS:,} campaigns a row\n")
    print("| ratio | errors | blocks | levels | found, % | with 95 % per level, % |")
    print("|---|---|---|---|---|---|")
    failures = []
    for truth in (*SAME, *OPPOSITE):
        for noise in NOISES:
            for blocks in BLOCKS:
                for levels in LEVELS:
                    share, uncorrected = (
                        share_contradicting(truth, levels, blocks, noise, corrected)
                        for corrected in (True, False)
                    )
                    name = f"{truth.name} | {noise.name} | {blocks} | {levels}"
                    print(f"| {name} | {100 * share:.2f} | {100 * uncorrected:.2f} |", flush=True)
                    is_missed = truth == OPPOSITE[0] and share < LEAST_FOUND
                    if is_missed or (truth in SAME and share > MOST_FALSE):
                        failures.append(name)
    print(f"\n{'failed: ' + '; '.join(failures) if failures else 'All promises kept.'}")
