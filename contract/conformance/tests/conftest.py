"""Loopback cells, built once for all tests of the suite."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from contract.conformance import CellUnderTest
from contract.conformance.repository import ROOT, loopback_cell, read_toml


@pytest.fixture(scope="session")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], CellUnderTest]:
    """Gives the loopback cell of a language; skips where its compiler is absent."""
    built: dict[str, CellUnderTest] = {}

    def cell(language: str) -> CellUnderTest:
        wanted = read_toml(ROOT / "languages" / language / "language.toml")["requires"]
        if lacking := [name for name in wanted if shutil.which(name) is None]:
            pytest.skip(f"{', '.join(lacking)} is not on PATH")
        if language not in built:
            built[language] = loopback_cell(language, tmp_path_factory.mktemp(language))
        return built[language]

    return cell
