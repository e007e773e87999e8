"""Fixture: a built cell of the middleware, by name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from middleware.coproc.tests.devices import BuiltCell
from wattwire.catalog import Catalog
from wattwire.cli.check_hosts import CheckHosts
from wattwire.cli.conformance import _suite, under_test
from wattwire.hosts.hosts import here
from wattwire.model.errors import MissingError
from wattwire.rig import AgentClient, Builder


@pytest.fixture(scope="module")
def built(request: pytest.FixtureRequest, tmp_path_factory) -> Iterator[BuiltCell]:
    folder = tmp_path_factory.mktemp("built")
    agent = AgentClient(folder / "agent")
    cell = Catalog().cell(f"coproc/{request.param}")
    try:
        build = Builder(agent).cell(cell)
        yield BuiltCell(cell, under_test(_suite(), build, CheckHosts(here(agent)), folder))
    except MissingError as reason:
        pytest.skip(str(reason))
    finally:
        agent.close()
