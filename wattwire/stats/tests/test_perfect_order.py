"""Test that perfectly ordered ranks do not cause a division by zero."""

from __future__ import annotations

import pytest

from wattwire.stats import association


@pytest.mark.parametrize("count", [10, 12, 15, 20, 33, 90])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_perfect_order_has_a_p_and_no_interval(count, sign) -> None:
    found = association.spearman([float(n) for n in range(count)], [sign * n for n in range(count)])
    assert isinstance(found, association.Association)
    assert found.estimate == pytest.approx(sign)
    assert found.p < 1e-6
    assert "no width" in str(found.interval)


@pytest.mark.parametrize("count", [8, 20, 24])
def test_perfectly_linear_runs_inside_groups_do_so_too(count) -> None:
    x = [float(n) for n in range(count)]
    found = association.within_groups(x, x, [n % 2 for n in range(count)])
    assert isinstance(found, association.Association)
    assert found.estimate == pytest.approx(1.0)
    assert found.p < 1e-6
