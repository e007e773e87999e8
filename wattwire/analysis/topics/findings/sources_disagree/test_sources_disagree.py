"""Tests of the finding on two sources of energy that disagree."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from wattwire.analysis.topics.findings.detector import Searched
from wattwire.analysis.topics.findings.sources_disagree import DETECTOR
from wattwire.analysis.topics.findings.sources_disagree.numbers import (
    Disagreement,
    SourcesDisagree,
    sources_disagree,
)
from wattwire.analysis.topics.source_agreement.numbers import Pair, pairs_of
from wattwire.report.topic_page import Sentences, topic_page
from wattwire.stats import Interval

SENTENCES = Sentences("findings/sources_disagree")
CLASSES = [{"name": name, "share": 0.01, "watts": 0.1, "window_s": 1.0} for name in ("one", "two")]


def searched(second_w: list[float], classes=CLASSES) -> Searched:
    count = len(second_w)
    frame = pl.DataFrame(
        {
            "energy_source": ["one/power"] * count,
            "energy_source_second": ["two/power"] * count,
            "power_window_w": [20.0] * count,
            "power_window_second_w": second_w,
        }
    )
    reader = SimpleNamespace(machine={"outside_meters": classes})
    return Searched(SimpleNamespace(imported=False, usable=frame, reader=reader), ())


def test_a_difference_beyond_both_classes_is_found() -> None:
    result = sources_disagree(searched([22.0, 22.1, 21.9, 22.0]))
    (finding,) = result.found
    assert finding.pair.ratio.estimate == pytest.approx(1.1, rel=1e-3)
    assert finding.pair.allowed_w == pytest.approx(0.3 + 0.32, abs=0.01) and finding.is_shown
    assert DETECTOR.search is sources_disagree


@pytest.mark.parametrize(
    "second_w", [[20.4, 20.5, 20.45], [20.0, 20.1, 19.9], [22.0, 22.0], [25.0, 20.0, 22.0]]
)
def test_a_difference_that_the_classes_or_the_scatter_allow_is_none(second_w) -> None:
    result = sources_disagree(searched(second_w))
    assert not result.found and result.compared == 1
    assert "agree within" in SENTENCES.reason(result)


def test_sources_without_a_class_are_not_compared() -> None:
    result = sources_disagree(searched([30.0, 30.1, 29.9], CLASSES[:1]))
    assert result == SourcesDisagree() and "were not compared" in SENTENCES.reason(result)


def test_planted_ratios_come_out_and_equal_meters_are_silent() -> None:
    """Two meters of 0.1 W with noise, ten runs per campaign, and a drawn ratio."""
    random = np.random.default_rng(5)
    held = silent = 0
    for _ in range(20):
        planted = 1 + random.uniform(-0.08, 0.08)
        for ratio in (planted, 1.0):
            level_w = 20 + random.normal(0, 0.3, 10)
            powers = [
                np.round((level_w * factor + random.normal(0, 0.05, 10)) / 0.1) * 0.1
                for factor in (1.0, ratio)
            ]
            given = searched(powers[1].tolist())
            frame = given.evidence.usable.with_columns(power_window_w=powers[0])
            given.evidence.usable = frame
            result = sources_disagree(given)
            if ratio == 1.0:
                silent += not result.found
                continue
            (pair,) = pairs_of(given.evidence)
            assert isinstance(pair.ratio, Interval)
            assert (pair.ratio.high - pair.ratio.low) / 2 <= 0.01
            held += not pair.ratio.excludes(ratio)
    assert held >= 17 and silent >= 19


def test_the_page_states_both_meters_and_the_remedy() -> None:
    interval = Interval(2.0, 1.9, 2.1, 0.95, 4, "t", 3.0)
    pair = Pair("one/power", "two/power", 4, 20.0, 22.0, interval, interval, 0.62)
    page = topic_page("findings/sources_disagree", Disagreement(pair))
    texts = " ".join(page.texts)
    assert "two/power measured 2.00 [1.90, 2.10] W more than one/power" in texts
    assert "0.62" in texts
