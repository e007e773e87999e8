"""Test that settling runs detect 300 slow first calls, and that results exclude them.

The slow calls are planted in a copy of a loopback cell. Each uses CPU time, so any slow call that
is not excluded would appear in both latency and costs.
"""

from __future__ import annotations

import polars as pl
import pytest

from tests.end_to_end.cold_cell import COLD_US
from wattwire.model.sample_codes import FLAG_WARM_UP
from wattwire.model.words import plural
from wattwire.store import Campaign

pytestmark = [pytest.mark.quiet, pytest.mark.slow]


def medians(campaign: Campaign, name: str, control: str = "") -> dict[str, float]:
    frame = pl.DataFrame([r for r in campaign.rows() if r["control"] == control])
    found = frame.group_by("cell").agg(pl.col(name).median())
    return dict(zip(found["cell"], found[name], strict=True))


def test_the_planted_beginning_is_found_and_left_out_of_time_and_cost_alike(cli, cold, tmp_path):
    done = cli("run", "slow.toml", "--campaign", "c", "--plain", **cold)
    assert done.code == 0, done.err
    campaign = Campaign(tmp_path / "c")
    found = campaign.warm_up
    needs = {one["cell"]: one["calls"] for one in found["cells"]}
    # The warm-up is at least the first of STEPS above 300. A busy machine may make it longer.
    assert needs["cold/python"] >= 500
    assert found["calls"] == max(needs.values())
    calls_of_each = f"{plural(found['calls'], 'call')} of each client"
    assert calls_of_each in done.out
    page = (tmp_path / "c" / "report" / "index.html").read_text(encoding="utf-8")
    assert f"The discarded warm-up consists of {calls_of_each}" in page
    latency, cpu = (medians(campaign, name) for name in ("latency_p50_us", "cpu_us_per_message"))
    whole = medians(campaign, "cpu_us_per_message", "settling")
    # Without a warm-up, a third of the calls would be slow: over 600 µs of CPU time per message.
    assert cpu["cold/python"] < whole["loopback/python"] + COLD_US / 4
    assert latency["cold/python"] < COLD_US
    for row in campaign.rows():
        messages = campaign.messages(row["run"])
        calls = messages.filter((pl.col("node") == pl.col("sender")) & (pl.col("kind") == "call"))
        warm = calls.filter((pl.col("flags") & FLAG_WARM_UP) != 0)
        counted = calls.filter((pl.col("flags") & FLAG_WARM_UP) == 0)
        begun = pl.col("begin_ns") >= counted["begin_ns"].min()
        cold, late = warm.filter(~begun), warm.filter(begun)
        # A settling run may end at its time limit without calls after the counted calls.
        assert late.is_empty() or late["begin_ns"].min() > counted["begin_ns"].max()
        if row["control"]:
            assert cold.is_empty() and not row["used"]
            continue
        # Both clients are active until the slower client has made its calls. The slower client may
        # begin no further call before STOP arrives.
        assert row["clients_active_mean"] > 1.8
        assert calls.group_by("node").len()["len"].min() >= found["calls"] + 200
        assert set(counted["node"]) == set(calls["node"]) and not late.is_empty()
        assert counted["counter"].min() >= found["calls"]
        assert row["latency_samples"] == counted.height == row["sent_in_cost_window"]
    campaign.close()
