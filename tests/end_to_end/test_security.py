"""Test secured runs of a real broker: proof, a planted hole, and where private keys remain."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time

import polars as pl
import pytest

from wattwire.catalog import home
from wattwire.model.paths import cache_folder

pytestmark = pytest.mark.slow

THREE = home() / "rigs" / "three.toml"
PATIENCE_S = 20.0
"""Time until an agent has ended after its controller."""
COLUMNS = ("uninvited_received", "uninvited_delivered", "fill_on_link")
STUDY = """
title = "Secured"
[factors]
"settings.security" = {levels}
[fixed]
cell = "mqtt/python"
pattern = "topic"
payload_bytes = 256
rate_hz = 50
network = "lossless-20ms"
placement = "apart"
[plan]
blocks = 1
proof_runs = {proof_runs}
controls = false
duration_s = 0.5
baseline_s = 0.05
retries = 0
quiet_wait_s = 0.0
"""


@pytest.fixture
def measured(cli, tmp_path):
    """Return a function that measures a study; it returns the result and the campaign's path."""

    def run(levels, *arguments, proof_runs=1, **environment):
        study, campaign = tmp_path / "secured.toml", tmp_path / "campaign"
        study.write_text(STUDY.format(levels=json.dumps(levels), proof_runs=proof_runs))
        options = ("--rig", THREE, "--look", "--plain", "--no-report", "--campaign", campaign)
        return cli("run", study, *options, *arguments, **environment), campaign

    return run


def proofs(campaign):
    rows = pl.read_parquet(campaign / "summary.parquet", glob=False).to_dicts()
    chosen = [row for row in rows if row["control"] == "proof"]
    return {row["factor.settings.security"]: row for row in chosen}


def private_folders(campaign):
    """Return the folders of private keys that the attempts of a campaign have left."""
    with sqlite3.connect(campaign / "journal.sqlite") as journal:
        tokens = [row[0] for row in journal.execute("select token from attempt")]
    assert tokens
    folder = cache_folder() / "attempts"
    return [path for token in tokens for path in folder.glob(f"{token}-*-private")]


def test_a_secured_treatment_is_proved_and_the_payload_of_an_open_one_is_seen(measured, cli):
    result, campaign = measured(["off", "on"])
    assert result.code == 0, result.out + result.err
    rows = proofs(campaign)
    assert [rows["on"][name] for name in COLUMNS] == [0, 0, 0]
    assert all(rows["off"][name] > 0 for name in COLUMNS), rows["off"]
    document = json.loads((campaign / f"runs/{rows['on']['run']}-1/run.json").read_text())
    for node in document["nodes"]:
        effective = node["ready"]["effective"]
        assert effective["security"] == "on"
        assert effective["security_protocol"].startswith("TLSv1.")
    kinds = [node["kind"] for node in document["proof"]["uninvited"]]
    assert kinds == ["open", "open", "anonymous", "anonymous", "stranger", "stranger"]
    assert all("ended with code 4" in node["end"] for node in document["proof"]["uninvited"])
    assert cli("report", campaign).code == 0
    page = " ".join((campaign / "report" / "index.html").read_text().split())
    assert "none of 6 uninvited nodes was admitted in 1 control run" in page
    assert not private_folders(campaign)
    for path in campaign.rglob("*"):
        assert not path.is_file() or b"PRIVATE KEY" not in path.read_bytes(), path
    assert not list(campaign.rglob("*.pcap"))


def test_a_broker_that_asks_for_no_certificate_is_reported(measured, tmp_path):
    source, root = home() / "middleware" / "mqtt", tmp_path / "root"
    copy = root / "middleware" / "mqtt"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__", "tests"))
    manifest = copy / "middleware.toml"
    text = manifest.read_text()
    assert text.count("require_certificate true\n") == 1
    manifest.write_text(text.replace("require_certificate true\n", ""))
    result, campaign = measured(["on"], WATTWIRE_PATH=str(root))
    assert result.code == 0, result.out + result.err
    (row,) = [r for r in pl.read_parquet(campaign / "summary.parquet", glob=False).to_dicts()
              if r["control"] == "proof"]  # fmt: skip
    assert row["uninvited_received"] > 0
    assert row["uninvited_delivered"] > 0
    assert row["fill_on_link"] == 0


@pytest.mark.parametrize(
    ("victim", "proof_runs"),
    [
        ("controller", 1), ("agent", 1), ("guard", 1), ("publisher", 1), ("broker", 1),
        ("agent", 0),  # in the last run of the campaign
    ],
)  # fmt: skip
def test_no_private_key_remains_after_a_kill(measured, victim, proof_runs):
    _, campaign = measured(["on"], proof_runs=proof_runs, WATTWIRE_CRASH=f"{victim}@window")
    deadline_s = time.monotonic() + PATIENCE_S
    while private_folders(campaign) and time.monotonic() < deadline_s:
        time.sleep(0.1)
    assert not private_folders(campaign)
