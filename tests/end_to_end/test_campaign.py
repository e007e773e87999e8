"""Test the main workflow on the loopback cell: plan, run, count and resume a study."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import sys
import time

import polars as pl
import pytest

from tests.end_to_end.conftest import (
    NOBODY,
    environment_at,
    interpreter_of,
    marked_processes,
    tokens_below,
)
from wattwire.cli.main import EXIT_INTERRUPTED
from wattwire.run.results.resources import Readings
from wattwire.store import Campaign

pytestmark = pytest.mark.slow


def attempts(path):
    campaign = Campaign(path)
    try:
        return campaign.journal.attempts(), campaign.journal.runs()
    finally:
        campaign.close()


def assert_all_done_once(path):
    """Assert that each planned run has exactly one used attempt, and none after a valid attempt."""
    tried, runs = attempts(path)
    assert runs
    for run in runs:
        done = [a for a in tried if a.run == run and a.state == "done"]
        assert [a.verdict for a in done].count("valid") == 1, (run, done)
        assert done[-1].verdict == "valid", (run, done)


def test_a_study_is_run_counted_and_summarised(cli, mini, tmp_path, nothing_left):
    result = cli("run", mini, "--campaign", tmp_path / "c", "--plain", "--no-report")
    assert result.code == 0, result.err
    assert_all_done_once(tmp_path / "c")
    summary = pl.read_parquet(tmp_path / "c" / "summary.parquet", glob=False)
    assert summary["received_unique"].to_list() == summary["expected"].to_list()
    assert (summary["sent"] == 20).all()
    assert (summary["lost"] == 0).all()
    assert (summary["cpu_us_per_message"] > 0).all()
    assert (summary["latency_p50_us"] > 0).all()
    assert not list((tmp_path / "c" / "runs").glob(".*"))


def test_a_run_holds_its_limit_of_cpu_latency_and_the_next_run_does_not(cli, mini, tmp_path):
    device = tmp_path / "device"
    device.touch()
    limits = {"fixed.cpu_latency_us": "70", "factors.pattern": '["topic"]', "plan.blocks": "2"}
    changes = [word for key, value in limits.items() for word in ("--set", f"{key}={value}")]
    result = cli("run", mini, *changes, "--campaign", tmp_path / "c", "--plain", "--no-report",
                 WATTWIRE_CPU_LATENCY=device)  # fmt: skip
    assert result.code == 0, result.err
    held = {"us": 70, "path": str(device)}
    runs = [json.loads(path.read_text()) for path in (tmp_path / "c").glob("runs/*/run.json")]
    assert [run["cpu_latency"] for run in runs] == [held, held]
    assert device.read_bytes() == (70).to_bytes(4, sys.byteorder)
    result = cli("run", mini, "--campaign", tmp_path / "d", "--plain", "--no-report",
                 WATTWIRE_CPU_LATENCY=device)  # fmt: skip
    assert result.code == 0, result.err
    runs = [json.loads(path.read_text()) for path in (tmp_path / "d").glob("runs/*/run.json")]
    assert {run["cpu_latency"] for run in runs} == {None}


def test_plan_and_run_skip_a_limit_of_cpu_latency_without_the_device(cli, mini, tmp_path):
    changes = ("--set", "fixed.cpu_latency_us=0")
    for verb in (("plan",), ("run", "--campaign", tmp_path / "c", "--plain")):
        result = cli(verb[0], mini, *verb[1:], *changes, WATTWIRE_CPU_LATENCY="/dev/no-device")
        assert result.code == 3, result.err
        assert "cpu_latency_us requires write access" in " ".join(result.err.split())


def test_a_run_whose_folder_is_gone_is_measured_again(cli, mini, tmp_path):
    assert cli("run", mini, "--campaign", tmp_path / "c", "--plain", "--no-report").code == 0
    gone = sorted((tmp_path / "c" / "runs").iterdir())[0]
    run = gone.name.rpartition("-")[0]
    shutil.rmtree(gone)
    refused = cli("report", tmp_path / "c")
    assert refused.code == 2 and f"{gone.name}/" in refused.err and "--resume" in refused.err
    again = cli("run", "--resume", tmp_path / "c", "--plain", "--no-report")
    assert again.code == 0, again.err
    assert f"the folder of {run} is missing; it is run again" in again.out + again.err
    tried, _ = attempts(tmp_path / "c")
    assert [(a.attempt, a.state) for a in tried if a.run == run] == [(1, "lost"), (2, "done")]
    assert_all_done_once(tmp_path / "c")


def test_dropped_messages_are_the_lost_ones_and_no_others(cli, mini, tmp_path):
    text = mini.read_text().replace('["topic", "service", "pingpong"]', '["topic"]')
    mini.write_text(text.replace("rate_hz = 50", "rate_hz = 50\nsettings.drop_every = 7"))
    assert cli("run", mini, "--campaign", tmp_path / "c", "--plain", "--no-report").code == 0
    (row,) = pl.read_parquet(tmp_path / "c" / "summary.parquet", glob=False).to_dicts()
    assert (row["sent"], row["lost"], row["received_unique"]) == (20, 2, 18)
    messages = Campaign(tmp_path / "c").messages(row["run"])
    received = messages.filter(pl.col("node") == 1)["counter"].to_list()
    assert set(range(20)) - set(received) == {6, 13}


def test_a_study_that_was_edited_afterwards_is_exploratory_on_the_page_and_the_terminal(
    cli, mini, tmp_path
):
    mini.write_text(
        mini.read_text()
        + '\n[[question]]\nid = "Q"\ntext = "?"\nfactors = ["pattern"]\n'
        + 'responses = ["cpu_us_per_message"]\n'
    )
    ran = cli("run", mini, "--campaign", tmp_path / "c", "--plain")
    assert ran.code == 0 and "xploratory" not in ran.out
    answer = tmp_path / "c" / "report" / "answer.txt"
    assert "xploratory" not in answer.read_text()
    path = tmp_path / "c" / "study.json"
    study = json.loads(path.read_text())
    study["question"][0]["responses"] = ["latency_p50_us"]
    path.write_text(json.dumps(study))
    again = cli("report", tmp_path / "c")
    sentence = "Exploratory: study.json was edited after this campaign began."
    assert sentence in again.out
    assert answer.read_text().startswith(sentence)
    page = (tmp_path / "c" / "report" / "index.html").read_text()
    assert sentence in page and "The study registered" not in page


def test_losses_and_costs_of_the_warm_up_are_in_no_figure_of_the_window(cli, mini, tmp_path):
    """Counters 6 and 13 of 20 are dropped. The first 10 messages, half the window, are warm-up."""
    text = mini.read_text().replace('["topic", "service", "pingpong"]', '["topic"]')
    text = text.replace("duration_s = 0.4", "duration_s = 0.4\nwarmup_s = 0.2")
    mini.write_text(text.replace("rate_hz = 50", "rate_hz = 50\nsettings.drop_every = 7"))
    assert cli("run", mini, "--campaign", tmp_path / "c", "--plain", "--no-report").code == 0
    (row,) = pl.read_parquet(tmp_path / "c" / "summary.parquet", glob=False).to_dicts()
    assert (row["sent"], row["lost"]) == (20, 2)
    assert (row["expected_after_warmup"], row["lost_after_warmup"]) == (10, 1)
    assert (row["latency_samples"], row["sent_in_cost_window"]) == (9, 10)
    assert row["cost_window_s"] == pytest.approx(row["window_s"] - 0.2)
    assert row["rate_hz_achieved"] == pytest.approx(50)

    campaign = Campaign(tmp_path / "c")
    window = campaign.run(row["run"])["window"]
    readings = Readings(campaign.quantities(row["run"]))
    after_warmup = window["start_ns"] + 200_000_000, window["end_ns"]
    nodes = ("publisher-0", "subscriber-0")
    used_ns = sum(readings.increase("cpu_time", "process", n, *after_warmup) for n in nodes)
    assert row["cpu_us_per_message"] == pytest.approx(used_ns / 1000 / 10)
    whole_ns = sum(
        readings.increase("cpu_time", "process", n, window["start_ns"], window["end_ns"])
        for n in nodes
    )
    assert 0 < used_ns < whole_ns


@pytest.mark.parametrize("point", ["ready", "window", "drain", "convert", "commit"])
def test_a_killed_controller_loses_at_most_the_run_in_flight(
    cli, mini, tmp_path, point, nothing_left
):
    first = cli("run", mini, "--campaign", tmp_path / "c", "--plain", "--no-report",
                WATTWIRE_CRASH=f"controller@{point}")  # fmt: skip
    assert first.code == -signal.SIGKILL
    deadline = time.monotonic() + 60
    tokens = tokens_below(tmp_path)
    while marked_processes(tokens) and time.monotonic() < deadline:
        time.sleep(0.05)  # the agent detects the end of its input and ends its processes
    assert marked_processes(tokens) == []
    again = cli("run", "--resume", tmp_path / "c", "--plain", "--no-report")
    assert again.code == 0, again.err
    assert_all_done_once(tmp_path / "c")
    assert not list((tmp_path / "c" / "runs").glob(".*"))


@pytest.mark.parametrize(
    "crash",
    [*(f"agent@{point}" for point in ("ready", "window", "drain", "convert", "commit")),
     *(f"guard@{point}" for point in ("ready", "window", "drain"))],
)  # fmt: skip
def test_a_killed_agent_or_guard_costs_one_attempt(cli, mini, tmp_path, crash, nothing_left):
    result = cli("run", mini, "--campaign", tmp_path / "c", "--plain", "--no-report",
                 WATTWIRE_CRASH=crash)  # fmt: skip
    assert result.code == 0, result.err
    assert cli("run", "--resume", tmp_path / "c", "--plain", "--no-report").code == 0
    assert_all_done_once(tmp_path / "c")


@pytest.mark.parametrize("point", ["ready", "window", "drain"])
def test_a_killed_node_is_a_result_and_the_campaign_goes_on(
    cli, mini, tmp_path, point, nothing_left
):
    result = cli("run", mini, "--campaign", tmp_path / "c", "--plain", "--no-report",
                 WATTWIRE_CRASH=f"node@{point}")  # fmt: skip
    assert result.code == 0, result.err
    assert cli("run", "--resume", tmp_path / "c", "--plain", "--no-report").code == 0
    tried, runs = attempts(tmp_path / "c")
    assert [a.run for a in tried] == runs
    outcomes = [a.outcome for a in tried]
    assert outcomes.count("died") == 1
    assert outcomes.count("completed") == len(runs) - 1


def test_an_interrupted_campaign_ends_cleanly_and_goes_on(cli, mini, tmp_path, nothing_left):
    mini.write_text(mini.read_text().replace("duration_s = 0.4", "duration_s = 3.0"))
    process = cli.start("run", mini, "--campaign", tmp_path / "c", "--json", "--no-report")
    for line in process.stdout:
        if json.loads(line).get("phase") == "window":
            process.send_signal(signal.SIGINT)
            break
    _, err = process.communicate(timeout=60)
    assert process.returncode == EXIT_INTERRUPTED, err
    assert "finished work is kept" in err
    assert cli("run", "--resume", tmp_path / "c", "--plain", "--no-report").code == 0
    assert_all_done_once(tmp_path / "c")


def test_two_controllers_do_not_share_a_campaign(cli, mini, tmp_path):
    # Longer than the second controller needs on a busy machine; the first one is interrupted then.
    mini.write_text(mini.read_text().replace("duration_s = 0.4", "duration_s = 100.0"))
    first = cli.start("run", mini, "--campaign", tmp_path / "c", "--json", "--no-report")
    for line in first.stdout:
        if json.loads(line).get("phase") == "window":
            break
    second = cli("run", "--resume", tmp_path / "c", "--plain")
    assert first.poll() is None
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=60)
    assert second.code == 2
    assert f"another controller (process {first.pid})" in second.err
    assert first.returncode == EXIT_INTERRUPTED


def test_an_ordinary_user_gets_usable_runs_and_hears_what_rights_cost(cli, mini, nobodys_folder):
    if os.geteuid() != 0:
        pytest.skip("this already is an ordinary user: the other tests show it")
    cli.folder = nobodys_folder
    study, campaign = nobodys_folder / mini.name, nobodys_folder / "c"
    shutil.copy(mini, study)
    result = cli("run", study, "--campaign", campaign, "--plain", "--no-report",
                 user=NOBODY, python=interpreter_of(NOBODY),
                 **environment_at(nobodys_folder))  # fmt: skip
    assert result.code == 0, result.err
    summary = pl.read_parquet(campaign / "summary.parquet", glob=False)
    assert (summary["verdict"] == "valid").any()
    host = json.loads((campaign / "machine.json").read_text())["hosts"]["local"]
    assert host["cgroup"]["rung"] == "none"
    assert host["cgroup"]["lost"], "what the missing right costs is not said"


# -- resume refuses changes that make runs incomparable -----------------------------------------


@pytest.fixture
def stopped(cli, mini, tmp_path):
    """Return a campaign that was interrupted in its first run."""
    result = cli("run", mini, "--campaign", tmp_path / "c", "--plain", "--no-report",
                 WATTWIRE_CRASH="controller@window")  # fmt: skip
    assert result.code == -signal.SIGKILL
    return tmp_path / "c"


def test_resume_refuses_a_changed_study(cli, mini, stopped):
    mini.write_text(mini.read_text().replace("duration_s = 0.4", "duration_s = 0.5"))
    result = cli("run", mini, "--resume", stopped, "--plain")
    assert result.code == 2
    assert "the study has changed since this campaign began (in: plan)" in result.err
    assert "begin a new campaign" in result.err


def change_journal(campaign, key, change):
    with sqlite3.connect(campaign / "journal.sqlite") as db:
        (value,) = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        db.execute("UPDATE meta SET value = ? WHERE key = ?", (change(value), key))


def test_resume_refuses_a_changed_cell_or_kit(cli, stopped):
    def older_build(text):
        identity = json.loads(text)
        (cell,) = [key for key in identity if key.startswith("cell ")]
        return json.dumps({**identity, cell: "0" * 24})

    change_journal(stopped, "identity", older_build)
    result = cli("run", "--resume", stopped, "--plain")
    assert result.code == 2
    assert "cell loopback/python (or its kit) has changed since this campaign began" in result.err


def test_resume_refuses_another_machine_until_each_change_is_accepted(cli, stopped):
    with sqlite3.connect(stopped / "journal.sqlite") as db:
        (text,) = db.execute("SELECT machine FROM segment").fetchone()
        machine = json.loads(text)
        key = sorted(machine)[0]
        machine[key] = "something else"
        db.execute("UPDATE segment SET machine = ?", (json.dumps(machine),))
    refused = cli("run", "--resume", stopped, "--plain")
    assert refused.code == 2
    assert f"{key}: something else →" in refused.err
    assert "--accept KEY" in refused.err
    accepted = cli("run", "--resume", stopped, "--accept", key, "--plain", "--no-report")
    assert accepted.code == 0, accepted.err
    campaign = Campaign(stopped)
    assert [s["accepted"] for s in campaign.journal.segments()] == [[], [key]]
    campaign.close()
