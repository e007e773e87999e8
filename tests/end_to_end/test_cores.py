"""Test that processes run on the CPUs that a study asks for, and that other CPUs are named."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from wattwire.catalog import home
from wattwire.model.errors import EXIT_CANNOT_TELL, EXIT_USAGE

pytestmark = pytest.mark.slow

STUDY = """
title = "Where nodes run"
[factors]
cores = {levels}
[fixed]
cell = "{cell}"
pattern = "pingpong"
loop = "closed"
count = 1500
[plan]
blocks = {blocks}
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


def campaign_of(cli, levels, cell="loopback/python", name="c", blocks=1, **environment):
    text = STUDY.format(levels=json.dumps(levels), cell=cell, blocks=blocks)
    (cli.folder / "study.toml").write_text(text)
    return cli("run", "study.toml", "--campaign", name, **environment)


def pinning_cell(cli, lines):
    """Write a cell that executes these lines first. Return the environment that adds it."""
    root = cli.folder / "roots"
    folder = root / "middleware" / "stray"
    if not folder.exists():
        shutil.copytree(home() / "middleware" / "loopback" / "python", folder / "python")
        shutil.copy(home() / "middleware" / "loopback" / "middleware.toml", folder)
    original = (home() / "middleware" / "loopback" / "python" / "node.py").read_text("utf-8")
    (folder / "python" / "node.py").write_text(
        f"import json, os, sys\n\n{lines}\n{original}", "utf-8"
    )
    return {"WATTWIRE_PATH": str(root)}


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
    environment = pinning_cell(cli, f"os.sched_setaffinity(0, {{{allowed[0]}}})")
    done = campaign_of(cli, [f"*={allowed[-1]}"], "stray/python", **environment)
    (run,) = documents(cli.folder).values()
    assert run["verdict"] == "invalid", done.err
    texts = [reason["detail"] for reason in run["reasons"] if reason["code"] == "cores"]
    assert len(texts) == 2
    assert all(f"on CPU {allowed[0]} instead of {allowed[-1]}" in text for text in texts)


def test_taskset_around_wattwire_is_respected_and_named(cli):
    allowed = os.sched_getaffinity(0)
    if len(allowed) < 2:
        pytest.skip("one CPU: nothing can be restricted")
    first, last = min(allowed), max(allowed)
    os.sched_setaffinity(0, {last})
    try:
        done = campaign_of(cli, ["free", "apart", f"*={first}"])
    finally:
        os.sched_setaffinity(0, allowed)
    assert done.code == 0, done.err
    (run,) = documents(cli.folder).values()
    assert run["levels"]["cores"] == "free"
    assert {cpu for ran in run["cores"]["processes"].values() for cpu in ran} == {str(last)}
    plan = json.loads((cli.folder / "c" / "plan.json").read_text())
    skipped = {entry["levels"]["cores"]: entry["skipped"] for entry in plan if entry["skipped"]}
    assert "1 CPU can be used" in skipped["apart"]
    assert "taskset or a cpuset restricts it" in skipped[f"*={first}"]
    assert cli("report", "c").code == 0
    page = (cli.folder / "c" / "report" / "index.html").read_text(encoding="utf-8")
    assert 'data-key="placements.cpus" data-value="1"' in page


def test_campaigns_in_other_placements_have_no_verdict(cli):
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        pytest.skip("one CPU: nodes cannot be apart")
    for cores in ("same", "apart"):
        assert campaign_of(cli, [cores], "udp/cpp", cores, blocks=3).code == 0
    refused = cli("compare", "same", "apart")
    assert refused.code == EXIT_USAGE
    assert "cores: same against apart" in " ".join(refused.err.split())


def test_a_placement_that_no_study_asked_for_leaves_the_comparison_undecided(cli):
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        pytest.skip("one CPU: nodes cannot be apart")
    for name, cpus in (("base", [allowed[-1]] * 2), ("head", allowed[-2:])):
        spec = 'json.load(open(sys.argv[sys.argv.index("--spec") + 1]))'
        pins = f'os.sched_setaffinity(0, {{{cpus}[{spec}["role"] == "pong"]}})'
        environment = pinning_cell(cli, pins)
        assert campaign_of(cli, ["free"], "stray/python", name, 5, **environment).code == 0
    compared = cli("compare", "base", "head", "--response", "latency_p50_us", "--margin", "5%")
    first_line = " ".join(compared.out.split("\n\n")[0].split())
    assert compared.code == EXIT_CANNOT_TELL, compared.out
    assert "the nodes ran in different placements" in first_line
