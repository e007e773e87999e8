"""Test that settling runs detect 300 slow first calls, and that results exclude them.

The slow calls are planted in a copy of a loopback cell. Each uses CPU time, so any slow call that
is not excluded would appear in both latency and costs.
"""

from __future__ import annotations

import json
import shutil
import signal
import time
from pathlib import Path

import polars as pl
import pytest

from wattwire.catalog import home
from wattwire.model.sample_codes import FLAG_WARM_UP
from wattwire.model.words import plural
from wattwire.store import Campaign

pytestmark = [pytest.mark.quiet, pytest.mark.slow]

COLD_CALLS, COLD_US = 300, 2000
PLANTED = f"""
        if counter < {COLD_CALLS}:
            over_ns = time.thread_time_ns() + {COLD_US * 1000}
            while time.thread_time_ns() < over_ns:
                pass
"""
STUDY = """
title = "Slow at first"
[[question]]
id = "Q"
text = "Which answers sooner?"
factors = ["cell"]
responses = ["latency_p50_us", "cpu_us_per_message"]
[factors]
cell = ["loopback/python", "cold/python"]
[fixed]
pattern = "service"
loop = "closed"
count = 200
clients = 2
[plan]
blocks = 3
primary = "cell"
controls = false
baseline_s = 0.05
quiet_ms = 20
linger_ms = 100
quiet_wait_s = 0.0
retries = 0
[validity]
other_load_max = 1.0
steal_max = 1.0
missed_ticks_max = 1.0
stall_max_ms = 60000.0
"""


@pytest.fixture
def cold(tmp_path: Path) -> dict[str, str]:
    """Return an environment with the cell cold/python and a study."""
    folder = tmp_path / "roots" / "middleware" / "cold"
    shutil.copytree(home() / "middleware" / "loopback" / "python", folder / "python")
    shutil.copy(home() / "middleware" / "loopback" / "middleware.toml", folder)
    link = folder / "python" / "link.py"
    text = link.read_text(encoding="utf-8")
    assert (place := "        self.count_message()\n        if") in text
    link.write_text(
        text.replace(place, place.replace("        if", PLANTED.lstrip("\n") + "        if"))
    )
    (tmp_path / "slow.toml").write_text(STUDY)
    return {"WATTWIRE_PATH": str(tmp_path / "roots")}


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


def test_a_warm_up_can_be_refused_and_stated(cli, cold, tmp_path):
    for word, calls in (("none", 0), ("40", 40)):
        done = cli("run", "slow.toml", "--campaign", word, "--warmup", word,
                   "--set", "plan.blocks=1", "--no-report", "--plain", **cold)  # fmt: skip
        assert done.code == 0, done.err
        campaign = Campaign(tmp_path / word)
        assert campaign.warm_up is None
        assert {row["control"] for row in campaign.rows()} == {""}
        assert {row["warmup_calls"] for row in campaign.rows()} == {calls}
        # The faster client continues until the slower client has made its calls.
        assert all(row["sent"] >= 2 * (200 + calls) for row in campaign.rows())
        campaign.close()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_campaign_that_is_broken_off_among_its_settling_runs_goes_on(cli, cold, tmp_path, how):
    running = cli.start("run", "slow.toml", "--campaign", "c", "--json", "--no-report",
                        "--set", "plan.blocks=1", **cold)  # fmt: skip
    done = 0
    for line in running.stdout:
        event = json.loads(line)
        done += event["kind"] == "done"
        if done == 2 and event["kind"] == "phase" and event["phase"] == "window":
            running.send_signal(how)
            break
    running.communicate(timeout=60)
    campaign = Campaign(tmp_path / "c")
    assert campaign.warm_up is None
    before = [a.token for a in campaign.journal.attempts() if a.state == "done"]
    campaign.close()
    assert len(before) == 2
    time.sleep(0.2)
    assert cli("run", "--resume", "c", "--plain", "--no-report", **cold).code == 0
    campaign = Campaign(tmp_path / "c")
    found = campaign.warm_up
    assert set(before) < {a.token for a in campaign.journal.attempts() if a.state == "done"}
    assert {one["cell"]: one["calls"] for one in found["cells"]}["cold/python"] >= 500
    used = {row["warmup_calls"] for row in campaign.rows() if not row["control"]}
    assert used == {found["calls"]}
    campaign.close()
    # Once determined, the warm-up does not change.
    assert cli("run", "--resume", "c", "--plain", "--no-report", **cold).code == 0
    campaign = Campaign(tmp_path / "c")
    assert campaign.warm_up == found
    campaign.close()
