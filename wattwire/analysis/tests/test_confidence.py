"""Test that all intervals of a campaign that stops by width have the higher level."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from wattwire import stats
from wattwire.analysis.answering.answer_types import NUMBER
from wattwire.analysis.answering.disagreement import confidence_at_levels
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import Evidence, gather
from wattwire.analysis.topics.comparison.numbers import compare
from wattwire.analysis.topics.comparison.requested import Wanted, single_level
from wattwire.analysis.topics.comparison.variants import variants_of
from wattwire.analysis.topics.controls.numbers import noise
from wattwire.analysis.topics.interactions.numbers import by_level
from wattwire.analysis.topics.limits.numbers import limits
from wattwire.report.tests.compared_campaigns import of_variants
from wattwire.report.tests.synthetic import Shape, write_campaign
from wattwire.store import Campaign

LIMIT = {"response": "latency_p50_us", "max": 10_000.0}


def stopped(evidence: Evidence) -> Evidence:
    """Return the campaign as one that stops by width, without cached models."""
    study = replace(evidence.study, plan=replace(evidence.study.plan, stop_width=0.05))
    return replace(evidence, study=study, fits={}, baselines={})


def test_every_interval_after_a_stop_by_width_has_the_higher_level(tmp_path: Path) -> None:
    shape = Shape(
        blocks=6, patterns=("topic",), intervals_s=(0.05,), duration_s=2.0, b_over_a=1.02,
        study={"limit": [LIMIT]},
    )  # fmt: skip
    fixed = gather(Campaign(write_campaign(tmp_path / "c", shape)))
    levels = []
    for evidence in (fixed, stopped(fixed)):
        answers = answer_all(evidence)
        (row, *_) = [r for r in by_level(evidence, answers) if isinstance(r.result, NUMBER)]
        (check, *others) = limits(evidence).checks
        assert isinstance(check.value, stats.Interval)
        cases = 1 + len(others)
        in_limit = 1.0 - (1.0 - check.value.level) * cases
        levels.append((row.result.interval.level, in_limit, noise(evidence)["cpu_us_per_message"]))
    (at_level, in_limit, floor), (at_level_stopped, in_limit_stopped, floor_stopped) = levels
    assert (at_level, at_level_stopped) == (0.95, 0.96)
    assert (in_limit, in_limit_stopped) == (pytest.approx(0.95), pytest.approx(0.96))
    assert floor_stopped > floor


def test_a_comparison_of_a_stopped_campaign_has_the_higher_level(tmp_path: Path) -> None:
    evidence = gather(of_variants(tmp_path / "c", blocks=6))
    levels = [compare(variants_of(side), Wanted()) for side in (evidence, stopped(evidence))]
    assert [1 - (1 - judged.level) * judged.family for judged in levels] == pytest.approx(
        [0.95, 0.96]
    )
    assert single_level(1, 1, evidence, stopped(evidence)) == 0.96


def test_more_levels_of_another_factor_raise_the_level_of_each() -> None:
    assert confidence_at_levels([2], 0.95) == confidence_at_levels([5], 0.95) == 0.95
    assert confidence_at_levels([10], 0.95) == pytest.approx(0.975, abs=1e-3)
    # Two other factors share the error.
    assert confidence_at_levels([10, 10], 0.95) > confidence_at_levels([10, 1], 0.95)
    assert confidence_at_levels([], 0.96) == 0.96
