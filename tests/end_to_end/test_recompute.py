"""Test that a script without code of wattwire finds the same numbers in a campaign's files."""

from __future__ import annotations

import ast
from pathlib import Path

import polars as pl
import pytest

from tests.end_to_end import recompute

STUDY = """
title = "A campaign to compute again"
[[question]]
id = "Q1"
text = "What do cells and payloads cost?"
factors = ["cell", "payload_bytes"]
responses = ["latency_p50_us", "cpu_us_per_message"]
[factors]
payload_bytes = [64, 1024]
cell = ["loopback/python", "loopback/cpp"]
pattern = ["topic", "pingpong"]
[fixed]
rate_hz = 50.0
[plan]
blocks = 3
primary = "cell"
controls = false
baseline_s = 0.05
duration_s = 0.4
warmup_s = 0.1
quiet_ms = 30
linger_ms = 200
retries = 0
quiet_wait_s = 0.0
[validity]
look = true
"""


def test_the_script_imports_nothing_of_wattwire() -> None:
    tree = ast.parse(Path(recompute.__file__).read_text("utf-8"))
    modules = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import)
               for name in node.names}  # fmt: skip
    modules |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    packages = {module.partition(".")[0] for module in modules}
    assert not packages & {"wattwire", "tests", "bench", "tools"} and {"polars"} < packages


@pytest.mark.slow
@pytest.mark.quiet
def test_every_number_of_a_campaign_is_that_of_an_independent_computation(cli, tmp_path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    campaign = tmp_path / "campaign"
    cli("run", "study.toml", "--plain", "--campaign", campaign)
    differing, runs, ratios = recompute.recompute(campaign)
    assert list(differing) == []
    assert (runs, ratios) == (24, 4) and differing.equal == runs * 22 + ratios * 3
    path = next(campaign.glob("runs/b01-p001-1/messages.parquet"))
    later = pl.col("end_ns") + 1_000_000
    pl.read_parquet(path, glob=False).with_columns(end_ns=later).write_parquet(path)
    differing, _, _ = recompute.recompute(campaign)
    assert any("b01-p001: latency_p50_us" in text for text in differing)
