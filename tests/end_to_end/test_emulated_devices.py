"""Test that a run with an emulated device is marked, and that its page compares no times of it."""

from __future__ import annotations

import json
import shutil

import polars as pl

from wattwire.catalog import home

TABLE = """
[emulated]
device = "Board"
clock_hz = 25e6
cycles_per_instruction = [0.5, 3.0]
"""


def test_a_run_with_an_emulated_device_is_marked_and_its_times_are_not_compared(
    cli, mini, tmp_path
):
    root = tmp_path / "root"
    shutil.copytree(home() / "middleware/loopback", root / "middleware/loopback")
    with (root / "middleware/loopback/python/node.toml").open("a") as manifest:
        manifest.write(TABLE)
    campaign = tmp_path / "campaign"
    options = ("--campaign", campaign, "--plain", "--set", 'pattern=["topic", "pingpong"]')
    done = cli("run", mini, *options, WATTWIRE_PATH=str(root))
    assert done.code == 0, done.err
    summary = pl.read_parquet(campaign / "summary.parquet", glob=False)
    assert summary["emulated_device"].to_list() == ["Board"] * summary.height
    document = json.loads(next(campaign.glob("runs/*/run.json")).read_text())
    assert {node["emulated"]["device"] for node in document["nodes"]} == {"Board"}
    page = (campaign / "report" / "index.html").read_text()
    assert "emulated time is not the device" in page
