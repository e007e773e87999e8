"""Choose cells for the tests of `wattwire check`, and read its output."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Cli, Result
from wattwire.catalog import Catalog, Cell
from wattwire.model.errors import MissingError
from wattwire.rig.builds import require

ALL = [Catalog().cell(name) for name in Catalog().cells]
MIDDLEWARE = sorted({cell.middleware.name for cell in ALL})
USE_FAST_DDS = {"fastdds", "ros2"}


def check(cli: Cli, *arguments: str) -> Result:
    """Run `wattwire check`, one at a time for cells that use Fast DDS.

    Fast DDS may hang or crash if nodes of two checks share /dev/shm.
    """
    use_fast_dds = any(name.partition("/")[0] in USE_FAST_DDS for name in arguments)
    with alone() if use_fast_dds else contextlib.nullcontext():
        return cli("check", *arguments)


@contextlib.contextmanager
def alone() -> Iterator[None]:
    with Path(__file__).open(encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


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
