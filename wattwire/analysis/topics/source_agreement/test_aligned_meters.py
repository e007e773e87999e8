"""Test that a meter's readings at the loads give its offset, and a bound for energies of runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from wattwire.analysis.dataset import gather
from wattwire.analysis.topics.source_agreement.numbers import SourceAgreement, source_agreement
from wattwire.model.outside_meters import CHIP_S, CHIPS
from wattwire.report.tests.synthetic import SECOND, Shape, write_campaign
from wattwire.report.topic_page import topic_page
from wattwire.stats import Interval, NotComputable
from wattwire.stats.series.alignment import Load, chips
from wattwire.store import Campaign
from wattwire.store.campaign import ALIGNMENT
from wattwire.store.files import write_table

LATE_S, PHASE_S = 0.7, 0.3
"""Time after which a reading comes, and the phase of the meter's second."""
METER = {"name": "plug", "host": "", "window_s": 1.0, "share": 0.005, "watts": 0.1}
QUANTITY, BOOT = "power_input", "b"


class Planted:
    """The power of a machine during two loads and the runs, read by a meter each second."""

    def __init__(self, spans_s: list[tuple[float, float]]) -> None:
        self.origin_s = spans_s[0][0] - 140.0
        self.loads = [Load.starting_at(at) for at in (0.0, spans_s[-1][1] - self.origin_s + 10.0)]
        end_s = self.loads[-1].boundaries_s[-1]
        grid_s = np.arange(-30.0, end_s + 30.0, 0.01)
        busy = np.zeros(grid_s.size)
        for load in self.loads:
            chip = np.floor((grid_s - load.boundaries_s[0]) / CHIP_S).astype(int)
            inside = (chip >= 0) & (chip < CHIPS)
            busy[inside] = np.array(chips())[chip[inside]]
        for begin_s, end_s in spans_s:
            run_s = grid_s + self.origin_s
            busy[(run_s >= begin_s) & (run_s < end_s)] = 0.5
        self.ends_s = np.arange(-20.0 + PHASE_S, grid_s[-1] - 1.0)
        joules = np.concatenate(([0.0], np.cumsum(0.01 * (10.0 + 12.0 * busy))))[:-1]
        means = np.interp(self.ends_s, grid_s, joules) - np.interp(self.ends_s - 1, grid_s, joules)
        noise = np.random.default_rng(1).normal(0.0, 0.3, means.size)
        self.powers_w = np.round(means + noise, 1)

    def readings(self, begin_s: float, end_s: float) -> tuple[list[int], list[float]]:
        """Return the times (ns) and values (µW) that come between two times since the origin."""
        come_s = self.ends_s + LATE_S
        inside = (come_s >= begin_s) & (come_s <= end_s)
        times_ns = np.round((come_s[inside] + self.origin_s) * SECOND).astype(np.int64)
        return times_ns.tolist(), (1e6 * self.powers_w[inside]).tolist()


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    """Return a campaign with --align whose meter is read in its loads and its runs."""
    shape = Shape(blocks=2, intervals_s=(0.05,), clients=(1,), patterns=("topic",))
    campaign = Campaign(write_campaign(tmp_path / "c", shape))
    runs = [row["run"] for row in campaign.plan if row["run"]]
    windows = [campaign.run(run)["window"] for run in runs]
    spans = [(w["start_ns"] / SECOND, w["end_ns"] / SECOND) for w in windows]
    planted = Planted(sorted(spans))
    loads = []
    for load in planted.loads:
        times_ns, values = planted.readings(load.boundaries_s[0], load.boundaries_s[-1])
        at_load = {"quantity": QUANTITY, "counter": False, "t_ns": times_ns, "values": values}
        boundaries = np.round((load.boundaries_s + planted.origin_s) * SECOND).astype(np.int64)
        loads.append({"boot_id": BOOT, "levels": list(chips()), "meters": {"plug": at_load},
                      "boundaries_ns": boundaries.tolist()})  # fmt: skip
    campaign.write_json(ALIGNMENT, {"loads": loads})
    campaign.write_json("machine.json", {**campaign.machine, "outside_meters": [METER]})
    for run, (begin_s, end_s) in zip(runs, spans, strict=True):
        # The sampling ends soon after the window, so the last reading is of a time within it.
        since_s = (begin_s - planted.origin_s - 5.0, end_s - planted.origin_s + 0.3)
        times_ns, values = planted.readings(*since_s)
        columns = {"t_ns": times_ns, "value": values}
        frame = pl.DataFrame(columns).with_columns(
            pl.lit("plug").alias("meter"), pl.lit(QUANTITY).alias("quantity")
        )
        write_table(frame, campaign.folder(run) / "quantities.parquet")
    return campaign


def result_of(campaign: Campaign) -> SourceAgreement:
    return source_agreement(gather(Campaign(campaign.path)))


def test_the_energy_of_each_run_has_the_offset_and_a_bound_of_all_terms(
    campaign: Campaign,
) -> None:
    result = result_of(campaign)
    assert [clock.load for clock in result.clocks] == ["first", "last"]
    for clock in result.clocks:
        assert isinstance(clock.offset_s, Interval) and not clock.offset_s.excludes(LATE_S)
        assert clock.half_width_s is not None and clock.half_width_s <= 0.1
    assert len(result.energies) == 4
    for run in result.energies:
        assert run.joules is not None and run.bound_j is not None, run.reason
        assert abs(run.joules - 16.0 * run.window_s) <= run.bound_j <= 0.1 * run.joules
        assert run.bound_j == pytest.approx(run.edges_j + run.resolution_j + run.class_j)
        assert run.resolution_j == pytest.approx(0.05 * run.window_s)
    clocks, energies, _ = topic_page("source_agreement", result).section().parts
    assert clocks.rows[0]["offset_s"] == result.clocks[0].offset_s
    assert energies.rows[0]["bound_j"] == result.energies[0].bound_j


def test_readings_without_the_load_have_a_reason_and_no_energy(campaign: Campaign) -> None:
    first, last = campaign.alignment_loads() or ()
    values = first["meters"]["plug"]["values"]
    first["meters"]["plug"]["values"] = [10e6 + at % 3 for at in range(len(values))]
    campaign.write_json(ALIGNMENT, {"loads": [first, last]})
    result = result_of(campaign)
    (clock,) = result.clocks
    assert isinstance(clock.offset_s, NotComputable) and "contain" in clock.offset_s.reason
    assert result.energies == ()


@pytest.mark.parametrize(
    ("window_s", "text"), [(1.5, "too short for this meter"), (0.2, "the readings cover")]
)
def test_a_run_that_the_meter_cannot_measure_has_a_reason(
    campaign: Campaign, window_s: float, text: str
) -> None:
    machine = {**campaign.machine, "outside_meters": [METER | {"window_s": window_s}]}
    campaign.write_json("machine.json", machine)
    energies = result_of(campaign).energies
    assert energies and all(text in run.reason and run.joules is None for run in energies)


def test_without_loads_no_meter_is_aligned(campaign: Campaign) -> None:
    (campaign.path / ALIGNMENT).unlink()
    result = result_of(campaign)
    assert result.clocks == () and result.energies == ()
