"""Test that cells satisfy the contract.

`make test` checks a run of a cell of each kind. `make test-full` checks a cell of each middleware,
and test_check_pairs.py its pair with one other language. `make test-all` checks every cell and
every pair. contract/conformance/tests runs the whole suite on the cells that test kits.
"""

from __future__ import annotations

import functools

import pytest

from contract.conformance.repository import kit_languages, proving_middleware
from tests.end_to_end.checks import ALL, MIDDLEWARE, check, holds, representatives
from tests.end_to_end.conftest import Cli

PROVING = {f"{proving_middleware(language)}/{language}" for language in kit_languages()}
CELLS = [cell for cell in ALL if cell.name not in PROVING]

CHOSEN = {cell.name for middleware in MIDDLEWARE for cell in representatives(middleware)[-1:]}
"""The compiled cell if there is one, because the suite starts a hundred nodes, and Python nodes
then need most of a core. Python's cells are tested in test_check_pairs.py.
"""

KINDS = ("udp/cpp", "tcp/rust", "mqtt/python", "ros2/python", "grpc/python", "rest/python")
"""Cells of sockets, a broker, discovery and calls that need few packages, in three languages."""
OF_A_RUN = ("command-line", "lines", "open", "closed", "terminated")
"""Scenarios of the suite; all of them take one to two minutes for such a cell."""


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """Return a function that checks all cells of a middleware, with each pair once."""
    cli = Cli(tmp_path_factory.mktemp("check"))
    return functools.cache(
        lambda middleware: check(
            cli, *(cell.name for cell in ALL if cell.middleware.name == middleware)
        )
    )


@pytest.mark.slow
@pytest.mark.parametrize("cell", KINDS)
def test_a_cell_of_each_kind_keeps_the_contract_in_a_usual_run(cli, cell):
    chosen = [word for name in OF_A_RUN for word in ("--clause", name)]
    holds(check(cli, cell, "--no-pairs", *chosen), cell)


@pytest.mark.slow
@pytest.mark.parametrize("cell", [cell.name for cell in CELLS if cell.name in CHOSEN])
def test_a_cell_of_each_middleware_keeps_the_contract(cli, cell):
    holds(check(cli, cell, "--no-pairs"), cell)


@pytest.mark.slow
@pytest.mark.matrix
@pytest.mark.parametrize("cell", [cell.name for cell in ALL])
def test_the_cell_keeps_the_contract(checked, cell):
    holds(checked(cell.partition("/")[0]), cell)
