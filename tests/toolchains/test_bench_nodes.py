"""Test that the nodes of the bench build, because benches run rarely."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CELLS = sorted(
    f"{path.parent.parent.name}/{path.parent.name}"
    for path in (ROOT / "bench" / "cells" / "middleware").glob("*/*/node.toml")
)
NULL = [name for name in CELLS if name.startswith("null/")]
"""Cells that measure the cost of a kit. They need only the language's toolchain and the kit."""
BARE = [name for name in CELLS if name not in NULL]
"""Clients of libraries that are downloaded and built: minutes and hundreds of megabytes."""


def build(name: str) -> None:
    command = [sys.executable, "-m", "bench.build_nodes", name]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    output = result.stdout + result.stderr
    if f"{name}: absent: " in output and "could not be built" not in output:
        pytest.skip(output[output.index(f"{name}: absent: ") :].splitlines()[0])
    assert f"{name}: built" in output, output[-4000:]
    assert result.returncode == 0, output[-4000:]


@pytest.mark.slow
@pytest.mark.parametrize("name", NULL)
def test_a_node_that_measures_a_kit_builds(name: str) -> None:
    build(name)


@pytest.mark.matrix
@pytest.mark.parametrize("name", BARE)
def test_a_bare_client_builds(name: str) -> None:
    build(name)


def test_every_kit_and_every_library_has_a_node() -> None:
    assert {"null/cpp", "null/python", "null/rust"} <= set(NULL)
    assert len(BARE) > 20
