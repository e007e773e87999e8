"""Test that a warm-up can be stated, and that a campaign resumes after a kill in settling runs.

These tests assert states and counts, so they run at the same time as others.
"""

from __future__ import annotations

import json
import signal
import time

import pytest

from wattwire.store import Campaign

pytestmark = pytest.mark.slow


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
                        "--set", "plan.blocks=1", "--set", "fixed.clients=1", **cold)  # fmt: skip
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
