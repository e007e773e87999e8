"""Stopping by width: how often the interval that ends a campaign holds the truth, what it saves.

Promised: 94 % or more of nominal 95 % on simulated pairs, 93 % or more on runs of two papers,
resampled by whole repetition, over all their campaigns; each paper's are printed. Savings are
against running every block that the plan allows.
"""

from __future__ import annotations

import csv
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from scipy import stats as distributions

from bench.populations import SEED, FloatArray
from bench.twins import mean_limits
from wattwire.stats import sequential

TARGETS = (0.02, 0.05, 0.10, 0.20)
LEAST_SIMULATED, LEAST_RESAMPLED = 0.94, 0.93
BLOCKS_MAX = 100
SPREADS = (0.05, 0.10, 0.20)
"""Standard deviations of a block's log ratio."""
REPLICATION = Path(__file__).resolve().parents[2] / "shared" / "replication"
REPETITIONS_MIN = 15
CHECKED = 5

Draw = Callable[[np.random.Generator, tuple[int, int]], FloatArray]
PAIRS: dict[str, Draw] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "t3": lambda rng, shape: rng.standard_t(3, shape) / math.sqrt(3.0),
    "uniform": lambda rng, shape: rng.uniform(-1.0, 1.0, shape) * math.sqrt(3.0),
    "difference of lognormals": lambda rng, shape: (
        (rng.lognormal(0, 0.5, shape) - rng.lognormal(0, 0.5, shape))
        / math.sqrt(2.0 * math.exp(0.25) * math.expm1(0.25))
    ),
}


def main(trials: int) -> None:
    """Print simulated pairs, then those of the replication data where they are."""
    print(f"\n## Stopping by width, {trials:,} campaigns a row\n")
    failures = _simulated(trials)
    if REPLICATION.is_dir():
        failures += _resampled(trials)
    else:
        print(f"\nReplication data: skipped, there is no {REPLICATION.name} folder to read.")
    print(f"\n{'failed: ' + '; '.join(failures) if failures else 'All promises kept.'}")


def _simulated(trials: int) -> list[str]:
    print(f"### Pairs, {sequential.BLOCKS_MIN} to {BLOCKS_MAX} blocks\n")
    print("| log ratios | sd | target | coverage, % | mean blocks | saved, % | not reached, % |")
    print("|---|---|---|---|---|---|---|")
    failures = []
    for place, (name, draw) in enumerate(PAIRS.items()):
        for spread, target in itertools.product(SPREADS, TARGETS):
            rng = np.random.default_rng([SEED, place, round(1e4 * spread), round(1e4 * target)])
            data = spread * draw(rng, (trials, BLOCKS_MAX))
            _same_as_product(data[:CHECKED], target)
            blocks, low, high = stopped(data, target)
            held = float(np.mean((low <= 0.0) & (high >= 0.0)))
            short = float(np.mean(high - low > 2.0 * math.log1p(target)))
            print(
                f"| {name} | {spread:g} | {target:.0%} | {100 * held:.2f} | {blocks.mean():.1f} "
                f"| {100 * (1 - blocks.mean() / BLOCKS_MAX):.0f} | {100 * short:.0f} |",
                flush=True,
            )
            if held < LEAST_SIMULATED:
                failures.append(f"{name}, sd {spread:g}, target {target:.0%}: {100 * held:.2f} %")
    return failures


def stopped(data: FloatArray, target: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Blocks at which each row of log ratios stops, and its limits there."""
    trials, most = data.shape
    counts = np.arange(1, most + 1)
    means = np.cumsum(data, axis=1) / counts
    squares = np.cumsum(data**2, axis=1) - counts * means**2
    variance = np.maximum(squares, 0.0) / np.maximum(counts - 1, 1)
    quantiles = distributions.t.ppf(
        0.5 + sequential.INNER_CONFIDENCE / 2, np.maximum(counts - 1, 1)
    )
    half = quantiles * np.sqrt(variance / counts)
    enough = (np.expm1(half) <= target) & (counts >= sequential.BLOCKS_MIN)
    enough[:, -1] = True
    at = np.argmax(enough, axis=1)
    rows = np.arange(trials)
    centre, reach = means[rows, at], half[rows, at]
    return counts[at].astype(np.float64), centre - reach, centre + reach


def _same_as_product(data: FloatArray, target: float) -> None:
    """Raises AssertionError where the product would stop after another block."""
    blocks, _, _ = stopped(data, target)
    for row, count in zip(data, blocks, strict=True):
        looks = [
            sequential.look(row[:seen], target)
            for seen in range(sequential.BLOCKS_MIN, row.size + 1)
        ]
        first = next((look.block_count for look in looks if look.reached), row.size)
        assert first == count, (first, count)


# -- runs of two papers --------------------------------------------------------------------------


def _resampled(trials: int) -> list[str]:
    print("\n### Runs of two papers, resampled by whole repetition\n")
    print("A campaign's contrast is the mean log ratio over a repetition's treatments, as the rule")
    print(
        "takes it; single treatments are printed. A fixed plan's own 95 % stands beside: runs far"
    )
    print("out, which a resample may miss, cost both.\n")
    print("| data | contrasts | blocks, at most | target | coverage, % | worst contrast, % "
          "| fixed plan, % | saved, % |\n|---|---|---|---|---|---|---|---|")  # fmt: skip
    whole: list[FloatArray] = []
    for name, (file, keys, factor, response, wanted) in DATA.items():
        with (REPLICATION / file).open(encoding="utf-8") as opened:
            rows = [row for row in csv.DictReader(opened) if row[wanted[0]] == wanted[1]]
        singles = paired(rows, keys, factor, response)
        whole += campaigns(singles)
        _rows_of(name, campaigns(singles), trials, held=False)
        alone = [np.array(list(one.values())) for one in singles.values()]
        _rows_of(f"{name}, single treatments", alone, max(500, trials // 10), held=False)
    return _rows_of("**both papers' campaigns**", whole, trials, held=True)


def _rows_of(name: str, contrasts: Sequence[FloatArray], trials: int, held: bool) -> list[str]:
    failures = []
    for target in TARGETS:
        covered, fixed, saved = [], [], []
        for place, logs in enumerate(contrasts):
            rng = np.random.default_rng([SEED, place, round(1e4 * target)])
            drawn = rng.choice(logs, (trials, logs.size))
            blocks, low, high = stopped(drawn, target)
            truth = float(logs.mean())
            covered.append(float(np.mean((low <= truth) & (high >= truth))))
            low, high = mean_limits(drawn)
            fixed.append(float(np.mean((low <= truth) & (high >= truth))))
            saved.append(1.0 - float(blocks.mean()) / logs.size)
        most = max(logs.size for logs in contrasts)
        told = " | ".join(
            f"{100 * share:.2f}" for share in (np.mean(covered), min(covered), np.mean(fixed))
        )
        print(
            f"| {name} | {len(contrasts)} | {most} | {target:.0%} | {told} "
            f"| {100 * np.mean(saved):.0f} |",
            flush=True,
        )
        if held and np.mean(covered) < LEAST_RESAMPLED:
            failures.append(f"{name}, target {target:.0%}: {100 * np.mean(covered):.2f} %")
    return failures


Treatment = tuple[str, ...]
Singles = dict[tuple[Treatment, str, str], dict[str, float]]
DATA = {
    "energy by language": (
        "albonico_runs.csv", ("pattern", "role", "interval_s", "clients"), "language", "energy_j",
        ("canonical", "yes"),
    ),
    "energy by way of calling": (
        "georgiou_runs.csv", ("platform", "measured_node", "language"), "ipc", "energy_raw_j",
        ("source", "energy"),
    ),
}  # fmt: skip
"""File, treatment, primary factor, response, and the rows that count. A campaign is of one pattern
and role, or of one platform and node: the first two keys of a treatment."""


def paired(
    rows: Sequence[dict[str, str]], keys: Sequence[str], factor: str, response: str
) -> Singles:
    """Log ratio of two levels of `factor` in each treatment, by repetition."""
    cells: dict[Treatment, dict[str, dict[str, float]]] = defaultdict(dict)
    for row in rows:
        if row[response] and float(row[response]) > 0:
            cell = cells[tuple(row[key] for key in keys)].setdefault(row[factor], {})
            cell[row["repetition"]] = math.log(float(row[response]))
    found: Singles = {}
    for treatment, levels in cells.items():
        for one, other in itertools.combinations(sorted(levels), 2):
            both = [name for name in levels[one] if name in levels[other]]
            if len(both) >= REPETITIONS_MIN:
                found[treatment, one, other] = {
                    name: levels[one][name] - levels[other][name] for name in both
                }
    return found


def campaigns(singles: Singles) -> list[FloatArray]:
    """The mean over the treatments of a campaign, one value a repetition that holds any."""
    pooled: dict[tuple[Treatment, str, str], dict[str, list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for (treatment, one, other), ratios in singles.items():
        for name, ratio in ratios.items():
            pooled[treatment[:2], one, other][name].append(ratio)
    return [np.array([np.mean(v) for v in found.values()]) for found in pooled.values()]
