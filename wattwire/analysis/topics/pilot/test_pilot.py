"""Tests of a pilot's predictions for the planned campaign."""

from __future__ import annotations

import numpy as np
import pytest

from wattwire import stats
from wattwire.analysis.dataset import Evidence, gather
from wattwire.analysis.responses import CPU
from wattwire.analysis.topics.pilot.numbers import (
    Aim,
    AnswerPrediction,
    EnergyPrediction,
    EnergyResolution,
    Equivalence,
    Prediction,
    WidthPrediction,
    energy_prediction,
    predict,
)
from wattwire.report.tests.synthetic import Shape, write_campaign
from wattwire.report.topic_page import Sentences, topic_page
from wattwire.store import Campaign

SENTENCES = Sentences("pilot")


@pytest.fixture(scope="module")
def pilot(tmp_path_factory):
    shape = Shape(blocks=4, duration_s=1.0, patterns=("topic",), clients=(1,), intervals_s=(0.05,))
    return gather(Campaign(write_campaign(tmp_path_factory.mktemp("pilot") / "c", shape)))


def cpu_time(pilot: Evidence, aim: Aim) -> WidthPrediction:
    """Return the prediction for CPU time."""
    answers = predict(pilot, aim).answers
    width = next(answer.width for answer in answers if answer.response == CPU.column)
    assert width is not None
    return width


def test_a_narrower_aim_takes_more_blocks_and_caution_more_still(pilot) -> None:
    wide, narrow = (cpu_time(pilot, Aim(width, 0.05, 5)) for width in (0.2, 0.005))
    assert narrow.blocks > wide.blocks
    assert narrow.cautious_blocks > narrow.blocks


def test_the_planned_width_is_that_of_the_pilots_own_interval_for_as_many_blocks(pilot) -> None:
    aim = Aim(0.05, None, 4)
    predicted = cpu_time(pilot, aim)
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
    assert "no meter measured power" in topic_page("pilot", prediction).texts[-1]
    # 1 mJ per message at 1 kHz, with √2·0.1 W from block to block.
    delta = 1.0 + 0.1 * np.sqrt(2) * np.array([1.0, -1.0, 1.0, -1.0]) / np.sqrt(4 / 3)
    predicted = energy_prediction((), delta, np.full(4, 1000.0), 11)
    assert predicted.resolution is not None
    assert predicted.resolution.needed_blocks == 11
    assert predicted.resolution.resolved_j == pytest.approx(95e-6, rel=0.01)
    assert "J per message, all runs: " in SENTENCES.energy(predicted)
    assert "11 blocks resolve 95 µJ" in SENTENCES.energy(predicted)


AIM = Aim(0.2, 0.05, 4)
FEW = stats.TooFew(1, 3, "blocks")


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (FEW, f": cannot be planned ({FEW})"),
        (
            stats.NotPositive("zero in 1 of 4 runs", 1, 4),
            ": cannot be planned, because planning needs ratios (zero in 1 of 4 runs)",
        ),
        (
            WidthPrediction(7, stats.NotComputable("no limit"), None, None),
            ": 7 blocks for ± 20 % (no limit if the pilot underestimates the scatter)",
        ),
        (
            WidthPrediction(1, 9, 0.25, Equivalence(12, 0.5)),
            ": 1 block for ± 20 % (9 blocks if the pilot underestimates the scatter); the 4 "
            "planned give ± 25 %; 12 blocks to show equivalence within ± 5.0 % with power 0.8 "
            "(the planned blocks have power 0.50)",
        ),
        (WidthPrediction(1, 9, None, Equivalence(12, None)), "within ± 5.0 % with power 0.8"),
    ],
)
def test_each_answer_has_a_line_with_its_blocks_or_the_reason_for_none(result, text) -> None:
    prediction = AnswerPrediction("cpu_us", "CPU time", "Swift", "Python", result)
    line = SENTENCES.answer(prediction, AIM)
    assert line.startswith("CPU time, Swift / Python: ") and line.endswith(text)
    page = topic_page("pilot", Prediction(AIM, 0.99, (prediction,), ()))
    assert page.texts[1] == line
    assert [part.key for _, part in page.parts] == ["pilot.level", "pilot.answer", "pilot.energy"]


def test_a_line_on_energy_has_the_resolution_or_states_that_power_is_constant() -> None:
    assert "power is equal" in SENTENCES.energy(EnergyPrediction(("A", "B"), None))
    resolution = EnergyResolution(0.5, 100.0, 4, 2e-5, -1e-5, None)
    line = SENTENCES.energy(EnergyPrediction(("A", "B"), resolution))
    assert line.startswith("J per message, A, B: power differs by 0.50 W")
    assert line.endswith("so 4 blocks resolve 20 µJ")
    page = topic_page("pilot", Prediction(AIM, 0.99, (), (EnergyPrediction((), resolution),)))
    assert [part.value for _, part in page.parts] == ["0", ""]
