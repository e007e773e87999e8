"""Test the benches' imports from the package, because benches run rarely."""

from __future__ import annotations

import importlib

import pytest

from tests.tidy.tree import ROOT

MODULES = sorted(path.stem for path in (ROOT / "bench").glob("[!_]*.py")) + ["__main__"]


@pytest.mark.parametrize("name", MODULES)
def test_a_bench_finds_what_it_imports(name: str) -> None:
    assert importlib.import_module(f"bench.{name}").__doc__
