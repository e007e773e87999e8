"""Test that cells satisfy the contract, alone and in pairs with other languages.

`make test` checks a cell of each middleware and its pair with one other language. `make test-all`
checks every cell and every pair. contract/conformance/tests runs the whole suite on the cells that
test kits. Only one check runs at a time, because ROS nodes of two checks would share /dev/shm,
where Fast DDS may hang or crash.
"""

from __future__ import annotations

import functools
import itertools

import pytest

from contract.conformance.repository import kit_languages, proving_middleware
from tests.end_to_end.conftest import Cli
from wattwire.catalog import Catalog, Cell
from wattwire.catalog.home import home
from wattwire.hosts.namespaces import user_namespace
from wattwire.model.errors import MissingError
from wattwire.rig.builds import require

PROVING = {f"{proving_middleware(language)}/{language}" for language in kit_languages()}
ALL = [Catalog().cell(name) for name in Catalog().cells]
CELLS = [cell for cell in ALL if cell.name not in PROVING]
MIDDLEWARE = sorted({cell.middleware.name for cell in ALL})


def lacks_a_requirement(cell: Cell) -> bool:
    try:
        require(cell.document["requires"], cell.name)
    except MissingError:
        return True
    return False


def representatives(middleware: str) -> list[Cell]:
    """Return two cells with the same wire format that build quickly.

    Python's cell is first, because it needs no build. A cell whose requirements are not installed,
    such as a GPU, represents its middleware only if all its cells lack them.
    """
    quick = [
        cell
        for cell in ALL
        if cell.middleware.name == middleware and "heavy" not in cell.document["build"]
    ]
    light = [cell for cell in quick if not lacks_a_requirement(cell)] or quick
    ordered = sorted(light, key=lambda cell: (cell.language != "python", cell.name))
    spoken = {cell.document.get("wire") for cell in ordered[:1]}
    return [cell for cell in ordered if cell.document.get("wire") in spoken][:2]


CHOSEN = {cell.name for middleware in MIDDLEWARE for cell in representatives(middleware)[-1:]}
"""The compiled cell if there is one, because the suite starts a hundred nodes, and Python nodes
then need most of a core. Python's cells are tested in the pairs below.
"""


@pytest.fixture(scope="module")
def cli_of_check(tmp_path_factory):
    return Cli(tmp_path_factory.mktemp("check"))


@pytest.fixture(scope="module")
def checked(cli_of_check):
    """Return a function that checks all cells of a middleware, with each pair once."""
    return functools.cache(
        lambda middleware: cli_of_check(
            "check", *(cell.name for cell in ALL if cell.middleware.name == middleware)
        )
    )


def section(out: str, cell: str) -> list[str]:
    """Return the lines that `check` prints for a cell."""
    lines = out.splitlines()
    begins = [at for at, line in enumerate(lines) if line.split(":")[0] == cell]
    assert len(begins) == 1, f"{cell} is named {len(begins)} times in: {out[-4000:]}"
    said = itertools.takewhile(lambda line: line.startswith(" "), lines[begins[0] + 1 :])
    return [lines[begins[0]], *said]


def skip_if_absent(first: str) -> None:
    """Skip if a requirement of the cell is not installed; fail if its build fails."""
    if "absent: " in first:
        assert "could not be built" not in first, first
        pytest.skip(first)


def holds(result, cell: str) -> None:
    first, *said = section(result.out + result.err, cell)
    skip_if_absent(first)
    assert " 0 failed" in said[-1], "\n".join(said)
    assert result.code == 0, result.out[-4000:] + result.err
    assert "every tested clause passes" in result.out


@pytest.mark.slow
@pytest.mark.parametrize("cell", [cell.name for cell in CELLS if cell.name in CHOSEN])
def test_a_cell_of_each_middleware_keeps_the_contract(cli_of_check, cell):
    holds(cli_of_check("check", cell, "--no-pairs"), cell)


@pytest.mark.slow
@pytest.mark.parametrize("middleware", MIDDLEWARE)
def test_two_languages_of_each_middleware_understand_each_other(cli_of_check, middleware):
    names = [cell.name for cell in representatives(middleware)]
    if len(names) < 2:
        pytest.skip(f"{middleware} has one cell that is quickly built: {', '.join(names)}")
    result = cli_of_check("check", *names, "--clause", "pair")
    first = section(result.out + result.err, names[0])
    second = section(result.out + result.err, names[1])
    for said in (first, second):
        skip_if_absent(said[0])
    # Each pair is listed with its first cell, in both directions.
    assert first[-1].startswith("  2 passed, 0 failed"), "\n".join(first)
    assert result.code == 0, result.out[-4000:] + result.err


@pytest.mark.slow
@pytest.mark.matrix
@pytest.mark.parametrize("cell", [cell.name for cell in ALL])
def test_the_cell_keeps_the_contract(checked, cell):
    holds(checked(cell.partition("/")[0]), cell)


@pytest.fixture(scope="module")
def clocks_rig():
    """Return the rig file of two namespaces whose clocks differ by 1,000 s."""
    try:
        user_namespace()
    except MissingError as error:
        pytest.skip(str(error))
    return str(home() / "rigs" / "clocks.toml")


@pytest.mark.slow
def test_a_cell_keeps_the_contract_between_hosts_with_different_clocks(cli_of_check, clocks_rig):
    result = cli_of_check(
        "check", "udp/python", "loopback/python", "--pairs", "none", "--rig", clocks_rig,
        "--clause", "own-address", "--clause", "warm-up",
    )  # fmt: skip
    out = result.out + result.err
    assert "0 failed" in section(out, "udp/python")[-1] and result.code == 0, out
    assert " passed" in section(out, "udp/python")[-1]
    assert "loopback works only within one host" in out


@pytest.mark.slow
@pytest.mark.matrix
@pytest.mark.parametrize("middleware", MIDDLEWARE)
def test_two_languages_understand_each_other_between_hosts(cli_of_check, clocks_rig, middleware):
    names = [cell.name for cell in representatives(middleware)]
    if len(names) < 2:
        pytest.skip(f"{middleware} has one cell that is quickly built: {', '.join(names)}")
    result = cli_of_check("check", *names, "--clause", "pair", "--rig", clocks_rig)
    first = section(result.out + result.err, names[0])
    if "works only within one host" in first[0]:
        pytest.skip(first[0])
    skip_if_absent(first[0])
    assert first[-1].startswith("  2 passed, 0 failed"), "\n".join(first)
    assert result.code == 0, result.out[-4000:] + result.err
