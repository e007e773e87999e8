"""Test comparisons with the best against a textbook formula and on simulated campaigns."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from wattwire import stats
from wattwire.stats.blocked import Fit

NAMES = ("a", "b", "c", "d", "e", "f")


def fitted(
    logs: dict[str, float], blocks: int, sigma: float, seed: int, missing: int | None = None
) -> Fit:
    """Return a fit of simulated runs, with each name once per block around its planted mean."""
    rng = np.random.default_rng(seed)
    drift = rng.normal(0, 1, blocks)
    rows = [(block, name) for block in range(blocks) for name in logs]
    values = [math.exp(logs[name] + drift[block] + rng.normal(0, sigma)) for block, name in rows]
    kept = [at for at in range(len(rows)) if at != missing]
    found = stats.fit_log(
        [values[at] for at in kept],
        [rows[at][0] for at in kept],
        {"cell": [rows[at][1] for at in kept]},
    )
    assert isinstance(found, Fit)
    return found


def test_a_balanced_design_gives_the_textbook_limits() -> None:
    """Hsu's upper limits are (m_i − m_j + t·SE)⁺ over the set with the lowest alternative.

    SE and its degrees of freedom are Welch's, from the variance of each alternative.
    """
    blocks = 5
    fit = fitted({"a": 0.0, "b": 0.05, "c": 3.0}, blocks, 0.1, 4)
    found = stats.lowest_of(fit, ["cell"])
    assert isinstance(found, stats.Ranking)
    assert [one.levels[0] for one in found.alternatives][-1] == "c"
    own_degrees = (blocks - 1) * 2 / 3
    a, b, c = (
        sum(fit.residuals[at] ** 2 for at in range(number, 3 * blocks, 3)) / own_degrees / blocks
        for number in range(3)
    )

    def half(first: float, other: float) -> float:
        degrees = (first + other) ** 2 / ((first**2 + other**2) / own_degrees)
        return float(scipy_stats.t.ppf(1 - 0.05 / 2, degrees)) * math.sqrt(first + other)

    second = found.alternatives[1]
    assert second.at_most == pytest.approx(math.exp(math.log(second.over_lowest) + half(a, b)))
    worst = found.alternatives[2]
    assert not worst.may_be_lowest
    assert worst.at_most == pytest.approx(math.exp(math.log(worst.over_lowest) + half(a, c)))


def test_a_clear_lowest_stands_alone_and_lies_no_distance_above_itself() -> None:
    logs = {name: at * 2.0 for at, name in enumerate(NAMES)}
    found = stats.lowest_of(fitted(logs, 4, 0.05, 1), ["cell"])
    assert isinstance(found, stats.Ranking)
    assert [one.may_be_lowest for one in found.alternatives] == [True] + [False] * 5
    assert found.alternatives[0].at_most == 1.0
    assert [one.levels for one in found.alternatives] == [(name,) for name in NAMES]


def held(found: stats.Ranking, logs: dict[str, float]) -> bool:
    """Return whether all statements of a ranking are true. If two are equal, "a" is the lowest."""
    least = min(logs.values())
    for one in found.alternatives:
        if one.levels == ("a",) and not one.may_be_lowest:
            return False
        if logs[str(one.levels[0])] - least > math.log(one.at_most) + 1e-12:
            return False
    return True


@pytest.mark.parametrize("gap", [0.0, 0.05, 0.15])
@pytest.mark.parametrize("missing", [None, 3])
def test_all_statements_hold_together_as_often_as_promised(gap: float, missing: int | None) -> None:
    """Fewer than 178 correct campaigns of 200 have a probability of 2e-4 at 95 % coverage."""
    logs = {name: gap * at for at, name in enumerate(NAMES)}
    true = 0
    for seed in range(200):
        found = stats.lowest_of(fitted(logs, 3, 0.1, seed, missing), ["cell"])
        assert isinstance(found, stats.Ranking)
        true += held(found, logs)
    assert true >= 178


def test_as_low_within_a_margin_is_said_where_it_is_true_and_seen() -> None:
    found = stats.lowest_of(fitted({"a": 0.0, "b": 0.0, "c": 1.0}, 20, 0.02, 9), ["cell"])
    assert isinstance(found, stats.Ranking)
    assert [one.at_most < 1.05 for one in found.alternatives] == [True, True, False]


def test_combinations_of_factors_are_averaged_over_the_others() -> None:
    rng = np.random.default_rng(2)
    rows = [
        (block, stack, language, size)
        for block in range(4) for stack in "xy" for language in "pq" for size in (1, 2)
    ]  # fmt: skip
    planted = {("x", "p"): 1.0, ("x", "q"): 3.0, ("y", "p"): 0.0, ("y", "q"): 2.0}
    values = [
        math.exp(planted[stack, language] + size + rng.normal(0, 0.05))
        for _, stack, language, size in rows
    ]
    names = ("stack", "language", "size")
    factors = {name: [row[at + 1] for row in rows] for at, name in enumerate(names)}
    fit = stats.fit_log(values, [row[0] for row in rows], factors)
    assert isinstance(fit, Fit)
    found = stats.lowest_of(fit, ["stack", "language"])
    assert isinstance(found, stats.Ranking)
    order = [one.levels for one in found.alternatives]
    assert order == [("y", "p"), ("x", "p"), ("y", "q"), ("x", "q")]
    assert found.alternatives[3].over_lowest == pytest.approx(math.exp(3), rel=0.1)


def test_what_cannot_be_ranked_says_why() -> None:
    one_block = fitted({"a": 0.0, "b": 1.0, "c": 2.0}, 1, 0.1, 1)
    assert isinstance(stats.lowest_of(one_block, ["cell"]), stats.TooFew)
    alone = stats.lowest_of(fitted({"a": 0.0, "b": 1.0}, 3, 0.1, 1), ["other"])
    assert "nothing to compare" in str(alone)
    plain = stats.fit_plain([1.0, 2.0, 3.0, 5.0], [1, 1, 2, 2], {"cell": ["a", "b", "a", "b"]})
    assert isinstance(plain, Fit)
    with pytest.raises(ValueError, match="log scale"):
        stats.lowest_of(plain, ["cell"])


def test_alternatives_that_differ_without_scatter_have_the_pooled_error() -> None:
    # In one block, each alternative has its own variance, and that of two of them is 0.
    values, cells = [10.0] * 3 + [12.0] * 3 + [30.0, 40.0, 50.0], list("aaabbbccc")
    fit = stats.fit_log(values, [1] * 9, {"cell": cells})
    assert isinstance(fit, stats.Fit)
    found = stats.lowest_of(fit, ["cell"])
    assert isinstance(found, stats.Ranking)
    half = scipy_stats.t.ppf(1 - 0.05 / 2, 6) * math.sqrt(fit.variance * 2 / 3)
    second = found.alternatives[1]
    assert second.levels == ("b",) and second.may_be_lowest
    assert second.at_most == pytest.approx(1.2 * math.exp(half))
