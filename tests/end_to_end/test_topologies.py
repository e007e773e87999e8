"""Test studies with a topology: exact counts of every flow, processes, and refusals."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import polars as pl
import pytest

pytestmark = pytest.mark.slow

TWENTY_NODES = Path(__file__).with_name("twenty_nodes.json")
"""A robot in iRobot's format: 20 nodes, 23 topics with one publisher each, and 35 subscriptions."""
WINDOW_S = 2.0
STUDY = """
topology = "{topology}"
title = "The graph of a robot"
[factors]
cell = ["{cell}"]
[plan]
blocks = 1
duration_s = {window_s}
baseline_s = 0.1
controls = false
retries = 0
ready_timeout_s = 120.0
linger_ms = 3000
[validity]
look = true
"""


def write_study(folder: Path, cell: str, topology: str = TWENTY_NODES.name) -> None:
    text = STUDY.format(topology=topology, cell=cell, window_s=WINDOW_S)
    (folder / "study.toml").write_text(text, encoding="utf-8")


def check_counts(campaign: Path, out: str) -> Path:
    """Check that each flow has all its messages and deliveries; return the folder of the run."""
    graph = json.loads(TWENTY_NODES.read_text(encoding="utf-8"))["nodes"]
    publishers = [entry for node in graph for entry in node.get("publishers", [])]
    subscribed = [e["topic_name"] for node in graph for e in node.get("subscribers", [])]
    assert (len(graph), len(publishers), len(subscribed)) == (20, 23, 35)
    (row,) = pl.read_parquet(campaign / "summary.parquet", glob=False).to_dicts()
    assert row["outcome"] == "completed", out
    assert row["verdict"] == "valid", out
    position = {entry["topic_name"]: number for number, entry in enumerate(publishers)}
    total = 0
    for entry in publishers:
        topic, period_s = entry["topic_name"], entry["period_ms"] / 1000
        phase_s = period_s * position[topic] / len(publishers)
        sent = math.ceil((WINDOW_S - phase_s) / period_s - 1e-9)
        arrived = sent * subscribed.count(topic)
        counts = [row[f"{name}.flow.{topic}"] for name in ("sent", "received_unique", "lost")]
        assert counts == [sent, arrived, 0], topic
        total += sent
    assert row["sent"] == total
    return campaign / "runs" / f"{row['run']}-1"


@pytest.mark.parametrize("cell", ["loopback/python", "loopback/cpp", "ros2/cpp-rcl"])
def test_a_graph_of_twenty_nodes_in_irobots_format_runs_with_exact_counts(cli, tmp_path, cell):
    shutil.copy(TWENTY_NODES, tmp_path)
    write_study(tmp_path, cell)
    done = cli("run", "study.toml", "--campaign", "campaign")
    if done.code == 3:
        pytest.skip(done.err)  # the cell cannot be built here
    run = check_counts(tmp_path / "campaign", done.out + done.err)

    deployment = json.loads((run / "deployment.json").read_text(encoding="utf-8"))
    assert len([p for p in deployment["processes"] if p["kind"] == "node"]) == 20
    quantities = pl.read_parquet(run / "quantities.parquet", glob=False).drop_nulls("process")
    assert {*quantities["process"]} == {f"member-{number}" for number in range(20)}
    messages = pl.read_parquet(run / "messages.parquet", glob=False)
    image = messages.filter(pl.col("flow") == "image")
    assert image["bytes"].unique().to_list() == [50_020]
    # The campaign has the topology, so it needs the file no longer.
    (tmp_path / TWENTY_NODES.name).unlink()
    assert cli("report", "campaign").code in (0, 1, 5)
    table = (tmp_path / "campaign" / "report" / "tables" / "flows.csv").read_text(encoding="utf-8")
    assert len(table.splitlines()) == 1 + 23


def test_nodes_of_rclpy_carry_flows_with_their_own_qos(cli, tmp_path):
    """Start three nodes: twenty take more than a minute to start on two cores."""
    (tmp_path / "robot.toml").write_text(
        """
[[node]]
name = "lidar"
[[node]]
name = "slam"
[[node]]
name = "base"
[[flow]]
topic = "/scan"
from = "lidar"
to = ["slam", "base"]
bytes = 4000
rate_hz = 20
qos = { reliability = "best_effort", depth = 5 }
[[flow]]
topic = "/cmd_vel"
from = "slam"
to = ["base"]
bytes = 48
rate_hz = 25
[[flow]]
topic = "/odom"
from = "base"
to = ["slam", "base"]
bytes = 700
rate_hz = 50
qos = { history = "keep_all" }
""",
        encoding="utf-8",
    )
    write_study(tmp_path, "ros2/python", "robot.toml")
    done = cli("run", "study.toml", "--campaign", "campaign")
    if done.code == 3:
        pytest.skip(done.err)
    (row,) = pl.read_parquet(tmp_path / "campaign" / "summary.parquet", glob=False).to_dicts()
    assert row["verdict"] == "valid", done.out + done.err
    counts = {
        name: [row[f"{count}.flow.{name}"] for count in ("sent", "received_unique", "lost")]
        for name in ("scan", "cmd_vel", "odom")
    }
    assert counts == {"scan": [40, 80, 0], "cmd_vel": [50, 50, 0], "odom": [100, 200, 0]}
    run = tmp_path / "campaign" / "runs" / f"{row['run']}-1" / "run.json"
    granted = {
        (node["process"], node["role"], node["ready"]["effective"]["reliability"])
        for node in json.loads(run.read_text(encoding="utf-8"))["nodes"]
    }
    assert ("member-0", "publisher", "best_effort") in granted
    assert ("member-1", "subscriber", "best_effort") in granted
    assert ("member-1", "publisher", "reliable") in granted


def test_a_cell_without_members_is_skipped_with_the_reason(cli, tmp_path):
    shutil.copy(TWENTY_NODES, tmp_path)
    write_study(tmp_path, "udp/python")
    done = cli("plan", "study.toml")
    assert done.code == 3
    assert "udp/python lacks the capability members" in done.out + done.err


def test_a_topology_that_does_not_exist_is_refused_with_its_path(cli, tmp_path):
    write_study(tmp_path, "loopback/python", "robot.json")
    done = cli("plan", "study.toml")
    assert done.code == 2
    assert "robot.json: cannot be read" in done.err


def test_a_topology_of_the_middleware_without_its_qos_is_refused(cli, tmp_path):
    (tmp_path / "robot.toml").write_text(
        '[[node]]\nname = "a"\n[[node]]\nname = "b"\n[[flow]]\ntopic = "x"\nfrom = "a"\n'
        'to = ["b"]\nbytes = 64\nrate_hz = 10\nqos = { reliability = "best_effort" }\n',
        encoding="utf-8",
    )
    write_study(tmp_path, "loopback/python", "robot.toml")
    done = cli("plan", "study.toml")
    assert done.code == 2
    assert 'flow x: middleware loopback: unknown setting "reliability"' in done.out + done.err
