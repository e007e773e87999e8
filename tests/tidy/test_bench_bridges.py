"""Test the computations of the bench of bridges."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from bench import pairs
from bench.rigs.bridges import (
    BARE,
    CPU,
    ROUND_TRIP,
    Soak,
    inner_cell,
    memory_of,
    paired,
    slope,
    verdict,
    with_bare_loop,
)
from wattwire.catalog import Catalog, home

SEED = 7
MINUTES = np.linspace(0.0, 10.0, 6000)


@pytest.fixture(autouse=True)
def lost(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    lost: list[str] = []
    monkeypatch.setattr(pairs, "lost_pairs", lost)
    yield lost


def row(block: int, bridge: str, **changes: Any) -> dict[str, Any]:
    return {
        "block": block, "factor.bridge": bridge, "outcome": "completed", "sent": 400,
        "received_unique": 400, "rate_hz_achieved": 100.0, "since_send_p50_us": 2000.0,
        "cpu_share.bridge.0": 0.1, "cpu_share.bridge.1": 0.2, "cpu_share.sender": 0.5, **changes,
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(Catalog([home()]).bridges))
def test_the_bare_loop_replaces_the_program_of_its_bridge(name: str, tmp_path: Path) -> None:
    folder = Catalog([home()]).bridges[name].parent
    bare = with_bare_loop(folder, tmp_path)
    catalog = Catalog([tmp_path, home()])
    sides = [catalog.bridge(side).document for side in (name, bare)]
    assert sides[1]["run"]["argv"][-1] == "{source}/" + BARE
    assert sides[0] == {**sides[1], "run": sides[0]["run"]}
    assert inner_cell(catalog, bare) == inner_cell(catalog, name) in catalog.cells


def test_a_pair_has_the_round_trips_and_the_cpu_time_of_bridge_processes() -> None:
    faster = row(1, "bare", since_send_p50_us=1900.0)
    rows = [faster, row(1, "ours"), row(2, "ours"), row(2, "bare")]
    sides = paired(rows, "ours", "bare", 2)
    assert sides[ROUND_TRIP] == ((2000.0, 2000.0), (1900.0, 2000.0))
    assert sides[CPU][0] == pytest.approx((3000.0, 3000.0))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"outcome": "died"}, "died"), ({"received_unique": 399}, "399 of 400 messages arrived")],
)
def test_a_run_with_a_loss_costs_its_pair(
    changes: dict[str, Any], reason: str, lost: list[str]
) -> None:
    rows = [row(1, "ours"), row(1, "bare", **changes), row(2, "ours"), row(2, "bare")]
    assert paired(rows, "ours", "bare", 2)[ROUND_TRIP] == ((2000.0,), (2000.0,))
    assert lost == [f"ours, pair 1 of 2: bare: {reason}"]


def test_a_block_without_one_side_is_a_lost_pair(lost: list[str]) -> None:
    assert paired([row(1, "ours")], "ours", "bare", 1)[CPU] == ((), ())
    assert lost == ["ours, pair 1 of 1: bare: no run"]


@pytest.mark.parametrize("planted", [0.0, 0.5, 2.0])
def test_the_limits_of_a_slope_hold_the_planted_slope(planted: float) -> None:
    noise = np.random.default_rng(SEED).normal(0.0, 1.0, MINUTES.size)
    estimate, low, high = slope(MINUTES, 100.0 + planted * MINUTES + noise)
    assert low < planted < high and low < estimate < high
    assert high - low < 0.1


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_readings_have_no_limits(count: int) -> None:
    assert slope(MINUTES[:count], MINUTES[:count]) == (0.0, -math.inf, math.inf)


@pytest.mark.parametrize(
    ("rss_mib", "low", "high", "expected"),
    [
        (299.0, -0.1, 0.9, "passed"),
        (301.0, -0.1, 0.1, "failed"),
        (100.0, 1.1, 1.3, "failed"),
        (100.0, 0.9, 1.1, "undecided"),
        (100.0, -math.inf, math.inf, "undecided"),
    ],
)
def test_memory_passes_if_both_targets_are_met(
    rss_mib: float, low: float, high: float, expected: str
) -> None:
    assert verdict(Soak("bridge-0", rss_mib, 0.0, low, high)) == expected


def test_memory_is_that_of_bridge_processes_in_the_window() -> None:
    minute_ns, mib = 60 * 10**9, float(2**20)
    readings = pl.DataFrame(
        [
            ("rss", "bridge-0", number * minute_ns // 10, (50.0 + max(number, 10) / 10) * mib)
            for number in range(-5, 116)
        ]
        + [("rss", "sender", 0, 900 * mib), ("cpu", "bridge-0", 0, 1e12)],
        schema=["quantity", "subject", "t_ns", "value"],
        orient="row",
    )
    (soak,) = memory_of(readings, {"start_ns": 0, "end_ns": 11 * minute_ns})
    assert (soak.process, soak.rss_max_mib) == ("bridge-0", pytest.approx(61.0))
    assert soak.slope_mib_per_min == pytest.approx(1.0)  # the first minute has none
