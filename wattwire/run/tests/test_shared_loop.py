"""Test that commands and nodes are measured by the same loop."""

from __future__ import annotations

from pathlib import Path

import wattwire.run
from wattwire.run.exec.command_run import CommandRun
from wattwire.run.runner import OneRun

RUN = Path(wattwire.run.__file__).parent
CALIBRATION = "calibrating.py"
"""A calibration compares the model with a counter. It is not a run."""
ALIGNMENT = "alignment_load.py"
"""The load before the first and after the last run. No run samples it."""


def test_one_place_samples_runs() -> None:
    sampling = {
        path.name
        for path in RUN.rglob("*.py")
        if path.parent.name != "tests" and '"sample_start"' in path.read_text(encoding="utf-8")
    }
    assert sampling == {"runner.py", CALIBRATION, ALIGNMENT}


def test_a_command_replaces_only_the_phases_that_depend_on_nodes() -> None:
    replaced = {name for name in vars(CommandRun) if name in vars(OneRun) and name[:2] != "__"}
    phases = {"_start", "_window", "_drain", "_judge_exits", "_end_processes"}
    # The others add the probe to what `OneRun` knows.
    assert replaced - {"execute", "_require_dependencies", "_victims"} == phases
