"""Test that the permutation p-value of an interaction equals that of refitted models."""

from __future__ import annotations

import numpy as np
import pytest

from wattwire import stats
from wattwire.stats import variance

PERMUTATIONS = 60


def squares_left(design, values):
    coefficients, *_ = np.linalg.lstsq(design, values, rcond=None)
    return float(np.sum((values - design @ coefficients) ** 2))


@pytest.mark.parametrize("effect", [0.0, 0.08])
def test_permuted_p_is_that_of_fitting_every_permutation(effect):
    rng = np.random.default_rng(6)
    languages, rates = rng.choice(["a", "b", "c"], 48), rng.choice([1, 2], 48)
    blocks = rng.integers(0, 4, 48)
    logs = 5.0 + 0.1 * rng.normal(size=48) + effect * ((languages == "b") & (rates == 2))
    factors = {"language": languages.tolist(), "rate": rates.tolist()}
    fit = stats.fit_log(np.exp(logs), blocks.tolist(), factors)
    found = stats.interaction(fit, "language", "rate", permutations=PERMUTATIONS)
    assert isinstance(found, stats.Effect)

    names = [blocks[:, None] == range(4), languages[:, None] == ["a", "b"], rates[:, None] == [2]]
    reduced = np.hstack(names).astype(float)
    coefficients, *_ = np.linalg.lstsq(reduced, logs, rcond=None)
    expected = reduced @ coefficients
    # The fit numbers blocks by first occurrence.
    met = {name: place for place, name in enumerate(dict.fromkeys(blocks.tolist()))}
    numbered = np.array([met[name] for name in blocks.tolist()])
    full = np.hstack([numbered[:, None] == range(4), fit.design])
    ratios = []
    for order in variance._orders(numbered.tobytes(), PERMUTATIONS):
        drawn = expected.copy()
        drawn[np.argsort(numbered, kind="stable")] += (logs - expected)[order]
        left = squares_left(full, drawn)
        ratios.append((squares_left(reduced, drawn) - left) / left)
    seen = squares_left(reduced, logs) / squares_left(full, logs) - 1.0
    larger = int(np.sum(np.array(ratios) >= seen))
    assert found.permuted_p == (larger + 1) / (PERMUTATIONS + 1)
