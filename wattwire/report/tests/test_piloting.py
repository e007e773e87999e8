"""Tests of a pilot's predictions for the planned campaign."""

from __future__ import annotations

import numpy as np
import pytest

from wattwire import stats
from wattwire.analysis.dataset import Evidence, gather
from wattwire.analysis.pilot import Aim, WidthPrediction, energy_prediction, predict
from wattwire.analysis.responses import CPU
from wattwire.model import words
from wattwire.report.tests.synthetic import Shape, write_campaign
from wattwire.report.words.pilot import energy, lines
from wattwire.store import Campaign


@pytest.fixture(scope="module")
def pilot(tmp_path_factory):
    shape = Shape(blocks=4, duration_s=1.0, patterns=("topic",), clients=(1,), intervals_s=(0.05,))
    return gather(Campaign(write_campaign(tmp_path_factory.mktemp("pilot") / "c", shape)))


def cpu_time(pilot: Evidence, aim: Aim) -> tuple[WidthPrediction, str]:
    """Return the prediction for CPU time and its line."""
    prediction = predict(pilot, aim)
    index = next(i for i, answer in enumerate(prediction.answers) if answer.answer.response == CPU)
    result = prediction.answers[index].result
    assert isinstance(result, WidthPrediction)
    return result, list(lines(pilot, prediction))[1 + index]


def test_a_narrower_aim_takes_more_blocks_and_caution_more_still(pilot) -> None:
    wide, wide_line = cpu_time(pilot, Aim(0.2, 0.05, 5))
    narrow, _ = cpu_time(pilot, Aim(0.005, 0.05, 5))
    assert narrow.blocks > wide.blocks
    assert narrow.cautious_blocks > narrow.blocks
    assert f": {wide.blocks} blocks for ± 20 % (" in wide_line


def test_the_planned_width_is_that_of_the_pilots_own_interval_for_as_many_blocks(pilot) -> None:
    aim = Aim(0.05, None, 4)
    predicted, line = cpu_time(pilot, aim)
    assert f"the 4 planned give ± {words.percent(predicted.planned_width)}" in line
    level = predict(pilot, aim).level
    fit = stats.fit_log(
        pilot.usable["cpu_us_per_message"].to_list(),
        pilot.usable["block"].to_list(),
        {"language": pilot.usable["factor.language"].to_list()},
    )
    assert isinstance(fit, stats.Fit)
    ratio = stats.ratio(fit, "language", "swift", "python", level)
    assert isinstance(ratio, stats.Ratio)
    width = ratio.interval.high / ratio.interval.estimate - 1
    assert predicted.planned_width == pytest.approx(width, rel=0.05)


def test_energy_without_a_meter_is_not_predicted_and_with_one_it_is(pilot) -> None:
    prediction = predict(pilot, Aim(0.05, None, 4))
    assert not prediction.energy
    assert "no meter measured power" in list(lines(pilot, prediction))[-1]
    # 1 mJ per message at 1 kHz, with √2·0.1 W from block to block.
    delta = 1.0 + 0.1 * np.sqrt(2) * np.array([1.0, -1.0, 1.0, -1.0]) / np.sqrt(4 / 3)
    predicted = energy_prediction((), delta, np.full(4, 1000.0), 11)
    assert predicted.resolution is not None
    assert predicted.resolution.needed_blocks == 11
    assert predicted.resolution.resolved_j == pytest.approx(95e-6, rel=0.01)
    assert "J per message, all runs: " in energy(predicted)
    assert "11 blocks resolve 95 µJ" in energy(predicted)
