"""A pilot's predictions for the planned campaign."""

from __future__ import annotations

import re

import numpy as np
import pytest

from wattwire import stats
from wattwire.analysis.dataset import gather
from wattwire.analysis.pilot import Aim, energy_line, lines
from wattwire.report.tests.synthetic import Shape, write_campaign
from wattwire.store import Campaign


@pytest.fixture(scope="module")
def pilot(tmp_path_factory):
    shape = Shape(blocks=4, duration_s=1.0, patterns=("topic",), clients=(1,), intervals_s=(0.05,))
    return gather(Campaign(write_campaign(tmp_path_factory.mktemp("pilot") / "c", shape)))


def test_a_narrower_aim_takes_more_blocks_and_caution_more_still(pilot) -> None:
    def blocks(width: float) -> list[int]:
        told = next(
            line for line in lines(pilot, Aim(width, 0.05, 5)) if line.startswith("CPU time")
        )
        return [
            int(n.replace("\u202f", "")) for n in re.findall(r"(\d[\d\u202f]*) blocks?\b", told)
        ]

    wide, narrow = blocks(0.2), blocks(0.005)
    assert narrow[0] > wide[0]
    assert narrow[1] > narrow[0]


def test_the_planned_width_is_that_of_the_pilots_own_interval_for_as_many_blocks(pilot) -> None:
    told = next(line for line in lines(pilot, Aim(0.05, None, 4)) if line.startswith("CPU time"))
    said = float(re.search(r"the 4 planned give ± ([\d.]+) %", told)[1]) / 100
    level = float(re.search(r"at ([\d.]+) %", next(iter(lines(pilot, Aim(0.05, None, 4)))))[1])
    fit = stats.fit_log(
        pilot.usable["cpu_us_per_message"].to_list(),
        pilot.usable["block"].to_list(),
        {"language": pilot.usable["factor.language"].to_list()},
    )
    assert isinstance(fit, stats.Fit)
    found = stats.ratio(fit, "language", "swift", "python", level / 100)
    assert isinstance(found, stats.Ratio)
    assert said == pytest.approx(found.interval.high / found.interval.estimate - 1, rel=0.05)


def test_energy_without_a_meter_is_not_predicted_and_with_one_it_is(pilot) -> None:
    *_, last = lines(pilot, Aim(0.05, None, 4))
    assert "no meter measured power" in last
    # 1 mJ a message at 1 kHz with √2·0.1 W from block to block.
    delta = 1.0 + 0.1 * np.sqrt(2) * np.array([1.0, -1.0, 1.0, -1.0]) / np.sqrt(4 / 3)
    told = energy_line("all runs", delta, np.full(4, 1000.0), 11)
    assert "11 blocks resolve 95 µJ" in told
    assert "needs 11 blocks" in told
