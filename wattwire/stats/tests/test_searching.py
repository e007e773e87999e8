"""Searches find what scipy's find, and keep to their bracket."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from wattwire.stats.searching import crossing, lowest


@given(st.floats(-50, 50), st.floats(0.1, 40), st.floats(0.1, 40))
def test_a_crossing_is_where_brent_finds_it(root, before, behind):
    def falling(x: float) -> float:
        return -math.expm1(x - root) if x < root + 30 else -1e13

    found = crossing(falling, root - before, root + behind, 1e-9)
    assert found == pytest.approx(root, abs=1e-9)
    assert found == pytest.approx(optimize.brentq(falling, root - before, root + behind), abs=1e-8)


def test_without_a_crossing_nothing_is_invented():
    with pytest.raises(ValueError, match="between 0 and 1"):
        crossing(lambda _: 1.0, 0.0, 1.0, 1e-9)
    big = 1e17
    assert crossing(lambda x: big - x, 0.0, 2 * big, 1e-9) == pytest.approx(big, rel=1e-15)


@given(st.floats(-4, 4), st.floats(0.5, 3))
def test_a_valley_is_where_brent_finds_it(bottom, steepness):
    def valley(x: float) -> float:
        return math.cosh(steepness * (x - bottom))

    found = lowest(valley, -5.0, 5.0, 1e-9)
    # Near its bottom a valley is flat to half the digits of a number.
    assert found == pytest.approx(bottom, abs=1e-6)
    best = optimize.minimize_scalar(valley, bounds=(-5, 5), method="bounded")
    assert valley(found) <= best.fun + 1e-12


def test_at_an_edge_or_on_a_plain_the_search_ends_inside():
    assert lowest(lambda x: x, -5.0, 5.0, 1e-9) == pytest.approx(-5.0, abs=1e-8)
    assert lowest(lambda x: -x, -5.0, 5.0, 1e-9) == pytest.approx(5.0, abs=1e-8)
    assert -5.0 <= lowest(lambda _: math.inf, -5.0, 5.0, 1e-9) <= 5.0
