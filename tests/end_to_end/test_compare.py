"""Test the workflow of a build server: compare two checkouts of a cell, and detect the slow one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from tests.tidy.tree import ROOT

ACTION = ROOT / ".github/actions/compare"
HANG_S = 300
STUDY = """
title = "A ping-pong"
[factors]
pattern = ["pingpong"]
[fixed]
cell = "loopback/python"
rate_hz = 20
cores = "same"    # with free, the planted load moves a node to another CPU, and there is no verdict
[plan]
blocks = 3
controls = false
duration_s = 0.2
baseline_s = 0.05
linger_ms = 100
quiet_ms = 20
retries = 0
quiet_wait_s = 0.0
[validity]
other_load_max = 1.1
steal_max = 1.1
missed_ticks_max = 1.0
stall_max_ms = 60000.0
clock_step_max_ms = 60000.0
[[limit]]
response = "latency_p50_us"
max = 60000000
"""
BURNT_S = 0.02
"""CPU time that the planted fault adds to each call: tens of times the cost without it."""
SERVES = "        _, number, data, sender = request\n"
BURNS = f"        end = time.thread_time() + {BURNT_S}\n        while time.thread_time() < end:\n"


@pytest.fixture
def checkouts(tmp_path) -> tuple[Path, Path]:
    """Return the roots of two checkouts of one cell; the second one wastes CPU time."""
    roots = []
    for name in ("base", "head"):
        cell = tmp_path / name / "middleware/loopback"
        shutil.copytree(ROOT / "middleware/loopback/python", cell / "python")
        shutil.copy(ROOT / "middleware/loopback/middleware.toml", cell)
        roots.append(tmp_path / name)
    service = roots[1] / "middleware/loopback/python/service.py"
    text = service.read_text()
    assert text.count(SERVES) == 1
    text = text.replace(SERVES, f"{BURNS}            pass\n{SERVES}")
    service.write_text(text.replace("\nfrom link", "\nimport time\nfrom link", 1))
    return roots[0], roots[1]


def steps() -> list[dict]:
    return yaml.safe_load((ACTION / "action.yml").read_text())["runs"]["steps"]


def act(folder: Path, step: dict, inputs: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a step of the action like a build server; `inputs` override the defaults."""
    declared = yaml.safe_load((ACTION / "action.yml").read_text())["inputs"]
    assert set(inputs) <= set(declared)
    given = {name: str(table.get("default", "")) for name, table in declared.items()} | inputs
    words = {f"${{{{ inputs.{name} }}}}": value for name, value in given.items()}
    words["${{ github.action_path }}"] = str(ACTION)
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    program = programs / "wattwire"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m wattwire "$@"\n')
    program.chmod(0o755)
    env = {
        **os.environ, **{key: words[value] for key, value in step["env"].items()},
        "PATH": f"{programs}:{os.environ['PATH']}", "WATTWIRE_HEAVY": "skip",
        "GITHUB_STEP_SUMMARY": str(folder / "summary"), "GITHUB_OUTPUT": str(folder / "output"),
    }  # fmt: skip
    return subprocess.run(
        ["bash", "-c", step["run"]], cwd=folder, env=env, capture_output=True, text=True,
        timeout=HANG_S, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_the_action_finds_the_planted_cost_and_confirms_it_before_it_fails(
    cli, checkouts, tmp_path, nothing_left
):
    (tmp_path / "study.toml").write_text(STUDY)
    compare = next(step for step in steps() if step.get("id") == "compare")
    base, head = map(str, checkouts)
    inputs = {"study": "study.toml", "base": base, "head": head, "campaign": "both"}
    done = act(tmp_path, compare, {**inputs, "responses": "cpu_us_per_message\n"})
    assert done.returncode == 1, done.stdout + done.stderr
    answer = "head is worse than base in 1 of 1 comparison (margin 5 %): CPU time per message"
    assert answer in done.stdout.replace("\n    ", " ")
    assert answer in (tmp_path / "summary").read_text()
    told = dict(line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines())
    assert told["exit-code"] == "1" and (tmp_path / told["report"]).is_file()
    suites = ElementTree.parse(tmp_path / told["junit"]).getroot()
    assert [suite.attrib["failures"] for suite in suites] == ["1", "0"], "the limits hold"
    plan = json.loads((tmp_path / "both/plan.json").read_text())
    assert {entry["block"] for entry in plan} == set(range(1, 7)), "3 blocks, and 3 to confirm"
    identity = json.loads(cli("compare", "both", "--json").out)
    assert identity["looks"] == 3 and "measured in 3 more" in " ".join(identity["notes"])
    again_and_across(cli, tmp_path)


def again_and_across(cli, folder: Path) -> None:
    """Check further commands on the measured campaign.

    A resume repeats no run. A comparison of a campaign with itself is never worse. A campaign
    of another machine is refused unless it is requested.
    """
    again = cli("run", "--resume", "both", "--json", "--no-report")
    assert again.code == 1, again.err
    kinds = [event["kind"] for event in again.events]
    assert "run" not in kinds and kinds.count("comparison") == 1
    shutil.copytree(folder / "both", folder / "copy")
    # Bytes on the wire include other programs, so they must not affect the result.
    same = cli("compare", "both", "copy", "--response", "cpu_us_per_message", "--json",
               "--cannot-tell", "pass")  # fmt: skip
    assert same.code == 0, same.out + same.err
    items = json.loads(same.out)["items"]
    ratios = [item["ratio"] for item in items if item["response"] == "cpu_us_per_message"]
    assert ratios == pytest.approx([1.0, 1.0]) and len(items) == 4
    assert all(item["verdict"] != "worse" for item in items)
    machine = json.loads((folder / "copy/machine.json").read_text())
    for fact in machine["hosts"]["local"]["facts"]:
        if fact["key"] == "cpu_name":
            fact["value"] = "another processor"
    (folder / "copy/machine.json").write_text(json.dumps(machine))
    refused = cli("compare", "both", "copy")
    assert refused.code == 2 and "cpu_name" in refused.err and "--across-machines" in refused.err
    across = cli("compare", "both", "copy", "--across-machines", "--markdown", "-")
    assert across.out.startswith("**The comparison is across machines (cpu")


def test_every_input_of_the_action_reaches_its_script_and_the_guide_uses_them_right():
    action = yaml.safe_load((ACTION / "action.yml").read_text())
    compare = next(step for step in steps() if step.get("id") == "compare")
    script = (ACTION / "compare.sh").read_text()
    for name in compare["env"]:
        assert f"${name}" in script or f"${{{name}" in script or name in compare["run"], name
    used = {value for step in steps() for value in [*step.get("env", {}).values(), str(step)]}
    assert all(any(f"inputs.{name}" in text for text in used) for name in action["inputs"])
    guide = (ROOT / "docs/ci.md").read_text()
    blocks = [part.split("```")[0] for part in guide.split("```yaml\n")[1:]]
    workflows = [yaml.safe_load(block) for block in blocks]
    uses = [
        step
        for workflow in workflows
        for job in workflow["jobs"].values()
        for step in job["steps"]
        if ".github/actions/compare" in step.get("uses", "")
    ]
    assert uses
    assert all(set(step["with"]) <= set(action["inputs"]) for step in uses)
