"""Test that a pattern is data: an entry of the table is planned, run, counted and reported."""

from __future__ import annotations

import json
import sys

import polars as pl
import pytest

pytestmark = pytest.mark.slow

WITH_PATTERN = """
import sys
from wattwire.cli.main import main
from wattwire.model.deployment import PATTERNS, Members, Pattern

members = (Members("subscriber"), Members("publisher", number=2))
PATTERNS["gather"] = Pattern("gather", members, ("publisher", "subscriber"), "topic")
raise SystemExit(main(sys.argv[1:]))
"""
STUDY = """
title = "Two sources and a sink"
[[question]]
text = "Does the size matter?"
factors = ["payload_bytes"]
responses = ["latency_p50_us"]
[factors]
payload_bytes = [64, 1024]
[fixed]
pattern = "gather"
cell = "loopback/python"
rate_hz = 100
"settings.drop_counters" = "3,8"
[plan]
blocks = 2
duration_s = 0.5
controls = false
[validity]
look = true
"""


def test_a_pattern_of_two_sources_and_a_sink_needs_only_an_entry_of_the_table(cli, tmp_path):
    (tmp_path / "gather.toml").write_text(STUDY, encoding="utf-8")
    cli.command = lambda *arguments, python=sys.executable: [
        python, "-c", WITH_PATTERN, *map(str, arguments),
    ]  # fmt: skip
    plan = cli("plan", "gather.toml")
    assert plan.code == 0, plan.err
    done = cli("run", "gather.toml", "--campaign", "campaign")
    assert done.code == 0, done.out + done.err
    campaign = tmp_path / "campaign"
    rows = pl.read_parquet(campaign / "summary.parquet", glob=False)
    assert rows.height == 4
    # Both sources send 50 messages; the sink loses the planted two of each.
    assert rows["sent"].to_list() == rows["expected"].to_list() == [100] * 4
    assert rows["lost"].to_list() == [4] * 4
    assert (rows["received_unique"] + rows["lost"] == rows["sent"]).all()
    run = campaign / "runs" / f"{rows['run'][0]}-1"
    deployment = json.loads((run / "deployment.json").read_text(encoding="utf-8"))
    assert [flow["name"] for flow in deployment["flows"]] == ["publisher-0", "publisher-1"]
    messages = pl.read_parquet(run / "messages.parquet", glob=False)
    assert sorted(messages["flow"].unique()) == ["publisher-0", "publisher-1"]
    quantities = pl.read_parquet(run / "quantities.parquet", glob=False).drop_nulls("process")
    assert {*quantities["process"]} == {"publisher-0", "publisher-1", "subscriber-0"}
    assert {*quantities["process_kind"]} == {"node"}
    assert "gather" in (campaign / "report" / "index.html").read_text(encoding="utf-8")
