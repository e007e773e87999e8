"""Every cell keeps the contract, also in pairs with the other languages of its middleware.

The loopback cells have the whole suite in contract/conformance/tests. One check at a time: ROS
nodes of two checks would share /dev/shm, where Fast DDS may hang or crash.
"""

from __future__ import annotations

import pytest

from wattwire.catalog import Catalog

CELLS = [cell for cell in Catalog().cells if not cell.startswith("loopback/")]


@pytest.mark.slow
@pytest.mark.parametrize("cell", CELLS)
def test_the_cell_keeps_the_contract(cli, cell):
    result = cli("check", cell)
    if f"{cell}: absent: " in result.out:
        pytest.skip(result.out[result.out.index(f"{cell}: absent: ") :].strip()[:300])
    assert result.code == 0, result.out[-4000:] + result.err
    assert "every clause that could be tested holds" in result.out
    assert " 0 failed" in result.out
