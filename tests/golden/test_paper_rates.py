"""Test the table of false-positive rates against the tool's output and the decision path."""

from __future__ import annotations

import math

import pytest

from tools import paper_rates
from wattwire.papers.rates import MODELS, rates_for
from wattwire.papers.rates_table import ROWS, TRIALS


def test_the_table_holds_every_model_and_size_once() -> None:
    cells = [row[:3] for row in ROWS]
    assert len(set(cells)) == len(cells) == len(MODELS) * 3 * 4
    assert {row[0] for row in ROWS} == set(MODELS) == set(paper_rates.MODELS)


@pytest.mark.parametrize(("model", "groups", "runs"), [("normal", 2, 5), ("t3", 3, 20)])
def test_a_cell_simulated_again_agrees_with_the_table(model: str, groups: int, runs: int) -> None:
    trials = 150
    again = paper_rates.rate(model, groups, runs, trials)
    (kept,) = [rate for rate in rates_for(groups, runs) if rate.model == model]
    for name in ("with_all", "without_outliers"):
        p = getattr(kept, name)
        # The first trials of the table are repeated with its seed, so four standard errors are
        # enough.
        assert again[name] == pytest.approx(p, abs=4 * math.sqrt(p * (1 - p) / trials))


def test_sizes_between_take_the_nearest() -> None:
    assert {(rate.groups, rate.runs) for rate in rates_for(2, 7)} == {(2, 5)}
    assert {(rate.groups, rate.runs) for rate in rates_for(4, 600)} == {(5, 20)}
    assert {(rate.groups, rate.runs) for rate in rates_for(1, 0)} == {(2, 3)}


def test_removal_raises_alarms_and_ignored_blocks_hide_differences() -> None:
    assert TRIALS >= 5_000
    for runs in (5, 20):
        by_model = {rate.model: rate for rate in rates_for(3, runs)}
        assert by_model["normal"].with_all == pytest.approx(0.05, abs=0.01)
        assert by_model["normal"].without_outliers > 0.06
        assert by_model["blocked"].with_all < 0.02


def test_the_written_table_is_python_that_holds_the_rates() -> None:
    rates = [{"model": "normal", "groups": 2, "runs": 3, "a": 0.05, "b": 0.1, "c": 0.05}]
    held: dict = {}
    exec(paper_rates.written(rates, 10), held)  # noqa: S102
    assert held["ROWS"] == (("normal", 2, 3, 0.05, 0.1, 0.05),) and held["TRIALS"] == 10
