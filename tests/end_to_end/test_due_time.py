"""Test overloaded servers: percentiles from the due time, limits, the first sentence, exit codes.

The percentiles are computed again from the records of each run, without wattwire.
"""

from __future__ import annotations

import json
import math

import numpy as np
import polars as pl
import pytest

from tests.end_to_end import overloaded_cell

pytestmark = [pytest.mark.slow, pytest.mark.quiet]

STUDY = """
title = "Servers that freeze, slow down and cannot keep up"
[[question]]
id = "Q1"
text = "How late are replies?"
factors = ["settings.serve"]
responses = ["latency_p50_us"]
[[limit]]
response = "latency_p90_us"
max = 500000
[factors]
"settings.serve" = ["slower", "freeze", "over"]
[fixed]
cell = "overloaded/python"
pattern = "service"
rate_hz = 100
timeout_ms = 5000
[plan]
blocks = 3
controls = false
duration_s = 3.2
warmup_s = 0.1
baseline_s = 0.05
quiet_ms = 30
linger_ms = 200
retries = 0
quiet_wait_s = 0.0
[answers]
margin = 0.05
"""
SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999, "max": 1.0}
WARM_UP = 1


def independent_percentiles(path, start_column):
    """Return the nearest-rank percentiles (µs) of the calls in a file of records."""
    calls = pl.read_parquet(path).filter(
        pl.col("node") == pl.col("sender"), pl.col("flags") & WARM_UP == 0
    )
    assert calls["end_ns"].null_count() == 0
    values = np.sort((calls["end_ns"] - calls[start_column]).to_numpy() / 1000)
    assert len(values) == 310
    return {name: values[math.ceil(share * len(values)) - 1] for name, share in SHARES.items()}


def test_no_overload_is_hidden_by_a_client_that_waits(cli, tmp_path):
    environment = overloaded_cell.plant(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)
    campaign = tmp_path / "campaign"
    result = cli("run", "study.toml", "--look", "--plain", "--campaign", campaign, **environment)
    rows = pl.read_parquet(campaign / "summary.parquet").to_dicts()
    by_mode: dict[str, list[dict]] = {}
    for row in rows:
        by_mode.setdefault(row["factor.settings.serve"], []).append(row)
        path = campaign / "runs" / f"{row['run']}-{row['attempt']}" / "messages.parquet"
        for stem, column in (("latency", "intended_ns"), ("since_send", "begin_ns")):
            expected = independent_percentiles(path, column)
            assert {name: row[f"{stem}_{name}_us"] for name in SHARES} == pytest.approx(expected)
        assert row["rate_hz_achieved"] * row["rate_window_s"] == pytest.approx(
            row["sent_in_cost_window"]
        )
        assert row["rate_hz_delivered"] == pytest.approx(row["rate_hz_achieved"], rel=0.02)
    for row in by_mode["freeze"]:
        assert row["latency_p90_us"] > 1.5e6
        assert row["since_send_p90_us"] < 1e5
        assert row["outcome"] == "completed"
    for row in by_mode["over"]:
        assert row["outcome"] == "saturated"
        assert row["rate_hz_achieved"] < 90
        assert row["latency_growth_us_per_s"] > 1e5
    assert {row["outcome"] for row in by_mode["slower"]} == {"completed"}
    assert result.code == 1, result.out + result.err
    document = json.loads((campaign / "report" / "analysis.json").read_text())
    verdicts = {limit["treatment"]: limit["verdict"] for limit in document["limits"]}
    assert verdicts.pop("slower") != "broken"
    assert verdicts == {"freeze": "broken", "over": "broken"}
    assert "over saturated in 3 of 3 runs." in result.out


BLOCKING = """
title = "A send call that takes longer than the period"
[fixed]
cell = "loopback/python"
pattern = "topic"
rate_hz = 200
"settings.delay_us" = 6000
[plan]
blocks = 1
controls = false
duration_s = 2.0
warmup_s = 0.2
baseline_s = 0.05
quiet_ms = 50
linger_ms = 500
retries = 0
quiet_wait_s = 0.0
"""


def test_a_publisher_whose_send_call_is_too_slow_is_saturated_at_its_true_rate(cli, tmp_path):
    (tmp_path / "study.toml").write_text(BLOCKING)
    campaign = tmp_path / "campaign"
    result = cli("run", "study.toml", "--look", "--plain", "--no-report", "--campaign", campaign)
    assert result.code == 0, result.out + result.err
    (row,) = pl.read_parquet(campaign / "summary.parquet").to_dicts()
    assert row["outcome"] == "saturated"
    assert (row["sent"] + row["unsent"], row["rate_hz_offered"]) == (400, 200)
    assert row["rate_hz_achieved"] * row["rate_window_s"] == pytest.approx(
        row["sent_in_cost_window"]
    )
    assert row["rate_hz_achieved"] < 1 / 0.006
    assert row["rate_hz_delivered"] == pytest.approx(row["rate_hz_achieved"], rel=0.02)
    # The last message is late by the backlog of the whole window, and its send call by 6 ms.
    assert row["latency_p50_us"] > 10 * row["since_send_p50_us"] > 60_000
    assert row["latency_growth_us_per_s"] > 1e5
