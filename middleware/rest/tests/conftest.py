"""A fixture that builds the cell named by the test's parameter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.conformance.cell import CellUnderTest
from wattwire.catalog import Catalog
from wattwire.cli.check_hosts import CheckHosts
from wattwire.cli.conformance import _suite, under_test
from wattwire.hosts.hosts import here
from wattwire.model.errors import MissingError
from wattwire.rig import AgentClient, Builder


@pytest.fixture
def cell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CellUnderTest]:
    agent = AgentClient(tmp_path / "agent")
    try:
        build = Builder(agent).cell(Catalog().cell(request.param))
        yield under_test(_suite(), build, CheckHosts(here(agent)), tmp_path)
    except MissingError as reason:
        pytest.skip(str(reason))
    finally:
        agent.close()
