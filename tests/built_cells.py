"""Built cells, for the tests of a middleware's folder."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from contract.conformance.cell import CellUnderTest
from wattwire.catalog import Catalog
from wattwire.cli.check_hosts import CheckHosts
from wattwire.cli.conformance import suite, under_test
from wattwire.hosts.hosts import here
from wattwire.model.errors import MissingError
from wattwire.rig import AgentClient, Builder, CellBuild


@contextlib.contextmanager
def built_cells(
    names: Sequence[str],
    folder: Path,
    change: Callable[[CellBuild], CellBuild] = lambda build: build,
) -> Iterator[dict[str, CellUnderTest]]:
    """Yield name → cell, ready for the conformance suite; `folder` is for their files.

    `change` returns what replaces a build, for example with a fault in a service. The test is
    skipped with the reason if this machine cannot build one of the cells.
    """
    agent = AgentClient(folder / "agent")
    try:
        builder, hosts, catalog = Builder(agent), CheckHosts(here(agent)), Catalog()
        builds = {name: change(builder.cell(catalog.cell(name))) for name in names}
        yield {name: under_test(suite(), build, hosts, folder) for name, build in builds.items()}
    except MissingError as reason:
        pytest.skip(str(reason))
    finally:
        agent.close()
