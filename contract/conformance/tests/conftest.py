"""Cells that test kits, built once for all tests of the suite."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from contract.conformance import CellUnderTest
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
