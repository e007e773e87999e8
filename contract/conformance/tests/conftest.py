"""Cells that test kits, built once for all tests of the suite, and a file in /dev/shm."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from contract.conformance import CellUnderTest
from contract.conformance.leftovers.shared_memory import SHARED_MEMORY
from contract.conformance.repository import missing_tools, proving_cell


@pytest.fixture(scope="session")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], CellUnderTest]:
    """Return the cell that tests the kit of a language; skip if its tools are absent."""
    built: dict[str, CellUnderTest] = {}

    def cell(language: str) -> CellUnderTest:
        if missing := missing_tools(language):
            pytest.skip(f"{', '.join(missing)}: not on PATH")
        if language not in built:
            built[language] = proving_cell(language, tmp_path_factory.mktemp(language))
        return built[language]

    return cell


@pytest.fixture
def segment() -> Iterator[Path]:
    """Yield the path of a file in /dev/shm. The file and its lock are removed after the test."""
    path = Path(SHARED_MEMORY) / f"wattwire-suite-{os.getpid()}"
    if not path.parent.is_dir():
        pytest.skip("this machine has no /dev/shm")
    yield path
    for left in (path, path.with_name(f"{path.name}_lock")):
        left.unlink(missing_ok=True)
