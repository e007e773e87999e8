"""Test that different placements are named, alike ones are not, and two modes are attributed."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from wattwire.analysis.topics.placements.apart import COLUMNS, placed_apart
from wattwire.analysis.topics.placements.modes import modes

CAMPAIGNS = 20
WANDERING, SPREAD = 0.46, 0.27
"""Mean and standard deviation over runs of the share of a pair with helper threads (measured)."""


def evidence_of(rows, varied=("cell",)):
    frame = pl.DataFrame(rows)
    return SimpleNamespace(
        usable=frame,
        study=SimpleNamespace(answers=SimpleNamespace(baseline={})),
        baselines={},
        varied=varied,
        factors={name: list(dict.fromkeys(frame[f"factor.{name}"])) for name in varied},
        word=lambda name, level: str(level),
        groups={},
    )


def run(cell, block, same, p50=50.0, position=1, **levels):
    shares = dict.fromkeys(COLUMNS, 0.0) | {COLUMNS[0]: same, COLUMNS[2]: 1 - same}
    factors = {f"factor.{name}": level for name, level in {"cell": cell, **levels}.items()}
    return {
        "run": f"{cell}{block}", "block": block, "position": position, "latency_p50_us": p50,
        **factors, **shares,
    }  # fmt: skip


def test_levels_pinned_differently_are_named_and_levels_placed_alike_are_not():
    named = alike = 0
    for seed in range(CAMPAIGNS):
        random = np.random.default_rng(seed)
        # The scheduler leaves a pair on one CPU in 30 to 60 % of the time, whatever the cell.
        free = [run(cell, b, random.uniform(0.3, 0.6)) for cell in "abcd" for b in range(5)]
        alike += bool(placed_apart(evidence_of(free)))
        pinned = [
            run(cell, b, np.clip(center + random.normal(0, 0.05), 0, 1))
            for cell, center in (("a", 0.99), ("b", 0.04), ("c", 0.04), ("d", 0.04))
            for b in range(5)
        ]
        found = placed_apart(evidence_of(pinned))
        pairs = {
            (*one.treatment, *other.treatment) for apart in found for one, other in apart.pairs
        }
        named += pairs == {("a", other) for other in "bcd"}
    assert named >= 19
    assert alike <= 1


CELLS, PAYLOADS, BLOCKS = "abcdefghijkl", (64, 1024), 5
"""A campaign of 24 treatments with five runs each, and 34 pairs of one with its baseline."""


def many(share_of):
    """Return the runs of a campaign with many levels. `share_of` returns a run's share."""
    return [
        run(cell, block, share_of(cell), payload=payload)
        for cell in CELLS
        for payload in PAYLOADS
        for block in range(BLOCKS)
    ]


def beta(random, mean, sd):
    concentration = mean * (1 - mean) / sd**2 - 1
    return random.beta(mean * concentration, (1 - mean) * concentration)


def test_a_pair_that_stays_on_one_cpu_is_named_among_many_levels():
    """Threads of the other cells wander between two CPUs, from run to run as measured."""
    named = 0
    for seed in range(CAMPAIGNS):
        random = np.random.default_rng(seed)
        rows = many(lambda cell, r=random: 1.0 if cell == "a" else beta(r, WANDERING, SPREAD))
        found = placed_apart(evidence_of(rows, ("cell", "payload")))
        named += bool(found) and {apart.factor for apart in found} == {"cell"}
    assert named >= 19


def test_the_only_cell_in_another_placement_is_named_among_many_levels():
    named = 0
    for seed in range(CAMPAIGNS):
        random = np.random.default_rng(seed)
        rows = many(lambda cell, r=random: beta(r, WANDERING, SPREAD) if cell == "g" else 1.0)
        found = placed_apart(evidence_of(rows, ("cell", "payload")))
        named += {apart.pairs[0][1].treatment[0] for apart in found} == {"g"}
    assert named >= 19


@pytest.mark.parametrize(
    "share_of",
    [
        lambda random: random.uniform(0.3, 0.6),
        lambda random: beta(random, WANDERING, SPREAD),
        lambda random: float(random.random() < 0.5),
        lambda random: 1.0 if random.random() < 0.9 else random.uniform(0, 0.5),
    ],
    ids=["wanders", "wanders widely", "sticks to one of two placements", "moves rarely"],
)
def test_many_levels_placed_alike_are_not_named(share_of):
    named = 0
    for seed in range(CAMPAIGNS):
        random = np.random.default_rng(seed)
        rows = many(lambda cell, r=random: share_of(r))
        named += bool(placed_apart(evidence_of(rows, ("cell", "payload"))))
    assert named <= 1


def test_only_pairs_that_differ_in_one_factor_other_than_cores_are_compared():
    rows = [
        run(cell, b, same, cores=cores)
        for cores, same in (("same", 1.0), ("apart", 0.0))
        for cell in "ab"
        for b in range(3)
    ]
    assert placed_apart(evidence_of(rows, ("cell", "cores"))) == []


def two_modes(random, order, shares):
    return [
        run("a", block, shares(high), (50.0 if high else 15.0) * random.lognormal(0, 0.03))
        for block, high in enumerate(order)
    ]


def causes(rows):
    return [found.cause for found in modes(evidence_of(rows))]


def test_modes_are_attributed_to_placement_or_to_time_or_to_neither():
    by_placement = by_time = neither = 0
    for seed in range(CAMPAIGNS):
        random = np.random.default_rng(seed)
        mixed = random.permutation([True] * 5 + [False] * 5)
        rows = two_modes(random, mixed, lambda high: 0.05 if high else 0.95)
        by_placement += causes(rows) == ["placement"]
        change = int(random.integers(4, 7))
        in_time = [number >= change for number in range(10)]
        rows = two_modes(random, in_time, lambda high, random=random: random.uniform(0.9, 1.0))
        by_time += causes(rows) == ["time"]
        alternating = [bool(number % 2) for number in range(10)]
        rows = two_modes(random, alternating, lambda high, random=random: random.uniform(0.9, 1.0))
        neither += causes(rows) == ["unknown"]
    assert by_placement >= 18
    assert by_time >= 18
    assert neither == CAMPAIGNS


def test_usual_scatter_has_no_modes():
    random = np.random.default_rng(1)
    found = 0
    for _ in range(200):
        rows = [run("a", b, 0.5, 50 * random.lognormal(0, 0.1)) for b in range(10)]
        found += bool(causes(rows))
    assert found <= 10


@pytest.mark.parametrize("lack", ["readings", "runs"])
def test_without_readings_or_with_few_runs_nothing_is_named(lack):
    rows = [run(cell, 1, same) for cell, same in (("a", 1.0), ("b", 0.0))]
    evidence = evidence_of(rows)
    if lack == "readings":
        evidence.usable = evidence.usable.drop(COLUMNS)
    assert placed_apart(evidence) == [] and modes(evidence) == []
