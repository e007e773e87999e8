"""`exec --topics`: processes, topics and CPU time per message of a graph in one campaign."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from wattwire.catalog import Catalog
from wattwire.model.errors import MissingError
from wattwire.rig import AgentClient, Builder
from wattwire.rig.builds import merge_env
from wattwire.store import Campaign

ROOT = Path(__file__).resolve().parents[3]
LAUNCH = Path(__file__).with_name("graph") / "launch.sh"
MESSAGES = "5000"
DOMAIN = "58"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Yield a command that starts a talker, a relay and a listener, and its variables."""
    agent = AgentClient(tmp_path_factory.mktemp("agent"))
    try:
        cell = Builder(agent).cell(Catalog().cell("ros2/python"))
    except MissingError as reason:
        pytest.skip(str(reason))
    finally:
        agent.close()
    # Only the command has the variables of the nodes, so that wattwire finds no sourced ROS.
    added = {name: value for name, value in merge_env(dict(os.environ), cell.env).items()
             if value != os.environ.get(name)}  # fmt: skip
    variables = [f"{name}={value}" for name, value in added.items()]
    command = ["env", *variables, "sh", str(LAUNCH), cell.words["python"], MESSAGES]
    own = {"ROS_DOMAIN_ID": DOMAIN, "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    yield command, {**os.environ, **own}


def exec_topics(
    folder: Path, options: Sequence[str], command: Sequence[str], env: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    words = ["exec", *options, "--json", "--campaign", str(folder), "--", *command]
    return subprocess.run(
        [sys.executable, "-m", "wattwire", *words],
        cwd=ROOT, env=env, text=True, capture_output=True, check=False,
    )  # fmt: skip


def row_of(document: dict[str, Any], process: str, topic: str) -> dict[str, Any]:
    (row,) = (
        row for row in document["topics"]["cpu_per_message"]
        if process in row["process"] and row["topic"] == topic
    )  # fmt: skip
    return row


@pytest.mark.slow
@pytest.mark.quiet
def test_a_graph_has_its_processes_its_topics_and_its_cpu_per_message(
    graph: tuple[list[str], dict[str, str]], tmp_path: Path
) -> None:
    command, env = graph
    gates = ["value.chatter_latency_p50_us=1e7", "value.relayed_latency_p50_us=0.001"]
    options = ["--topics", "--for", "2s", "--repeat", "3"]
    limits = [word for gate in gates for word in ("--max", gate)]
    done = exec_topics(tmp_path / "c", [*options, *limits], command, env)
    assert done.returncode == 1, done.stderr  # the second limit is broken
    document, _ = json.JSONDecoder().raw_decode(done.stdout)  # the limits follow
    topics = {row["topic"]: row for row in document["topics"]["streams"]}
    assert set(topics) == {"/chatter", "/relayed"}
    assert "talker.py" in topics["/chatter"]["process"]
    assert "relay.py" in topics["/relayed"]["process"]
    assert topics["/chatter"]["lost"]["mean"] == 0
    talker, relay = (row_of(document, *key) for key in (("talker", "/chatter"), ("relay", "")))
    assert talker["cpu_us"]["mean"] > 0 and talker["bound_us"] is None
    # The relay works for 3 ms on each message, and handles each one twice: it takes and publishes.
    assert relay["cpu_us"]["mean"] > 1500
    assert row_of(document, "relay", "/relayed")["bound_us"]["mean"] > 3000
    assert document["topics"]["unknown"] == []
    campaign = Campaign(tmp_path / "c")
    rows = campaign.summary().to_dicts()
    campaign.close()
    for row in rows:
        assert row["value.chatter_latency_p50_us"] > 0
        costs = [name for name in row if name.endswith("_cpu_per_message_us")]
        assert len(costs) == 3 and all(row[name] > 0 for name in costs)
        assert row["cpu_s"] == pytest.approx(row["cpu_share.command"] * row["window_s"], rel=0.01)
        assert row["cpu_share.probe"] > 0
    page = (tmp_path / "c" / "report" / "index.html").read_text(encoding="utf-8")
    assert "CPU time per message by process and topic" in page


@pytest.mark.slow
@pytest.mark.quiet
def test_a_graph_without_a_matching_topic_has_costs_but_exits_with_4(
    graph: tuple[list[str], dict[str, str]], tmp_path: Path
) -> None:
    command, env = graph
    done = exec_topics(tmp_path / "c", ["--topics", "/none", "--for", "1s"], command, env)
    assert done.returncode == 4, done.stderr
    document = json.loads(done.stdout)
    assert document["topics"]["streams"] == [] and document["whole"]["cpu_s"]["mean"] > 0
    assert {"/chatter", "/relayed"} <= {*document["topics"]["excluded"]}


@pytest.mark.slow
@pytest.mark.quiet
def test_a_command_that_ends_by_itself_is_valid_and_a_broken_limit_precedes_missing_topics(
    graph: tuple[list[str], dict[str, str]], tmp_path: Path
) -> None:
    (*command, _), env = graph
    options = ["--topics", "/none", "--repeat", "3", "--max", "cpu_s=1e-6"]
    done = exec_topics(tmp_path / "c", options, [*command, "400"], env)
    assert done.returncode == 1, done.stderr
    runs = [json.loads(path.read_text()) for path in tmp_path.glob("c/runs/*/run.json")]
    assert [run["verdict"] for run in runs] == 3 * ["valid"]
