"""Fixtures: the Python client of the bridge, and the endpoints of its services."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from contract.conformance.cell import CellUnderTest
from tests.built_cells import built_cells

CLIENT = "rosbridge/python"


@dataclass(frozen=True)
class Services:
    """The endpoints of a running master, and of the servers of a running bridge."""

    master: str
    websocket: str
    tcp: str
    udp: str


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CellUnderTest]:
    with built_cells([CLIENT], tmp_path_factory.mktemp("built")) as cells:
        yield cells[CLIENT]


@pytest.fixture(scope="module")
def services(cell: CellUnderTest) -> Iterator[Services]:
    with cell.service() as endpoints:
        yield Services(*endpoints)
