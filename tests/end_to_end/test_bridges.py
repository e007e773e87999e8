"""Test bridges between two hosts of this machine: real ROS 2, Zenoh, MQTT and broker."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import polars as pl
import pytest

from bench.rigs.bridges import RIG
from wattwire.catalog import Catalog, home
from wattwire.catalog.rigs import load_rig
from wattwire.hosts.hosts import Hosts
from wattwire.model.errors import MissingError

pytestmark = pytest.mark.slow

BRIDGES = sorted(Catalog([home()]).bridges)
STUDY = """
title = "Bridges"
[factors]
bridge = ["BRIDGE"]
[fixed]
cell = "ros2/python"
pattern = "pipeline"
placement = "trip"
rate_hz = 50
payload_encoding = "ENCODING"
payload_bytes = 4096
[plan]
blocks = 1
controls = false
duration_s = 1.0
baseline_s = 0.05
quiet_ms = 200
linger_ms = 1000
retries = 0
quiet_wait_s = 0.0
[validity]
other_load_max = 10.0
steal_max = 10.0
missed_ticks_max = 1.1
stall_max_ms = 60000.0
"""
HOPS = 6
LEAKS = 20
"""Runs with a leak, and as many without, over all bridges."""
ENCODINGS = ("bytes", "pointcloud")
"""One for each bridge, because the two ends of a bridge do not depend on each other."""


@pytest.fixture
def measured(cli, tmp_path):
    """Return a function that measures a round trip over a bridge.

    It returns the result, the row and the run's folder.
    """
    rig, study, numbers = tmp_path / "rig.toml", tmp_path / "study.toml", itertools.count()
    rig.write_text(RIG)
    try:
        Hosts(load_rig(rig, Catalog([home()])), tmp_path / "state").close()
    except MissingError as reason:
        pytest.skip(str(reason))

    def run(bridge: str, encoding: str = "bytes", held: str = "", **environment: str):
        campaign = tmp_path / f"campaign-{next(numbers)}"
        text = STUDY.replace("BRIDGE", bridge).replace("ENCODING", encoding)
        study.write_text(text.replace("[fixed]\n", f"[fixed]\n{held}"))
        options = ("--rig", rig, "--look", "--plain", "--no-report", "--campaign", campaign)
        result = cli("run", study, *options, **environment)
        if "skipped" in result.err and "ROS 2 is neither sourced" in result.err:
            pytest.skip("this machine has no ROS 2")
        (row,) = pl.read_parquet(campaign / "summary.parquet", glob=False).to_dicts()
        return result, row, campaign / "runs" / f"{row['run']}-{row['attempt']}"

    return run


def assert_adds_up(row: dict) -> None:
    lost = [row[f"lost.hop.{hop}"] for hop in range(1, HOPS + 1)]
    undelivered = [row.get(f"undelivered.hop.{hop}") for hop in range(1, HOPS + 1)]
    known = [value for value in (*lost, *undelivered) if value is not None]
    assert row["sent"] == row["received_unique"] + sum(known), row


def assert_hops_add_up(folder: Path) -> None:
    """Assert that hops and own times add up to the latency of each message, to the ns."""
    records = pl.read_parquet(folder / "messages.parquet", glob=False).sort("counter", "hop")
    assert records.height > 0
    for _, passages in records.group_by("counter"):
        if passages.height < HOPS + 1:
            continue
        path = passages.sort("hop").to_dicts()
        assert [record["hop"] for record in path] == list(range(HOPS + 1))
        arrived = [record["intended_ns"] for record in path[1:-1]] + [path[-1]["end_ns"]]
        departed = [record["begin_ns"] for record in path[:-1]]
        hops_ns = [b - a for a, b in zip(departed, arrived, strict=True)]
        own_ns = [b - a for a, b in zip(arrived[:-1], departed[1:], strict=True)]
        assert min(*hops_ns, *own_ns) >= 0
        assert sum(hops_ns) + sum(own_ns) == path[-1]["end_ns"] - path[0]["begin_ns"]


@pytest.mark.parametrize(("bridge", "encoding"), zip(BRIDGES, ENCODINGS, strict=True))
def test_a_round_trip_passes_two_bridges_and_every_loss_has_a_hop(
    measured, bridge, encoding, nothing_left
):
    result, row, folder = measured(bridge, encoding)
    assert result.code == 0, result.out + result.err
    assert row["received_unique"] > 0
    assert_adds_up(row)
    assert_hops_add_up(folder)
    for hop in range(1, HOPS + 1):
        assert row[f"latency_p50_us.hop.{hop}"] > 0
    deployment = json.loads((folder / "deployment.json").read_text())
    hosts = {p["name"]: p["host"] for p in deployment["processes"] if p["kind"] == "bridge"}
    assert hosts == {
        "bridge-0": "near", "bridge-1": "far", "bridge-2": "far", "bridge-3": "near",
    }  # fmt: skip
    for process in range(4):
        assert row[f"cpu_share.bridge.{process}"] > 0
        assert row[f"memory_kib.bridge.{process}"] > 0
    run = json.loads((folder / "run.json").read_text())
    assert run["cells"]["relay"] == "ros2/python" and run["cells"]["bridge"] == f"bridges/{bridge}"


def reasons(folder: Path) -> dict[str, str]:
    run = json.loads((folder / "run.json").read_text())
    return {reason["code"]: reason["detail"] for reason in run["reasons"]}


@pytest.mark.parametrize(
    ("bridge", "repeat"),
    [
        *((bridge, 0) for bridge in BRIDGES),
        *(pytest.param(bridge, repeat, marks=pytest.mark.matrix)
          for bridge in BRIDGES for repeat in range(1, LEAKS // len(BRIDGES))),
    ],
)  # fmt: skip
def test_a_run_is_invalid_exactly_if_dds_passed_the_network_beside_its_bridge(
    measured, bridge, repeat, nothing_left
):
    _, row, folder = measured(bridge)
    assert row["inner_frames"] == 0 and "leaked" not in reasons(folder)
    _, row, folder = measured(bridge, held='"settings.discovery" = "subnet"\n')
    assert row["verdict"] == "invalid" and row["inner_frames"] > 0
    leaked = reasons(folder)["leaked"]
    assert "on device wire of host far" in leaked and "discovery = localhost" in leaked


@pytest.mark.parametrize("bridge", BRIDGES)
def test_a_bridge_that_dies_in_the_window_is_named_with_its_hop(measured, bridge, nothing_left):
    _, row, folder = measured(bridge, WATTWIRE_CRASH="bridge-1@window")
    assert row["outcome"] == "died"
    run = json.loads((folder / "run.json").read_text())
    assert run["outcome_detail"] == "bridge-1 (hop 2) was killed by signal 9"
    assert row["received_unique"] < row["sent"]
    assert row["lost.hop.2"] is None and row["lost.hop.3"] is not None
    assert_adds_up(row)


def test_all_bridges_of_a_lost_broker_end_and_say_so(measured, nothing_left):
    _, row, folder = measured("ros2-mqtt", WATTWIRE_CRASH="broker@window")
    assert row["outcome"] == "died"
    run = json.loads((folder / "run.json").read_text())
    assert "broker was killed by signal 9" in run["outcome_detail"]
    errors = {n["process"]: n["error"] for n in run["nodes"] if n["process"].startswith("bridge")}
    # The exits send nothing to the broker; its library reports the loss.
    assert len(errors) == HOPS - 2
    assert {error["reason"] for error in errors.values()} == {"the broker was lost"}
    assert_adds_up(row)
