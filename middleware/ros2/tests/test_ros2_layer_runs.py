"""`plan.layer_runs` on a small pipeline: the twins, their table, and what no answer uses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from wattwire.analysis.dataset import Evidence, gather
from wattwire.analysis.topics.layers.numbers import layers
from wattwire.catalog import Catalog
from wattwire.model.errors import MissingError
from wattwire.model.layers import LAYERS
from wattwire.rig import AgentClient, Builder
from wattwire.store import Campaign

ROOT = Path(__file__).resolve().parents[3]
STUDY = """
title = "Layers of a pipeline"
[factors]
cell = ["ros2/cpp-rcl", "loopback/python"]
[fixed]
pattern = "pipeline"
nodes = 3
rate_hz = 100
payload_bytes = 128
[plan]
blocks = 1
layer_runs = 1
primary = "cell"
controls = false
duration_s = 3.0
warmup_s = 0.5
baseline_s = 0.2
quiet_wait_s = 0.0
[validity]
look = true
"""
SENT_MIN, HOPS = 200, 2


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return measured(tmp_path_factory.mktemp("layer-runs"))


def measured(folder: Path, *options: str, **variables: str) -> Campaign:
    """Return the campaign of the study with these options; skip the test without ROS 2."""
    client = AgentClient(folder / "agent")
    try:
        Builder(client).cell(Catalog([ROOT]).cell("ros2/cpp-rcl"))
    except MissingError as reason:
        pytest.skip(str(reason))
    finally:
        client.close()
    (folder / "study.toml").write_text(STUDY)
    command = ["run", str(folder / "study.toml"), "--yes", *options]
    command += ["--campaign", str(folder / "campaign")]
    result = subprocess.run(
        [sys.executable, "-m", "wattwire", *command],
        env={**os.environ, **variables}, cwd=ROOT,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return Campaign(folder / "campaign")


@pytest.fixture(scope="module")
def evidence(campaign: Campaign) -> Evidence:
    return gather(campaign)


def test_the_recording_run_is_next_to_its_timed_run_and_in_no_other_frame(
    evidence: Evidence,
) -> None:
    (at,) = [i for i, entry in enumerate(evidence.plan) if entry["control"] == "layers"]
    twin = evidence.plan[at]
    near = evidence.plan[max(0, at - 1) : at] + evidence.plan[at + 1 : at + 2]
    assert any(entry["treatment_key"] == twin["treatment_key"] for entry in near)
    assert evidence.profiled["run"].to_list() == [twin["run"]]
    assert evidence.profiled["verdict"].to_list() == ["valid"]
    for frame in (evidence.attempts, evidence.usable, evidence.controls, evidence.excluded):
        assert twin["run"] not in frame["run"].to_list()
    assert len(evidence.usable) == 2


def test_each_delivery_has_the_counter_and_hop_of_its_record(
    campaign: Campaign, evidence: Evidence
) -> None:
    run = evidence.profiled["run"].item()
    folder = campaign.path / "runs" / f"{run}-{evidence.profiled['attempt'].item()}"
    assert not (folder / "layers").exists()
    frame = pl.read_parquet(folder / "layers.parquet", glob=False)
    assert len(frame) > HOPS * SENT_MIN
    times = frame.select(pl.sum_horizontal(layer.column for layer in LAYERS).alias("sum"))
    assert times["sum"].to_list() == frame["latency_ns"].to_list()
    assert frame["counter"].null_count() == 0
    by_message = frame.group_by("sender_number", "counter").agg(pl.col("hop").sort())
    # The first and the last message may cross the edge of the span between two hops.
    assert by_message.filter(pl.col("hop").list.len() != HOPS).height <= HOPS
    assert by_message.filter(pl.col("hop").list.len() == HOPS)["hop"].n_unique() == 1
    # A relay publishes a message after it has taken it.
    ways = frame.sort("hop").group_by("counter", maintain_order=True).agg("begin_ns", "end_ns")
    whole = ways.filter(pl.col("begin_ns").list.len() == HOPS)
    assert (whole["begin_ns"].list.get(1) > whole["end_ns"].list.get(0)).all()


def test_the_page_has_the_layers_their_cost_and_the_reason_of_the_other_treatment(
    evidence: Evidence,
) -> None:
    study = layers(evidence).study
    assert study.planned == 1
    assert not study.invalid
    assert sum(row.share_percent for row in study.treatments) == pytest.approx(100)
    (cost,) = study.costs
    assert cost.pairs == 1
    assert isinstance(cost.ratio, float)
    assert 0.2 < cost.ratio < 5
    (gap,) = study.gaps
    assert "loopback" in gap.reason
    assert len(gap.treatments) == 1


def test_a_recording_run_whose_file_is_full_is_invalid_with_the_reason(tmp_path: Path) -> None:
    options = [
        "--set",
        "fixed.rate_hz=2000",
        "--set",
        "plan.retries=0",
        "--only",
        "cell=ros2/cpp-rcl",
    ]
    campaign = measured(tmp_path, *options, WATTWIRE_LAYERS_MIB="1")
    evidence = gather(campaign)
    assert evidence.profiled["verdict"].to_list() == ["invalid"]
    (folder,) = (campaign.path / "runs").glob(f"{evidence.profiled['run'].item()}-*")
    assert campaign.run(folder.name)["layers"]["lost_events"] > 0
    study = layers(evidence).study
    assert not study.treatments
    assert any("had no room" in text for text in study.invalid)
