"""Every cell keeps the contract, also in pairs with the other languages of its middleware.

The loopback cells have the whole suite in contract/conformance/tests. One check at a time: ROS
nodes of two checks would share /dev/shm, where Fast DDS may hang or crash.
"""

from __future__ import annotations

import functools
import itertools

import pytest

from tests.end_to_end.conftest import Cli
from wattwire.catalog import Catalog

CELLS = [cell for cell in Catalog().cells if not cell.startswith("loopback/")]


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """What is said of a middleware's cells, checked together: each pair of them once."""
    cli = Cli(tmp_path_factory.mktemp("check"))
    return functools.cache(
        lambda middleware: cli("check", *(c for c in CELLS if c.startswith(f"{middleware}/")))
    )


def section(out: str, cell: str) -> list[str]:
    """The lines that `check` prints of a cell."""
    lines = out.splitlines()
    begins = [at for at, line in enumerate(lines) if line.split(":")[0] == cell]
    assert len(begins) == 1, f"{cell} is named {len(begins)} times in: {out[-4000:]}"
    said = itertools.takewhile(lambda line: line.startswith(" "), lines[begins[0] + 1 :])
    return [lines[begins[0]], *said]


@pytest.mark.slow
@pytest.mark.parametrize("cell", CELLS)
def test_the_cell_keeps_the_contract(checked, cell):
    result = checked(cell.partition("/")[0])
    first, *said = section(result.out + result.err, cell)
    if "absent: " in first:
        pytest.skip(first)
    assert " 0 failed" in said[-1], "\n".join(said)
    assert result.code == 0, result.out[-4000:] + result.err
    assert "every clause that could be tested holds" in result.out
