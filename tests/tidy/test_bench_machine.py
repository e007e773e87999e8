"""Test the verdicts of the bench on planted joules."""

from __future__ import annotations

from bench.rigs.planted_joules import CAMPAIGNS, table


def rows(held: int, count: int = CAMPAIGNS) -> list[dict]:
    interval = {"low": 0.9, "estimate": 1.0, "high": 1.1}
    return [
        {"campaign": at, "treatment": ["C++"], "planted_j": 1.05 if at < held else 1.2, **interval}
        for at in range(count)
    ]


def test_eighteen_of_twenty_intervals_have_to_hold() -> None:
    assert [*table(rows(18))][2] == "| C++ | 10.0 % | 18 of 20 | ≥ 18 of 20 | passed |"
    assert [*table(rows(17))][2].endswith("| 17 of 20 | ≥ 18 of 20 | failed |")


def test_fewer_campaigns_decide_nothing() -> None:
    assert [*table(rows(5, 5))][2].endswith("| 5 of 5 | ≥ 18 of 20 | undecided |")


def test_a_campaign_without_an_interval_does_not_hold() -> None:
    without = {"campaign": 99, "treatment": ["C++"], "planted_j": 1.0}
    assert [*table([*rows(18, 19), without])][2].endswith("| 18 of 20 | ≥ 18 of 20 | passed |")
    assert [*table([*rows(17, 19), without])][2].endswith("| 17 of 20 | ≥ 18 of 20 | failed |")
