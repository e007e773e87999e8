"""Test the benches' imports from the package, because benches run rarely."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from tests.tidy.tree import ROOT

MODULES = sorted(path.stem for path in (ROOT / "bench").glob("[!_]*.py")) + ["__main__"]


IMPORT_CHANGES = """
import os
names = {"WATTWIRE_PATH", "PATH", "PYTHONPATH"}
before = {name: os.environ.get(name) for name in names}
import bench.__main__, bench.build_nodes
assert {name: os.environ.get(name) for name in names} == before
"""


def test_the_import_of_a_bench_does_not_change_the_environment_of_other_tests() -> None:
    subprocess.run([sys.executable, "-c", IMPORT_CHANGES], cwd=ROOT, check=True)


@pytest.mark.parametrize("name", MODULES)
def test_a_bench_finds_what_it_imports(name: str) -> None:
    assert importlib.import_module(f"bench.{name}").__doc__
