"""Fixtures: a cell of ROS 1, and a master that runs during the test."""

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


@pytest.fixture
def master(cell: CellUnderTest) -> Iterator[str]:
    """Yield the endpoint of a running master."""
    with cell.service() as endpoints:
        yield endpoints[0]
