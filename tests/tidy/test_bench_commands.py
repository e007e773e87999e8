"""Test the verdicts of the bench on `wattwire exec`."""

from __future__ import annotations

import pytest

from bench.peers.commands import Figures


@pytest.mark.parametrize(
    ("ours_s", "within", "verdict"),
    [([0.101, 0.099], "2 of 2", "passed"), ([0.101, 0.097], "1 of 2", "failed")],
)
def test_each_repeat_has_to_be_within_the_target(ours_s, within, verdict):
    figures = Figures("x", "s", 2e-3, is_share=False)
    for ours in ours_s:
        figures.add(ours, 0.1)
    assert figures.row().endswith(f"| {within} | {verdict} |")


def test_shares_are_of_the_reference():
    figures = Figures("x", "MiB", 0.02)
    figures.add(101.0, 100.0)
    figures.add(49.5, 50.0)
    row = figures.row()
    assert "| 1.00 % | ≤ 2 % | 2 of 2 | passed |" in row
