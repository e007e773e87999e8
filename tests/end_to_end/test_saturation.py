"""Test a run above the capacity of an emulated link: its outcome, hops and rates."""

from __future__ import annotations

import json

import polars as pl
import pytest

from wattwire.hosts import namespaces
from wattwire.model.errors import MissingError
from wattwire.rig.emulator import find_emulator

pytestmark = pytest.mark.slow

LINK = """
title = "Narrow on the way up"
summary = "Room for about ten messages per second, and a queue for all of them"
[up]
rate_mbit_s = 0.1
queue_bytes = 10000000
"""
RIG = """
[hosts]
robot = { kind = "netns" }
edge = { kind = "netns" }
[networks.narrow]
link = "narrow"
near = ["robot"]
[placements.round-trip]
sender = "robot"
relay = "edge"
receiver = "robot"
"""
STUDY = """
title = "Above the capacity of a link"
[fixed]
cell = "udp/python"
pattern = "pipeline"
nodes = 3
payload_bytes = 1200
rate_hz = 100
[plan]
blocks = 1
controls = false
duration_s = 0.5
baseline_s = 0.05
quiet_ms = 500
linger_ms = 1500
retries = 0
quiet_wait_s = 0.0
"""


def test_messages_in_the_queue_of_a_narrow_link_are_undelivered_at_its_hop(cli, tmp_path):
    try:
        find_emulator()
        namespaces.user_namespace()
        namespaces.require_tap_devices()
    except MissingError as error:
        pytest.skip(str(error))
    files = {"roots/links/narrow/link.toml": LINK, "rig.toml": RIG, "study.toml": STUDY}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    campaign = tmp_path / "campaign"
    options = ("--rig", "rig.toml", "--look", "--plain", "--no-report", "--campaign", campaign)
    result = cli("run", "study.toml", *options, WATTWIRE_PATH=str(tmp_path / "roots"))
    assert result.code == 0, result.out + result.err
    (row,) = pl.read_parquet(campaign / "summary.parquet", glob=False).to_dicts()
    (path,) = campaign.glob("runs/*/run.json")
    document = json.loads(path.read_text())
    assert (row["verdict"], row["outcome"]) == ("valid", "saturated"), document["reasons"]
    hops = [row[f"{kind}.hop.{hop}"] for kind in ("lost", "undelivered") for hop in (1, 2)]
    assert row["sent"] == row["received_unique"] + sum(hops) == 50
    assert row["undelivered.hop.1"] > 0
    assert row["lost.hop.1"] == 0
    assert row["received_unique"] > 0
    assert row["rate_hz_offered"] == 100
    assert row["rate_hz_delivered"] < row["rate_hz_offered"]
    assert row["latency_growth_us_per_s"] > 1e6  # 100 Hz offered, about 10 Hz delivered: 9 s/s
    assert f"({row['undelivered.hop.1']} at hop 1)" in document["outcome_detail"]
    assert "growth of latency" in document["outcome_detail"]
