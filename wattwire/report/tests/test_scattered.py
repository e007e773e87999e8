"""Tests of the points of scatter charts, and of the runs without a point."""

from __future__ import annotations

import numpy as np
import pytest

from wattwire.analysis.charts import points_of
from wattwire.analysis.dataset import gather
from wattwire.report.tests.synthetic import SLOW, Shape, write_campaign
from wattwire.store import Campaign


@pytest.fixture(scope="module")
def evidence(tmp_path_factory):
    shape = Shape(blocks=2, patterns=("topic",), clients=(1,), measured_energy=True)
    return gather(Campaign(write_campaign(tmp_path_factory.mktemp("scattered") / "c", shape)))


def test_runs_without_a_positive_bounded_value_of_both_have_no_place(evidence):
    frame = evidence.usable
    across, up = np.arange(1.0, frame.height + 1), np.full(frame.height, 1234.56789)
    across[0], across[1], up[2], up[3] = 0.0, np.nan, np.inf, -1.0
    points = points_of(evidence, frame, across, up, "language", "here")
    assert [point["x"] for point in points] == list(range(5, frame.height + 1))
    assert {point["panel"] for point in points} == {"here"}
    assert all(point["run"] and point["y"] == pytest.approx(1234.57, rel=1e-3) for point in points)


def test_the_colour_is_of_the_factor_that_is_asked_for(evidence):
    frame, ones = evidence.usable, np.ones(evidence.usable.height)
    found = {
        tone: {point["colour"] for point in points_of(evidence, frame, ones, ones, tone, "")}
        for tone in ("language", "interval_s")
    }
    assert found == {"language": {"Swift", "Python"}, "interval_s": {"0.05 s", "0.2 s"}}
    (title, *_) = {p["treatment"] for p in points_of(evidence, frame, ones, ones, "language", "")}
    assert any(evidence.title("language", level) in title for level in (SLOW, "swift"))
