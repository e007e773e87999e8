"""Loopback cells, built once for all tests of the suite."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from contract.conformance import CellUnderTest
from contract.conformance.repository import loopback_cell

COMPILERS = {"cpp": "g++"}


@pytest.fixture(scope="session")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], CellUnderTest]:
    """Gives the loopback cell of a language; skips where its compiler is absent."""
    built: dict[str, CellUnderTest] = {}

    def cell(language: str) -> CellUnderTest:
        compiler = COMPILERS.get(language)
        if compiler and shutil.which(compiler) is None:
            pytest.skip(f"{compiler} is not on PATH")
        if language not in built:
            built[language] = loopback_cell(language, tmp_path_factory.mktemp(language))
        return built[language]

    return cell
