"""Test that `wattwire.load` distinguishes valid runs, has units, and explains bad folders."""

import math

import pytest

import wattwire
from wattwire.model.errors import UsageError
from wattwire.run.results.schema import describe
from wattwire.store import Campaign

ROW = {"block": 1, "treatment": "t", "control": "", "outcome": "completed", "expected": 10}


@pytest.fixture
def folder(tmp_path):
    campaign = Campaign.create(tmp_path / "c")
    rows = [
        {**ROW, "run": "b01-p001", "attempt": 1, "verdict": "invalid", "used": False},
        {**ROW, "run": "b01-p001", "attempt": 2, "verdict": "valid", "used": True, "lost": 1,
         "latency_p50_us": 7.0, "latency_p99_us": None, "rate_hz_achieved": 50.0},
        {**ROW, "run": "b01-p002", "attempt": 1, "verdict": "valid", "used": False, "control": "a"},
    ]  # fmt: skip
    campaign.write_summary(rows, describe(rows[1]))
    campaign.close()
    return tmp_path / "c"


def test_runs_are_the_valid_attempts_of_the_design_and_attempts_are_all(folder):
    with wattwire.load(folder) as campaign:
        assert campaign.attempts.height == 3
        assert campaign.runs[["run", "attempt"]].rows() == [("b01-p001", 2)]


def test_derived_metrics_and_infinite_percentiles_are_there_for_summaries_of_old(folder):
    (run,) = wattwire.load(folder).runs.to_dicts()
    assert run["loss_share"] == 0.1
    assert run["time_us_per_message"] == 20_000.0
    assert (run["latency_p50_us"], run["latency_p99_us"]) == (7.0, math.inf)


def test_columns_have_their_units_and_words(folder):
    campaign = wattwire.load(folder)
    assert campaign.units["latency_p50_us"] == "µs"
    assert "run" not in campaign.units
    metric = campaign.metric("memory_kib.client.0")
    assert metric is not None and metric.unit == "KiB"
    assert campaign.metric("somebody's own column") is None


def test_a_folder_without_a_campaign_and_an_unknown_run_are_named(folder, tmp_path):
    with pytest.raises(UsageError, match="nowhere"):
        wattwire.load(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="no finished run b09-p001"):
        wattwire.load(folder).messages("b09-p001")
