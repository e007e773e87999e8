"""Test that cached permutations and fast sorting do not change the null distributions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats as scipy_stats

from wattwire.stats import block_ranks


def drawn_plainly(rows):
    """Return the sums of squared column sums, with each row shuffled separately."""
    rng = np.random.default_rng(block_ranks.SEED)
    sums = np.zeros((block_ranks.DRAWS, len(rows[0])), dtype=np.int64)
    for row in rows:
        sums += rng.permuted(np.tile(np.array(row), (block_ranks.DRAWS, 1)), axis=1)
    return np.unique((sums**2).sum(axis=1), return_counts=True)


@pytest.mark.parametrize("kept", [block_ranks.CELLS_KEPT_MAX, 0])
def test_orders_that_tests_share_are_those_each_would_draw(monkeypatch, kept):
    monkeypatch.setattr(block_ranks, "CELLS_KEPT_MAX", kept)
    ranks = (-5, -3, -1, 1, 3, 5)
    for blocks in (2, 4, 3):
        rows = tuple(tuple(weight * one for one in ranks) for weight in range(1, blocks + 1))
        values, chances, exact = block_ranks.null_distribution.__wrapped__(rows)
        plain, counts = drawn_plainly(rows)
        assert not exact
        assert values[:-1].tolist() == plain.tolist()
        assert chances[:-1].tolist() == (counts / (block_ranks.DRAWS + 1)).tolist()


@pytest.mark.parametrize("scale", [1, 10**6], ids=["digits", "too large for digits"])
def test_every_arrangement_is_counted(scale):
    rows = tuple(tuple(scale * one for one in row) for row in [(-2, 0, 2), (-4, 2, 2), (-3, 0, 3)])
    sums: dict[int, float] = {}
    for ways in itertools.product(*(list(itertools.permutations(row)) for row in rows)):
        total = sum(sum(column) ** 2 for column in zip(*ways, strict=True))
        sums[total] = sums.get(total, 0.0) + 1.0 / 6**3
    values, chances = block_ranks._every_arrangement(rows)
    assert values.tolist() == sorted(sums)
    assert chances == pytest.approx([sums[key] for key in sorted(sums)])


def test_scores_are_twice_the_centred_mean_ranks_with_ties_and_infinite_values():
    data = np.random.default_rng(4).integers(0, 4, (30, 7)).astype(np.float64)
    data[data == 3] = np.inf
    ranks = scipy_stats.rankdata(data, axis=1)
    assert block_ranks.friedman_scores(data).tolist() == (2 * ranks - 8).tolist()
    finite = np.minimum(data, 4)
    spans = scipy_stats.rankdata(np.ptp(finite, axis=1))
    weighted = (2 * scipy_stats.rankdata(finite, axis=1) - 8) * 2 * spans[:, None]
    assert block_ranks.quade_scores(finite).tolist() == weighted.tolist()
