"""Test that processes run on the CPUs that a study asks for, and that other CPUs are named."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from wattwire.catalog import home

pytestmark = pytest.mark.slow

STUDY = """
title = "Where nodes run"
[factors]
cores = {levels}
[fixed]
cell = "{cell}/python"
pattern = "{pattern}"
loop = "closed"
count = 1500
[plan]
blocks = 1
controls = false
baseline_s = 0.05
quiet_ms = 30
linger_ms = 200
warmup_calls = 0
quiet_wait_s = 0.0
retries = 0
[validity]
look = true
"""


def campaign_of(cli, levels, cell="loopback", pattern="pingpong", **environment):
    text = STUDY.format(levels=json.dumps(levels), cell=cell, pattern=pattern)
    (cli.folder / "study.toml").write_text(text)
    return cli("run", "study.toml", "--campaign", "c", **environment)


def documents(folder):
    runs = [json.loads(path.read_text()) for path in folder.glob("c/runs/*/run.json")]
    return {run["levels"]["cores"]: run for run in runs}


def test_nodes_run_on_the_asked_cpus_and_the_summary_says_how_near(cli):
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        pytest.skip("one CPU: nodes cannot be apart")
    first, last = allowed[0], allowed[-1]
    listed = f"pong={first} *={last}"
    done = campaign_of(cli, ["free", "same", "apart", listed])
    assert done.code == 0, done.err
    runs = documents(cli.folder)
    assert {run["verdict"] for run in runs.values()} == {"valid"}, [r["reasons"] for r in runs]
    used = {
        level: {
            name: {int(cpu) for cpu in by_cpu} for name, by_cpu in run["cores"]["processes"].items()
        }
        for level, run in runs.items()
    }
    assert len(used["same"]["ping-0"]) == 1
    assert used["same"]["ping-0"] == used["same"]["pong-0"]
    assert used["apart"]["ping-0"].isdisjoint(used["apart"]["pong-0"])
    assert used[listed] == {"pong-0": {first}, "ping-0": {last}}
    for level, same_cpu in (("same", 1.0), ("apart", 0.0), (listed, 0.0)):
        (pair,) = runs[level]["cores"]["pairs"]
        assert pair["same_cpu"] == same_cpu
        assert sum(pair[name] for name in ("siblings", "shared_cache", "further")) == 1 - same_cpu
    assert runs["free"]["cores"]["machines"][0]["asked"] == {}


def test_a_level_that_does_not_fit_is_skipped_before_the_first_run_with_the_reason(cli):
    levels = ["same", "server=0", "*=1000"]
    done = campaign_of(cli, levels)
    assert done.code == 0, done.err
    assert {*documents(cli.folder)} == {"same"}
    plan = cli("plan", "study.toml").out
    for text in ("found server; allowed: *, ping", "found CPU 1000; online are"):
        assert text in " ".join(plan.split())


def test_a_library_that_chooses_other_cpus_is_named(cli):
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        pytest.skip("one CPU: there is no other one")
    folder = cli.folder / "roots" / "middleware" / "stray"
    shutil.copytree(home() / "middleware" / "loopback" / "python", folder / "python")
    shutil.copy(home() / "middleware" / "loopback" / "middleware.toml", folder)
    node = folder / "python" / "node.py"
    stray = f"import os\n\nos.sched_setaffinity(0, {{{allowed[0]}}})\n"
    node.write_text(stray + node.read_text(encoding="utf-8"), encoding="utf-8")
    done = campaign_of(cli, [f"*={allowed[-1]}"], "stray", WATTWIRE_PATH=str(cli.folder / "roots"))
    (run,) = documents(cli.folder).values()
    assert run["verdict"] == "invalid", done.err
    texts = [reason["detail"] for reason in run["reasons"] if reason["code"] == "cores"]
    assert len(texts) == 2
    assert all(f"on CPU {allowed[0]} instead of {allowed[-1]}" in text for text in texts)
