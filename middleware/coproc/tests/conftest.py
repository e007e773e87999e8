"""Fixture: a built cell of the middleware, by name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from middleware.coproc.tests.devices import BuiltCell
from tests.built_cells import built_cells
from wattwire.catalog import Catalog


@pytest.fixture(scope="module")
def built(request: pytest.FixtureRequest, tmp_path_factory) -> Iterator[BuiltCell]:
    name = f"coproc/{request.param}"
    with built_cells([name], tmp_path_factory.mktemp("built")) as cells:
        yield BuiltCell(Catalog().cell(name), cells[name])
