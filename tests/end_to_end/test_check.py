"""Every cell keeps the contract, also in pairs with the other languages of its middleware.

Most of a check is waiting, so several run side by side; each cell is still a test of its own. The
loopback cells have the whole suite in contract/conformance/tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tests.end_to_end.conftest import Cli, Result
from wattwire.catalog import Catalog

AT_ONCE = 3
CELLS = [cell for cell in Catalog().cells if not cell.startswith("loopback/")]


@pytest.fixture(scope="module")
def checks(tmp_path_factory, request) -> Iterator[dict[str, Future[Result]]]:
    """The check of each chosen cell, under way."""
    chosen = [item.callspec.params["cell"] for item in request.session.items
              if item.parent is request.node and hasattr(item, "callspec")]  # fmt: skip
    cli = Cli(tmp_path_factory.mktemp("check"))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {cell: pool.submit(cli, "check", cell) for cell in chosen}
        pool.shutdown(wait=True, cancel_futures=True)


@pytest.mark.slow
@pytest.mark.parametrize("cell", CELLS)
def test_the_cell_keeps_the_contract(checks, cell):
    result = checks[cell].result()
    if f"{cell}: absent: " in result.out:
        pytest.skip(result.out[result.out.index(f"{cell}: absent: ") :].strip()[:300])
    assert result.code == 0, result.out[-4000:] + result.err
    assert "every clause that could be tested holds" in result.out
    assert " 0 failed" in result.out
