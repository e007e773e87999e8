"""Test a study with several flows: processes, columns, answers and the table on the page."""

from __future__ import annotations

import json

import polars as pl
import pytest

pytestmark = pytest.mark.slow

STUDY = """
title = "A command and a chain of images"
[[question]]
id = "F1"
text = "Does the image delay the command?"
factors = ["flows"]
responses = ["latency_p50_us.flow.command", "loss_share.flow.command"]
[[flow]]
name = "command"
payload_bytes = 64
rate_hz = 200
[[flow]]
name = "image"
payload_bytes = 20_000
rate_hz = 50
pattern = "pipeline"
[factors]
flows = ["command", "command+image"]
[fixed]
cell = "loopback/python"
"settings.drop_counters" = "3,8"
[[limit]]
response = "latency_p50_us.flow.image"
max = 60_000_000
[plan]
blocks = 2
duration_s = 0.5
baseline_s = 0.1
controls = false
[validity]
look = true
"""


def test_a_run_with_two_flows_has_processes_counts_and_a_row_of_each(cli, tmp_path):
    (tmp_path / "flows.toml").write_text(STUDY, encoding="utf-8")
    done = cli("run", "flows.toml", "--campaign", "campaign")
    # Two runs decide no limit, unless one of them is saturated.
    assert done.code in (1, 5), done.out + done.err
    campaign = tmp_path / "campaign"
    rows = pl.read_parquet(campaign / "summary.parquet", glob=False)
    assert rows["verdict"].to_list() == ["valid"] * 4, done.out + done.err
    both = rows.filter(pl.col("factor.flows") == "command+image")
    alone = rows.filter(pl.col("factor.flows") == "command")
    # Each receiving end of the loopback cell loses the planted two.
    assert both["sent.flow.command"].to_list() == [100, 100]
    assert both["lost.flow.command"].to_list() == [2, 2]
    assert both["sent.flow.image"].to_list() == [25, 25]
    assert (both["lost.flow.image"] >= 2).all()
    for count in ("sent", "expected", "received_unique", "lost"):
        total = both[f"{count}.flow.command"] + both[f"{count}.flow.image"]
        assert total.to_list() == both[count].to_list()
    assert alone["sent.flow.image"].to_list() == [None, None]
    assert alone["sent.flow.command"].to_list() == alone["sent"].to_list() == [100, 100]
    assert (both["throughput_bytes_per_s.flow.image"] > 0).all()

    run = campaign / "runs" / f"{both['run'][0]}-1"
    deployment = json.loads((run / "deployment.json").read_text(encoding="utf-8"))
    assert {flow["name"]: len(flow["relays"]) for flow in deployment["flows"]} == {
        "command": 0, "image": 1,
    }  # fmt: skip
    messages = pl.read_parquet(run / "messages.parquet", glob=False)
    assert sorted(messages["flow"].unique()) == ["command", "image"]
    quantities = pl.read_parquet(run / "quantities.parquet", glob=False).drop_nulls("process")
    assert {*quantities["process"]} == {
        "publisher-0", "subscriber-0", "source-0", "relay-0", "sink-0",
    }  # fmt: skip

    table = (campaign / "report" / "tables" / "flows.csv").read_text(encoding="utf-8")
    assert len(table.splitlines()) == 1 + 3  # command alone, command and image together
    analysis = (campaign / "report" / "analysis.json").read_text(encoding="utf-8")
    assert "median latency of command" in analysis
