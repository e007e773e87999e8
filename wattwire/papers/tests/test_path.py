"""Test that the decision path selects the appropriate test and reports each decision."""

from __future__ import annotations

import math

import numpy as np
import pytest

from wattwire import papers
from wattwire.papers import BlockShare, BoxCox, Significance
from wattwire.stats import NotComputable, TooFew

# Normal scores, so that the path does not depend on chance.
SCORES = np.array([-1.55, -1.0, -0.66, -0.38, -0.12, 0.12, 0.38, 0.66, 1.0, 1.55])


def names(path: papers.Path) -> list[str]:
    return list(dict.fromkeys(step.name for step in path.steps))


def test_normal_groups_of_one_variance_take_t_or_anova_and_tukey() -> None:
    two = papers.decide({"a": SCORES, "b": SCORES + 0.5})
    assert two.with_all.test.name == "Student's t" and two.with_all.pairs is None
    three = papers.decide({"a": SCORES, "b": SCORES + 0.5, "c": SCORES + 4})
    assert three.with_all.test.name == "ANOVA"
    assert all("Tukey" in pair.p for pair in three.with_all.pairs)
    assert names(three) == ["Shapiro–Wilk", "IQR outliers"]
    assert [s.name for s in three.with_all.steps] == ["Levene", "Brown–Forsythe"]


def test_normal_groups_of_unequal_variances_take_welch_and_games_howell() -> None:
    two = papers.decide({"a": SCORES, "b": 9 * SCORES})
    assert two.with_all.test.name == "Welch's t"
    three = papers.decide({"a": SCORES, "b": 9 * SCORES, "c": SCORES + 4})
    assert three.with_all.test.name == "Welch's ANOVA"
    assert all("Games–Howell" in pair.p for pair in three.with_all.pairs)


def test_skewed_groups_are_transformed_with_one_power_for_all() -> None:
    path = papers.decide({"a": np.exp(3 * SCORES), "b": np.exp(3 * SCORES + 1)})
    assert path.scale == "Box–Cox" and path.normal
    (found,) = [step.result for step in path.steps if isinstance(step.result, BoxCox)]
    assert found.power == pytest.approx(0, abs=0.02)
    assert path.with_all.test.name == "Student's t"


def test_what_no_power_mends_goes_to_ranks_as_measured() -> None:
    heaps = np.array([1.0, 1.01, 1.02, 1.03, 1.04, 50.0, 50.1, 50.2, 50.3, 50.4])
    path = papers.decide({"a": heaps, "b": heaps + 60, "c": heaps + 120})
    assert path.scale == "as measured" and not path.normal
    assert path.with_all.test.name == "Kruskal–Wallis"
    assert all(set(pair.p) == {"none", "Bonferroni", "Holm"} for pair in path.with_all.pairs)


def test_with_and_without_outliers_both_results_stand() -> None:
    a, b = np.append(SCORES, 6.0), np.append(SCORES + 0.9, 0.9)
    path = papers.decide({"a": np.exp(a / 9), "b": np.exp(b / 9)})
    assert path.removed == {"a": 1, "b": 0}
    assert path.removed_share == pytest.approx(1 / 22)
    assert path.without_outliers.counts == {"a": 10, "b": 11}
    assert isinstance(path.with_all.test, Significance) and isinstance(
        path.without_outliers.test, Significance
    )
    assert path.with_all.test.p != path.without_outliers.test.p
    assert papers.decide({"a": SCORES, "b": SCORES}).without_outliers is None


def test_a_removal_that_turns_the_verdict_round_is_told() -> None:
    far = np.append(SCORES + 1.0, [-3.9])
    path = papers.decide({"a": SCORES, "b": far})
    assert path.removed["b"] == 1 and path.disagrees
    assert not path.with_all.test.rejects(0.05) and path.without_outliers.test.rejects(0.05)


def test_a_removal_that_leaves_nothing_to_test_turns_no_verdict() -> None:
    path = papers.decide({"a": [0.0] * 12, "b": [0.0] * 11 + [1.0]})
    assert path.removed == {"a": 0, "b": 1} and not path.with_all.test.rejects(0.05)
    assert isinstance(path.without_outliers.test, NotComputable)
    assert path.undecided_without and not path.disagrees


def test_missing_values_are_dropped_and_counted_infinite_ones_go_to_ranks() -> None:
    path = papers.decide({"a": [*SCORES, math.nan, math.nan], "b": SCORES})
    assert path.missing == {"a": 2, "b": 0} and path.counts == {"a": 10, "b": 10}
    lost = papers.decide({"a": [*SCORES[:-1], math.inf], "b": SCORES})
    assert lost.with_all.test.name == "Kruskal–Wallis" and not lost.normal


@pytest.mark.parametrize(
    "groups", [{}, {"a": []}, {"a": [1.0], "b": []}, {"a": [1.0, 1.0], "b": [1.0, 1.0]}]
)
def test_nothing_to_test_is_said(groups) -> None:
    path = papers.decide(groups, {name: [1] * len(values) for name, values in groups.items()})
    assert isinstance(path.with_all.test, (TooFew, NotComputable))
    assert path.without_outliers is None


def test_what_blocks_explain_is_told_beside_what_chance_would() -> None:
    rng = np.random.default_rng(2)
    drift = np.arange(8.0)
    groups = {"a": drift + 0.1 * rng.normal(size=8), "b": drift + 0.1 * rng.normal(size=8)}
    blocks = {name: list(range(8)) for name in groups}
    ignored = papers.decide(groups, blocks).blocks
    assert isinstance(ignored, BlockShare) and ignored.share > 0.99
    assert ignored.by_chance == pytest.approx(7 / 14)
    one = {name: [1] * 8 for name in groups}
    assert isinstance(papers.decide(groups, one).blocks, TooFew)
    assert papers.decide(groups).blocks is None
    with pytest.raises(ValueError, match="8 values"):
        papers.decide(groups, {"a": [1], "b": [1]})


def test_a_level_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="level"):
        papers.decide({"a": SCORES, "b": SCORES}, level=5)
