"""Test that campaigns without stored deployments, as older versions wrote them, stay readable."""

from __future__ import annotations

import json
import shutil

import polars as pl
import pytest

pytestmark = pytest.mark.slow

STUDY = """
title = "Two patterns"
[[question]]
text = "Does the size matter?"
factors = ["payload_bytes"]
responses = ["latency_p50_us", "cpu_us_per_message"]
[factors]
pattern = ["topic", "service"]
payload_bytes = [64, 1024]
[fixed]
cell = "loopback/python"
clients = 2
rate_hz = 200
"settings.drop_every" = 9
[plan]
blocks = 2
duration_s = 0.5
controls = false
[validity]
look = true
"""


def age(campaign, contract):
    """Remove from a campaign what versions before deployments did not write."""
    for run in (campaign / "runs").iterdir():
        (run / "deployment.json").unlink()
        document = json.loads((run / "run.json").read_text(encoding="utf-8"))
        for node in document["nodes"]:
            del node["hop"]
            if contract == 1:
                del node["process"], node["language"]
        (run / "run.json").write_text(json.dumps(document), encoding="utf-8")
        quantities = pl.read_parquet(run / "quantities.parquet", glob=False).drop(
            "process", "process_kind"
        )
        quantities.write_parquet(run / "quantities.parquet")
        messages = pl.read_parquet(run / "messages.parquet", glob=False)
        pattern = document["levels"]["pattern"]
        messages.with_columns(flow=pl.lit(pattern)).write_parquet(run / "messages.parquet")


def analysis_of(cli, campaign):
    made = cli("report", campaign.name)
    assert made.code == 0, made.err
    text = (campaign / "report" / "analysis.json").read_text(encoding="utf-8")
    return json.loads(text.replace(str(campaign), "CAMPAIGN"))


def test_campaigns_without_deployments_have_the_same_numbers(cli, tmp_path):
    (tmp_path / "two.toml").write_text(STUDY, encoding="utf-8")
    done = cli("run", "two.toml", "--campaign", "new", "--no-report")
    assert done.code == 0, done.out + done.err
    new = tmp_path / "new"
    for contract in (1, 2):
        shutil.copytree(new, tmp_path / f"contract{contract}")
        age(tmp_path / f"contract{contract}", contract)
    expected = analysis_of(cli, new)
    assert expected["contrasts"]
    for contract in (1, 2):
        assert analysis_of(cli, tmp_path / f"contract{contract}") == expected
