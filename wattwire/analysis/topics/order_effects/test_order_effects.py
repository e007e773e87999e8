"""Test that drift over a campaign is detected in every response, and rarely without drift."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from wattwire import stats
from wattwire.analysis.dataset import gather
from wattwire.analysis.topics.order_effects.numbers import (
    OrderEffects,
    _previous_levels,
    order_effects,
)
from wattwire.model.study import PROFILED
from wattwire.report.tests.synthetic import Shape, put_row, row_of, write_campaign
from wattwire.report.topic_page import topic_page
from wattwire.stats import Interval, NotComputable
from wattwire.store import Campaign

RUNS, TREATMENTS = 24, 4
RESPONSES = ("latency_p50_us", "cpu_us_per_message", "memory_kib")


def drifting(folder: Path, column: str, per_run: float):
    """Return a campaign without drift, except that `column` grows by `per_run` with each run."""
    shape = Shape(blocks=5, patterns=("topic",), intervals_s=(0.05,), duration_s=2.0)
    write_campaign(folder, shape)
    rng = np.random.default_rng(3)
    for place, path in enumerate(sorted(folder.glob("runs/*/summary.json"))):
        row = row_of(path)
        for name in RESPONSES:
            growth = per_run**place if name == column else 1.0
            row = row.with_columns(pl.lit(100 * growth * rng.lognormal(0.0, 0.03)).alias(name))
        put_row(row, path)
    return gather(Campaign(folder))


@pytest.mark.parametrize("column", RESPONSES[:2])
def test_a_drift_of_1_percent_per_run_is_named_for_every_response(tmp_path: Path, column: str):
    evidence = drifting(tmp_path / "c", column, 1.01)
    result = order_effects(evidence)
    (drift,) = result.drifts
    assert drift.response.column == column
    assert drift.change.estimate == pytest.approx(1.01**19, rel=0.1)
    repeated = [part for _, (_, part) in topic_page("order_effects", result).elsewhere]
    assert ("order_effects.drift", column) in [(part.key, part.value) for part in repeated]


@pytest.mark.parametrize(("low", "keys"), [(0.9, []), (1.1, ["order_effects.position"])])
def test_only_effects_that_change_the_response_are_repeated_among_the_threats(low, keys):
    result = OrderEffects(
        (), "CPU", "language", Interval(1.2, low, 1.3, 0.95, 9, "t"), NotComputable("-")
    )
    page = topic_page("order_effects", result)
    assert [part.key for _, (_, part) in page.elsewhere] == keys
    assert page.parts == (), "without a chart of the order, the page has no sentence on it"
    ((_, text),) = topic_page("order_effects", replace(result, has_attempts=True)).parts
    assert text.key == "order_effects.drifts"


@pytest.mark.parametrize(("p", "is_repeated"), [(0.01, True), (0.5, False)])
def test_an_effect_of_the_previous_run_is_repeated_if_it_is_significant(p, is_repeated):
    omega_squared = Interval(0.1, 0.0, 0.2, 0.95, 9, "F")
    effect = stats.Effect(("language",), 2.0, 1, 9, p, omega_squared)
    result = OrderEffects(response_title="CPU", factor_title="language", previous=effect)
    assert (result.previous_p, result.previous_matters) == (p, is_repeated)
    keys = [part.key for _, (_, part) in topic_page("order_effects", result).elsewhere]
    assert keys == ["order_effects.previous"] * is_repeated


def test_campaigns_without_drift_raise_at_most_5_percent_false_alarms() -> None:
    rng = np.random.default_rng(8)
    labels = np.tile(np.arange(TREATMENTS), RUNS // TREATMENTS).tolist()
    alarms = 0
    for _ in range(1_000):
        values = np.exp(0.05 * rng.standard_normal(RUNS))
        change = stats.drift(values, labels, np.arange(RUNS), 0.95)
        alarms += isinstance(change, stats.Interval) and change.excludes(1.0)
    # Two standard errors above 5 %.
    assert alarms <= 64


def test_a_run_after_one_that_records_layers_has_no_previous_level(tmp_path: Path):
    evidence = drifting(tmp_path / "c", "none", 1.0)
    before = _previous_levels(evidence)
    third = evidence.plan[2]["run"]
    recording = {**evidence.plan[1], "run": "b01-p900", "control": PROFILED}
    plan = [*evidence.plan[:2], recording, *evidence.plan[2:]]
    assert before[third] is not None
    assert _previous_levels(replace(evidence, plan=plan)) == {**before, third: None}
    plan[2] = {**recording, "skipped": "no time"}
    assert _previous_levels(replace(evidence, plan=plan)) == before
