"""Test that results are invariant to permuted, shifted or scaled rows.

The power of small groups is also tested.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from wattwire import papers
from wattwire.papers import kruskal
from wattwire.stats import association

RNG = np.random.default_rng(3)
GROUPS = {
    "a": np.exp(RNG.normal(1.0, 0.3, 6)),
    "b": np.exp(RNG.normal(1.3, 0.3, 7)),
    "c": np.exp(RNG.normal(1.8, 0.5, 5)),
}
OVER_ALL = [papers.levene, papers.anova, papers.welch_anova, papers.kruskal_wallis]


def changed(by) -> list[np.ndarray]:
    return [by(values) for values in GROUPS.values()]


@pytest.mark.parametrize("test", OVER_ALL)
def test_order_shift_scale_and_the_order_of_groups_change_nothing(test) -> None:
    plain = test(list(GROUPS.values()))
    for groups in (
        changed(lambda v: v[::-1]),
        changed(lambda v: v + 1000.0),
        changed(lambda v: v * 3.7e-6),
        changed(lambda v: -v),
        list(GROUPS.values())[::-1],
    ):
        other = test(groups)
        assert other.statistic == pytest.approx(plain.statistic, rel=1e-8)
        assert other.p == pytest.approx(plain.p, rel=1e-8)


def test_ranks_do_not_see_a_growing_transformation() -> None:
    plain, logs = (
        papers.kruskal_wallis(values) for values in (list(GROUPS.values()), changed(np.log))
    )
    assert plain == logs
    dunn, dunn_logs = papers.dunn(GROUPS), papers.dunn({n: np.log(v) for n, v in GROUPS.items()})
    assert dunn == dunn_logs


def test_a_difference_moves_with_the_scale_and_not_with_a_shift() -> None:
    a, b = GROUPS["a"], GROUPS["b"]
    for test in (papers.student_t, papers.welch_t):
        plain, scaled, shifted = test(a, b), test(4 * a, 4 * b), test(a + 9, b + 9)
        assert scaled.interval.estimate == pytest.approx(4 * plain.interval.estimate)
        assert scaled.interval.high == pytest.approx(4 * plain.interval.high)
        assert shifted.interval.low == pytest.approx(plain.interval.low)
        assert test(b, a).interval.estimate == pytest.approx(-plain.interval.estimate)


def test_two_groups_give_anova_the_square_of_t() -> None:
    a, b = GROUPS["a"], GROUPS["b"]
    one, other = papers.student_t(a, b), papers.anova([a, b])
    assert other.statistic == pytest.approx(one.statistic**2)
    assert other.p == pytest.approx(one.p)
    one, other = papers.welch_t(a, b), papers.welch_anova([a, b])
    assert other.statistic == pytest.approx(one.statistic**2)
    assert other.p == pytest.approx(one.p)


def test_box_cox_finds_the_logarithm_of_lognormal_data_in_any_unit() -> None:
    rng = np.random.default_rng(8)
    groups = [np.exp(rng.normal(mean, 0.8, 200)) for mean in (0.0, 1.0)]
    found = papers.box_cox(groups)
    assert found.power == pytest.approx(0.0, abs=0.15)
    other = papers.box_cox([1e6 * group for group in groups])
    assert other.power == pytest.approx(found.power, abs=1e-6)


def test_exact_p_with_ties_counts_every_arrangement() -> None:
    values = [1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 5.0, 9.0]
    groups = [values[0:2], values[2:5], values[5:8]]
    ranks = np.array([1.0, 2.5, 2.5, 5.0, 5.0, 5.0, 7.0, 8.0])

    def spread(first, second) -> float:
        third = [at for at in range(8) if at not in (*first, *second)]
        return sum(ranks[list(part)].sum() ** 2 / len(part) for part in (first, second, third))

    observed = spread((0, 1), (2, 3, 4))
    every = [
        spread(first, second)
        for first in combinations(range(8), 2)
        for second in combinations([at for at in range(8) if at not in first], 3)
    ]
    found = papers.kruskal_wallis(groups)
    assert found.method == "exact, all 560 arrangements counted"
    expected = np.mean(np.array(every) >= observed - 1e-9)
    assert found.p == pytest.approx(expected, rel=1e-12)


def test_two_groups_of_three_cannot_reject_and_say_so() -> None:
    found = papers.kruskal_wallis([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert found.p == pytest.approx(0.1) and found.p_least == pytest.approx(0.1)
    assert found.powerless(0.05)
    three = papers.kruskal_wallis([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    assert three.p_least == pytest.approx(6 / 1680) and not three.powerless(0.05)


def test_ten_a_group_is_exact_and_more_groups_are_permuted_with_a_stated_seed(monkeypatch) -> None:
    rng = np.random.default_rng(4)
    groups = [rng.normal(0.2 * at, 1, 10) for at in range(3)]
    exact = papers.kruskal_wallis(groups)
    assert exact.method.startswith("exact")
    kruskal._null.cache_clear()
    monkeypatch.setattr(kruskal, "STATES_MAX", 10)
    drawn = papers.kruskal_wallis(groups)
    kruskal._null.cache_clear()
    assert f"seed {kruskal.SEED}" in drawn.method
    # four standard errors of 99,999 draws
    error = 4 * np.sqrt(exact.p * (1 - exact.p) / kruskal.DRAWS)
    assert drawn.p == pytest.approx(exact.p, abs=error)
    eleven = papers.kruskal_wallis([rng.normal(size=11), rng.normal(size=3)])
    assert eleven.method == "χ² approximation" and eleven.p_least is None


def test_holm_lies_between_raw_and_bonferroni_and_keeps_the_order() -> None:
    raw = [0.01, 0.04, 0.03, 0.5]
    assert papers.adjusted_holm(raw) == pytest.approx([0.04, 0.09, 0.09, 0.5])
    assert papers.adjusted_bonferroni(raw) == pytest.approx([0.04, 0.16, 0.12, 1.0])


def test_associations_do_not_see_units_and_turn_with_a_sign() -> None:
    x = RNG.normal(size=15)
    y = x + RNG.normal(size=15)
    for name in ("pearson", "spearman", "kendall"):
        of = getattr(association, name)
        plain, moved, turned = of(x, y), of(3 * x + 7, y / 9), of(x, -y)
        assert moved.estimate == pytest.approx(plain.estimate)
        assert turned.estimate == pytest.approx(-plain.estimate)
        assert turned.interval.low == pytest.approx(-plain.interval.high)


def test_the_exponent_of_an_exact_power_is_found_in_any_unit() -> None:
    x = np.array([1.0, 2.0, 5.0, 9.0])
    assert association.exponent(x, 4 * x**0.5).estimate == pytest.approx(0.5)
    assert association.exponent(1e6 * x, 4 * x**0.5).estimate == pytest.approx(0.5)


def test_inside_groups_the_difference_between_groups_is_gone() -> None:
    rng = np.random.default_rng(5)
    groups = np.repeat(["slow", "fast"], 10)
    apart = np.where(groups == "slow", 100.0, 0.0)
    x, y = apart + rng.normal(size=20), apart + rng.normal(size=20)
    assert association.pearson(x, y).estimate > 0.99
    inside = association.within_groups(x, y, list(groups))
    assert abs(inside.estimate) < 0.6 and inside.count == 19


def test_the_pareto_front_is_what_nothing_beats() -> None:
    energy = [1.0, 2.0, 3.0, 2.0, np.nan, 1.0]
    delay = [5.0, 2.0, 1.0, 3.0, 1.0, 5.0]
    front = association.pareto_front(energy, delay)
    assert front.tolist() == [True, True, True, False, False, True]


def test_aligned_ranks_find_a_crossing_and_no_crossing_of_parallel_effects() -> None:
    rng = np.random.default_rng(6)
    one, two = np.repeat([0, 1], 20), np.tile(np.repeat([0, 1], 10), 2)
    noise = rng.normal(size=40)
    parallel = papers.aligned_ranks(4.0 * one + 3.0 * two + noise, {"one": one, "two": two})
    assert parallel[("one",)].p < 1e-6 and parallel[("two",)].p < 1e-6
    assert parallel[("one", "two")].p > 0.05
    crossed = papers.aligned_ranks(4.0 * (one != two) + noise, {"one": one, "two": two})
    assert crossed[("one", "two")].p < 1e-6 and crossed[("one",)].p > 0.01
