"""Test that a node that violates the contract fails only its own attempt.

`make test-full` tests a seeded sample of the modes, and `make test-all` tests all modes.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.fuzz.hostile_nodes import load_deeds, run_modes, sample
from wattwire.model.errors import MissingError
from wattwire.rig import find_agent

SAMPLE = 8
ALWAYS = (
    "listening_empty", "ready_nan", "times_negative", "file_fifo", "link_run_json", "agent_killed"
)  # fmt: skip
"""One mode for each kind of damage that occurred in earlier versions."""


@pytest.fixture(autouse=True)
def agent_is_built() -> None:
    try:
        find_agent()
    except MissingError as error:
        pytest.skip(f"no toolchain: {error}")


def assert_contained(folder: Path, modes: list[str]) -> None:
    findings, problems = run_modes(folder, modes)
    assert problems == []
    assert {f.mode: (f.problems, f.detail) for f in findings if f.problems} == {}


@pytest.mark.slow
def test_a_sample_of_hostile_nodes_costs_their_own_attempts_only(tmp_path: Path) -> None:
    seed = int(os.environ.get("WATTWIRE_FUZZ_SEED", "1"))
    chosen = [mode for mode in sample(SAMPLE, seed) if mode not in ALWAYS]
    assert_contained(tmp_path, [*ALWAYS, *chosen])


@pytest.mark.slow
@pytest.mark.matrix
def test_every_hostile_node_costs_its_own_attempt_only(tmp_path: Path) -> None:
    modes = [mode for mode in load_deeds() if mode != "honest"]
    assert len(modes) >= 78
    assert_contained(tmp_path, modes)
