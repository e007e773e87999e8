"""Test the verdicts of the bench on planted joules."""

from __future__ import annotations

import pytest

from bench.rigs.planted_joules import CAMPAIGNS, table

TARGET = "≥ 18 of 20, ≤ 2 %"


def rows(held: int, count: int = CAMPAIGNS, estimate: float = 1.0) -> list[dict]:
    """Return campaigns of which `held` have a narrow interval around the planted 1 J."""
    return [
        {"campaign": at, "treatment": ["C++"], "planted_j": 1.0, "estimate": estimate,
         "low": estimate - 0.1 if at < held else 1.001, "high": estimate + 0.1}
        for at in range(count)
    ]  # fmt: skip


def verdict(campaigns: list[dict]) -> str:
    return [*table(campaigns)][2].split(" | ", 2)[2].removesuffix(" |")


def test_eighteen_of_twenty_intervals_have_to_hold() -> None:
    assert verdict(rows(18)) == f"0.00 % | 18 of 20 | {TARGET} | passed"
    assert verdict(rows(17)) == f"0.00 % | 17 of 20 | {TARGET} | failed"


def test_wide_intervals_around_a_wrong_estimate_do_not_pass() -> None:
    assert verdict(rows(20, estimate=1.019)) == f"1.90 % | 20 of 20 | {TARGET} | passed"
    assert verdict(rows(20, estimate=0.979)) == f"2.10 % | 20 of 20 | {TARGET} | failed"


def test_fewer_campaigns_decide_nothing() -> None:
    assert verdict(rows(5, 5)).endswith(f"| 5 of 5 | {TARGET} | undecided")


@pytest.mark.parametrize(
    "without",
    [
        {"campaign": 99, "treatment": ["C++"], "planted_j": 1.0},
        {"campaign": 99, "lost": "qemu ended"},
    ],
)
def test_a_campaign_that_was_lost_or_has_no_interval_does_not_hold(without: dict) -> None:
    assert verdict([*rows(18, 19), without]).endswith(f"| 18 of 20 | {TARGET} | passed")
    assert verdict([*rows(17, 19), without]).endswith(f"| 17 of 20 | {TARGET} | failed")
