"""Test the verdicts of the bench on `wattwire exec`."""

from __future__ import annotations

import pytest

from bench.peers.commands import Figures


@pytest.mark.parametrize(
    ("ours_s", "again_s", "verdict"),
    [
        ([0.101, 0.099], [0.1, 0.1], "passed"),
        # A passed row needs no agreement of the reference with itself.
        ([0.101, 0.099], [0.1, 0.104], "passed"),
        ([0.101, 0.097], [0.1, 0.1], "failed"),
        ([0.101, 0.097], [0.1, 0.104], "undecided"),
    ],
)
def test_a_deviation_is_undecided_if_the_reference_deviates_from_itself(ours_s, again_s, verdict):
    figures = Figures("x", "s", 2e-3, is_share=False)
    for ours, again in zip(ours_s, again_s, strict=True):
        figures.add(ours, 0.1, again)
    assert figures.row().endswith(f"| {verdict} |")


def test_shares_are_of_the_reference():
    figures = Figures("x", "MiB", 0.02)
    figures.add(101.0, 100.0)
    figures.add(49.5, 50.0)
    row = figures.row()
    assert "| 1.00 % | ≤ 2 % | 2 of 2 | – | passed |" in row
