"""Test that degenerate data give a reason, not an exception or a meaningless number."""

from __future__ import annotations

import math
import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from wattwire import papers
from wattwire.stats import NotComputable, TooFew, association

NAN, INF = math.nan, math.inf
TESTS = {
    "levene": papers.levene,
    "brown_forsythe": lambda g: papers.levene(g, "mean"),
    "student": lambda g: papers.student_t(g[0], g[1]),
    "welch": lambda g: papers.welch_t(g[0], g[1]),
    "anova": papers.anova,
    "welch_anova": papers.welch_anova,
    "kruskal": papers.kruskal_wallis,
    "box_cox": papers.box_cox,
    "tukey": lambda g: papers.tukey_hsd(dict(enumerate(g))),
    "games": lambda g: papers.games_howell(dict(enumerate(g))),
    "dunn": lambda g: papers.dunn(dict(enumerate(g))),
}
ALONE = {"shapiro": papers.shapiro_wilk, "outliers": papers.iqr_outliers}
PAIRED = {
    "pearson": association.pearson,
    "spearman": association.spearman,
    "kendall": association.kendall,
    "exponent": association.exponent,
}
NONE = (TooFew, NotComputable)


@pytest.fixture(autouse=True)
def _every_warning_is_an_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # The collector of garbage may find an open process of another test at this moment.
        warnings.simplefilter("default", ResourceWarning)
        yield


def sound(found) -> None:
    """Assert that a result is a reason, or has finite numbers and valid probabilities."""
    if isinstance(found, NONE):
        assert str(found)
        return
    if isinstance(found, tuple):
        for pair in found:
            assert math.isfinite(pair.statistic) and math.isfinite(pair.estimate)
            assert all(0 <= p <= 1 for p in pair.p.values())
            if pair.interval is not None:
                assert pair.interval.low <= pair.interval.estimate <= pair.interval.high
        return
    for name in ("p", "statistic", "estimate", "power", "low", "high"):
        value = getattr(found, name, 0.0)
        assert math.isfinite(value), f"{name} = {value}"
    assert 0 <= getattr(found, "p", 0) <= 1
    interval = getattr(found, "interval", None)
    if interval is not None and not isinstance(interval, NONE):
        assert interval.low <= interval.estimate <= interval.high


@pytest.mark.parametrize("name", TESTS)
@pytest.mark.parametrize(
    "groups",
    [
        [[], []],
        [[1.0], []],
        [[1.0], [2.0]],
        [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]],
        [[1.0, 2.0, NAN], [1.0, 2.0, 3.0]],
        [[NAN, NAN, NAN], [NAN, NAN, NAN]],
        [[0.1 + 0.2] * 4, [0.3] * 4],  # differ only by rounding
    ],
    ids=["empty", "one empty", "n = 1", "all equal", "missing", "all missing", "rounding"],
)
def test_no_number_without_data_for_it(name: str, groups) -> None:
    found = TESTS[name](groups)
    if name in ("kruskal", "dunn") and groups[0][:1] == [0.1 + 0.2]:
        # Ranks ignore magnitudes, so four larger values are significant.
        assert not isinstance(found, NONE)
    else:
        assert isinstance(found, NONE), found


@pytest.mark.parametrize("name", sorted(set(TESTS) - {"kruskal", "dunn", "box_cox"}))
def test_groups_without_scatter_inside_give_no_statistic(name: str) -> None:
    found = TESTS[name]([[1.0] * 5, [2.0] * 5])
    assert isinstance(found, NONE), found


@pytest.mark.parametrize("name", sorted(set(TESTS) - {"kruskal", "dunn"}))
def test_an_infinite_value_is_for_ranks_only(name: str) -> None:
    assert isinstance(TESTS[name]([[1.0, 2.0, INF], [2.0, 3.0, 5.0]]), NotComputable)


def test_an_infinite_value_is_the_largest_rank() -> None:
    lost = papers.kruskal_wallis([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, INF]])
    late = papers.kruskal_wallis([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    assert (lost.statistic, lost.p) == (late.statistic, late.p)


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize("values", [[], [NAN, 1.0, 2.0], [INF, 1.0, 2.0, 3.0]])
def test_one_group_without_data_for_it(name: str, values) -> None:
    assert isinstance(ALONE[name](values), NONE)


@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0], [3.0, 3.0, 3.0], [0.0] * 5001])
def test_normality_of_too_few_too_many_or_equal_values_is_not_told(values) -> None:
    assert isinstance(papers.shapiro_wilk(values), NONE)


@pytest.mark.parametrize("name", PAIRED)
@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([], []),
        ([1.0, 2.0], [2.0, 3.0]),
        ([1.0, 2.0, 3.0, NAN], [1.0, 2.0, 3.0, 4.0]),
        ([5.0] * 6, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
    ],
    ids=["empty", "two points", "missing", "constant"],
)
def test_no_association_without_data_for_it(name: str, x, y) -> None:
    assert isinstance(PAIRED[name](x, y), NONE)


def test_a_perfect_association_has_no_interval_of_no_width() -> None:
    points = [float(v) for v in range(1, 13)]
    for found in (association.pearson(points, points), association.kendall(points, points)):
        assert found.estimate == pytest.approx(1) and isinstance(found.interval, NotComputable)


def test_aligned_ranks_say_why_they_cannot() -> None:
    four = {"a": [1, 1, 2, 2], "b": [1, 2, 1, 2]}
    assert isinstance(papers.aligned_ranks([1.0, 2.0, 3.0, 4.0], four), TooFew)
    eight = {name: levels * 2 for name, levels in four.items()}
    assert isinstance(papers.aligned_ranks([1.0, 2.0, 3.0, 4.0] * 2, eight), NotComputable)
    assert isinstance(papers.aligned_ranks([1.0] * 8, eight), NotComputable)
    assert isinstance(papers.aligned_ranks([1.0] * 7 + [NAN], eight), NotComputable)
    assert isinstance(papers.aligned_ranks([1.0] * 8, {"a": eight["a"]}), NotComputable)
    gap = {"a": [1, 1, 2, 2, 1], "b": [1, 2, 1, 1, 2]}
    assert isinstance(papers.aligned_ranks([1.0, 2.0, 3.0, 5.0, 4.0], gap), NotComputable)


def test_aligned_ranks_give_no_p_where_nearly_all_values_are_equal() -> None:
    names = ("a", "b", "c")
    combinations = list(product((1, 2), repeat=3)) * 3
    factors = {name: [one[at] for one in combinations] for at, name in enumerate(names)}
    one_lost = papers.aligned_ranks([1.0] + [0.0] * 23, factors)
    assert str(one_lost) == (
        "23 of 24 values are equal, so the few others would decide every effect"
    )
    planted = [float(place % 8) for place in range(24)]
    assert "all values of each group are equal" in str(papers.aligned_ranks(planted, factors))
    one_off = papers.aligned_ranks([planted[0] + 0.5, *planted[1:]], factors)
    assert str(one_off).startswith("in 7 of 8 combinations of levels all values are equal")
    half = [place + 1.0 if place < 12 else 0.0 for place in range(24)]
    assert isinstance(papers.aligned_ranks(half, factors), dict), "ties alone are no reason"


ANY = st.floats(allow_nan=True, allow_infinity=True)
GROUPS = st.lists(
    st.one_of(
        st.lists(ANY, max_size=6),
        st.lists(st.sampled_from([0.0, 1.0, 1.0 + 1e-15, 2.0, 1e308, -1e308, 5e-324]), max_size=6),
    ),
    min_size=2,
    max_size=3,
)


@settings(max_examples=60, deadline=None)
@given(GROUPS)
@example([[1e308], [1.0, 2.0]])  # squares overflow where Box–Cox searches for its power
def test_whatever_comes_in_a_sound_answer_comes_out(groups) -> None:
    for name, test in TESTS.items():
        if name not in ("tukey", "games"):  # slow integrals, with a separate example
            sound(test(groups))
    for test in ALONE.values():
        sound(test(groups[0]))
    size = min(len(groups[0]), len(groups[1]))
    for test in PAIRED.values():
        sound(test(groups[0][:size], groups[1][:size]))
    path = papers.decide({str(at): group for at, group in enumerate(groups)})
    sound(path.with_all.test)
    if path.without_outliers is not None:
        sound(path.without_outliers.test)


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_pairs_of_very_small_and_very_large_means(size: float) -> None:
    groups = {"a": [1.0, 2.0, 3.0], "b": [2.0, 4.0, 7.0], "c": [5.0, 9.0, 6.0]}
    for test in (papers.tukey_hsd, papers.games_howell):
        plain = test(groups)
        scaled = test({name: np.array(values) * size for name, values in groups.items()})
        sound(scaled)
        for one, other in zip(plain, scaled, strict=True):
            assert list(one.p.values()) == pytest.approx(list(other.p.values()))


def test_kruskal_wallis_of_more_groups_than_a_float_can_count_arrangements_of() -> None:
    groups = [[float(60 * run + group) for run in range(5)] for group in range(60)]
    found = papers.kruskal_wallis(groups)
    assert not isinstance(found, NONE)
    assert 0 < found.p <= 1
