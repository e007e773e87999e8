"""Test the service processes of real middleware: routers, brokers, and their counters."""

from __future__ import annotations

import json
import os
import shutil
from functools import partial

import polars as pl
import pytest

from tests.end_to_end.random_kills import SERVICE_STUDIES, Setting, kill_many, kill_once
from wattwire.catalog import Catalog, home
from wattwire.catalog.rigs import load_rig
from wattwire.hosts.hosts import Hosts
from wattwire.model.errors import MissingError

pytestmark = pytest.mark.slow

THREE = home() / "rigs" / "three.toml"
STUDY = """
title = "Services"
[factors]
{factors}
[fixed]
cell = "{cell}"
rate_hz = 100
[plan]
blocks = 1
controls = false
duration_s = 0.4
baseline_s = 0.05
quiet_ms = 80
linger_ms = 400
retries = 0
quiet_wait_s = 0.0
"""
COUNTED = """
[[question]]
id = "counters"
text = "What does the service count?"
factors = ["{}"]
responses = ["service_counter.{}"]
"""
"""wattwire reads the counters of services only for studies that name one."""


@pytest.fixture
def measured(cli, tmp_path):
    """Return a function that measures a study; it returns the result, the rows and run.json."""

    def run(cell: str, factors: str, *arguments: str, **environment: str):
        study, campaign = tmp_path / "services.toml", tmp_path / "campaign"
        study.write_text(STUDY.format(cell=cell, factors=factors))
        options = ("--look", "--plain", "--no-report", "--campaign", campaign, *arguments)
        result = cli("run", study, *options, **environment)
        rows = pl.read_parquet(campaign / "summary.parquet", glob=False).sort("run").to_dicts()
        folders = [campaign / "runs" / f"{row['run']}-{row['attempt']}" for row in rows]
        documents = [json.loads((folder / "run.json").read_text()) for folder in folders]
        return result, rows, documents

    return run


def test_all_patterns_pass_a_router_and_the_run_names_its_program(measured):
    factors = f'pattern = ["topic", "service"]\n{COUNTED.format("pattern", "router.sessions")}'
    options = ("--set", "fixed.settings.via=router")
    result, rows, documents = measured("zenoh/python", factors, *options)
    assert result.code == 0, result.out + result.err
    for row, document in zip(rows, documents, strict=True):
        assert row["received_unique"] == row["sent"] > 0, row
        for node in document["nodes"]:
            assert node["ready"]["effective"]["via"] == "router"
            assert node["ready"]["effective"]["links"] == 1
        (router,) = document["services"]
        assert router["facts"]["program"] in {"zenohd", "eclipse-zenoh"}
        assert router["facts"]["version"].startswith("1.")
        assert router["counters"]["before"]["sessions"] == 2
        assert any(name.startswith("cpu_share.router") for name in row)


def test_a_router_of_another_series_ends_the_run_with_both_series(measured, tmp_path, monkeypatch):
    program = tmp_path / "bin" / "zenohd"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\necho 12:00:01.5Z INFO zenohd: zenohd v0.11.0 built with rustc 1.75.0\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    factors = 'pattern = ["topic"]\n"settings.via" = ["router"]'
    _, _, (document,) = measured("zenoh/python", factors)
    assert document["outcome"] == "died"
    detail = document["outcome_detail"]
    assert detail.startswith("router could not be started: router")
    assert "zenohd is version 0.11.0;" in detail and "series 1.x" in detail


def test_a_round_trip_over_a_relay_passes_a_router_on_a_third_host(measured, tmp_path):
    try:
        Hosts(load_rig(THREE, Catalog([home()])), tmp_path / "hosts").close()
    except MissingError as error:  # this machine cannot have network namespaces
        pytest.skip(str(error))
    chain = ("--rig", THREE, "--set", "fixed.pattern=pipeline", "--set", "fixed.nodes=3")
    factors = 'placement = ["round-trip"]\n"settings.via" = ["router"]'
    result, (row,), (document,) = measured("zenoh/python", factors, *chain)
    assert result.code == 0, result.out + result.err
    assert row["received_unique"] == row["sent"] > 0
    assert row["clock_band_us"] == 0
    assert row["latency_p50_us"] > row["latency_p50_us.hop.1"] > 0
    (path,) = tmp_path.glob("campaign/runs/*/deployment.json")
    deployed = json.loads(path.read_text())
    hosts = {node["role"]: node["host"] for node in document["nodes"]}
    assert hosts == {"source": "robot", "relay": "edge", "sink": "robot"}
    processes = {process["name"]: process["host"] for process in deployed["processes"]}
    assert processes["router"] == "cloud"


def test_a_broker_counts_every_message_of_a_run_whose_study_uses_a_counter(measured, tmp_path):
    factor = "settings.broker_tcp_nodelay"
    counted = COUNTED.format(factor, "broker.messages_dropped")
    factors = f'"{factor}" = [false, true]\n{counted}'
    result, rows, documents = measured("mqtt/python", factors, "--set", "fixed.pattern=topic")
    assert result.code == 0, result.out + result.err
    for row, document in zip(rows, documents, strict=True):
        assert row["service_counter.broker.messages_received"] == row["sent"] > 0
        assert row["service_counter.broker.messages_dropped"] == 0
        assert document["services"][0]["counters"]["before"]["messages_received"] == 0
        # One connection of each node, and one for both readings of the counters.
        (log,) = tmp_path.glob(f"campaign/runs/{row['run']}-{row['attempt']}/logs/broker.err")
        assert log.read_text().count("New client connected") == len(document["nodes"]) + 1


@pytest.mark.parametrize(
    ("cell", "service", "via"),
    [("mqtt/python", "broker", ""), ("zenoh/python", "router", "router")],
)
@pytest.mark.quiet
def test_a_run_whose_service_dies_in_the_window_names_it(
    measured, nothing_left, cell, service, via
):
    setting = f'"settings.via" = ["{via}"]' if via else ""
    counted = COUNTED.format("pattern", f"{service}.messages_received")
    factors = f'pattern = ["topic"]\n{setting}\n{counted}'
    _, (row,), (document,) = measured(cell, factors, WATTWIRE_CRASH=f"{service}@window")
    assert document["outcome"] == "died"
    assert document["outcome_detail"].startswith(f"the service {service} was killed by signal 9")
    assert "absent" in document["services"][0]["counters"]["after"]
    if row["sent"] is not None:
        assert row["expected"] == row["received_unique"] + row["lost"] + row["undelivered"]


HELPER = """
[services.helper]
argv = ["sh", "-c", "sleep 60 & wait"]
"""
"""A service with a child, whose exit is therefore reported some 0.3 s late."""


def test_a_service_that_died_before_a_node_is_named_first(measured, tmp_path):
    root = tmp_path / "root"
    shutil.copytree(home() / "middleware/loopback", root / "middleware/loopback")
    with (root / "middleware/loopback/middleware.toml").open("a") as manifest:
        manifest.write(HELPER)
    factors = 'pattern = ["topic"]\n"settings.die_at" = ["before_ready"]'
    crash = {"WATTWIRE_PATH": str(root), "WATTWIRE_CRASH": "helper@ready"}
    _, _, (document,) = measured("loopback/cpp", factors, **crash)
    assert document["outcome_detail"].startswith("the service helper was killed by signal 9; ")


@pytest.mark.matrix
@pytest.mark.parametrize("service", SERVICE_STUDIES)
def test_nothing_is_left_behind_after_random_kills_of_a_service(tmp_path, service):
    kill = partial(kill_once, service, Setting(study=SERVICE_STUDIES[service]))
    kills = list(kill_many(service, 59, kill, tmp_path, 7))
    assert [(kill.phase, kill.problems) for kill in kills if kill.problems] == []
