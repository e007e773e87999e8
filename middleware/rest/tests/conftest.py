"""A fixture that builds the cell named by the test's parameter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.conformance.cell import CellUnderTest
from tests.built_cells import built_cells


@pytest.fixture
def cell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CellUnderTest]:
    with built_cells([request.param], tmp_path) as cells:
        yield cells[request.param]
