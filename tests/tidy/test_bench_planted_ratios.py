"""Test the verdicts of the bench on ratios of two meters, and the supply that both measure."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from bench.rigs.planted_ratios import CAMPAIGNS, EQUAL, PLANTED, Supply, is_late, table


def campaign(kind: str = PLANTED, share: float = 0.05, **changes: Any) -> dict[str, Any]:
    known = {
        "kind": kind, "seed": 1, "share": share if kind == PLANTED else 0.0, "late_s": 0.0,
        "runs": 6, "first_w": 20.0, "allowed_w": 0.4, "is_named": kind == PLANTED,
    }  # fmt: skip
    truth = 1 + known["share"]
    return {**known, "low": truth - 0.005, "estimate": truth, "high": truth + 0.005, **changes}


def rows(**changes: Any) -> list[str]:
    """Return the rows of the promises, if the first campaign of each kind has `changes`."""
    measured = [campaign(kind) for kind in (PLANTED, EQUAL) for _ in range(CAMPAIGNS)]
    for at in (0, CAMPAIGNS):
        measured[at] = {**measured[at], **changes}
    return [*table(measured)][2:]


def verdicts(**changes: Any) -> list[str]:
    return [row.split(" | ")[-1].removesuffix(" |") for row in rows(**changes)[:3]]


def test_campaigns_that_keep_all_promises_pass() -> None:
    assert verdicts() == ["passed"] * 3
    assert rows()[3:] == [
        "| findings at a planted difference beyond both classes | 20 of 20 | – | |",
        "| findings at a planted difference within both classes | 0 of 0 | – | |",
    ]


def test_one_wide_interval_fails_and_one_without_the_truth_does_not() -> None:
    assert verdicts(high=1.07) == ["passed", "failed", "passed"]
    assert verdicts(low=1.051, high=1.053) == ["passed"] * 3


def test_findings_of_two_campaigns_with_equal_meters_fail() -> None:
    equal = [campaign(EQUAL, is_named=at < 2) for at in range(CAMPAIGNS)]
    silent = [*table(equal)][4]
    assert silent.endswith("| 18 of 20 | ≥ 19 of 20 | failed |")
    assert verdicts(is_named=True)[2] == "passed"


def test_a_lost_campaign_neither_holds_nor_is_narrow_or_silent() -> None:
    lost = {"kind": PLANTED, "seed": 1, "share": 0.05, "lost": "no ratio"}
    measured = [lost, *[campaign()] * (CAMPAIGNS - 1), {**lost, "kind": EQUAL}]
    held, narrow, silent = [*table(measured)][2:5]
    assert "| 19 of 20 |" in held and "(largest inf%) | 19 of 20 |" in narrow
    assert "| 0 of 1 |" in silent


def test_a_campaign_with_late_meters_is_measured_again() -> None:
    assert [is_late(campaign(late_s=late_s)) for late_s in (0.1, 0.6)] == [False, True]
    assert not is_late({"kind": PLANTED, "seed": 1, "lost": "no agent"})


def test_a_supply_delivers_between_its_idle_and_its_full_power() -> None:
    with closing(Supply(np.random.default_rng(1))) as supply:
        begin_s = time.monotonic()
        while supply.energy_j(begin_s + 0.4) == supply.energy_j(begin_s + 0.3):
            time.sleep(0.02)  # until the energy after 0.3 s is known
        energy_j = supply.energy_j(begin_s + 0.3)
        assert supply.energy_j(begin_s - 10.0) == 0.0
        power_w = (energy_j - supply.energy_j(begin_s + 0.1)) / 0.2
        assert 8.0 <= power_w <= 24.0
        middle_j = (energy_j + supply.energy_j(begin_s + 0.2)) / 2
        assert supply.energy_j(begin_s + 0.25) == pytest.approx(middle_j, abs=0.35)
