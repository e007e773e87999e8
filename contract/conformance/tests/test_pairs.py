"""Test that both cells of a pair have the same settings, which both support."""

from __future__ import annotations

import pytest

from contract.conformance.cell import CellUnderTest
from contract.conformance.payloads import common_settings

ANY = CellUnderTest("mmm/any", (), settings={"server": "web", "depth": 10})
ONLY_TCP = CellUnderTest(
    "mmm/few", (), settings={"server": "tcp", "depth": 10}, excluded={"server": "web"}
)


@pytest.mark.parametrize("cells", [(ANY, ONLY_TCP), (ONLY_TCP, ANY)])
def test_a_setting_that_differs_has_the_value_that_both_cells_support(cells):
    assert common_settings(*cells) == {"settings.server": "tcp"}


def test_settings_that_are_equal_are_not_changed():
    assert common_settings(ANY, ANY) == common_settings(ONLY_TCP, ONLY_TCP) == {}
