"""Test that instructions per block are counted, and that the count does not vary."""

from __future__ import annotations

from pathlib import Path

import pytest

from middleware.coproc.tests.devices import BuiltCell, server_node, started
from wattwire.catalog import Catalog

BOARDS = [
    cell.name.partition("/")[2]
    for cell in (Catalog().cell(name) for name in Catalog().cells if name.startswith("coproc/"))
    if cell.emulated
]
RUNS = 20
SPREAD_MAX = 0.001
pytestmark = pytest.mark.slow


@pytest.mark.matrix
@pytest.mark.parametrize("built", BOARDS, indirect=True)
def test_instructions_per_block_of_20_runs_differ_by_less_than_a_thousandth(
    built: BuiltCell, tmp_path: Path
) -> None:
    counts = []
    for _ in range(RUNS):
        changes = {"settings__count_instructions": True}
        with started(built.under_test, tmp_path, **changes) as device:
            effective = device.effective
            assert effective["counted_blocks"] == 87  # a piece of 1,440 bytes, less its frame
            counts.append(effective["counted_instructions"] / effective["counted_blocks"])
    print(f"{built.cell.name}: {min(counts):.2f} to {max(counts):.2f} instructions per block")
    # FIPS 197 needs 16 bytes × 10 rounds of substitutions, so fewer instructions are impossible.
    assert min(counts) > 160
    assert (max(counts) - min(counts)) / min(counts) < SPREAD_MAX, counts


@pytest.mark.parametrize("built", ["scalar"], indirect=True)
def test_a_process_counts_no_instructions(built: BuiltCell, tmp_path: Path) -> None:
    changes = {"settings__count_instructions": True}
    with server_node(built.under_test, tmp_path, **changes) as node:
        assert node.wait_exit(20) == 3
        assert "settings.count_instructions true" in node.fields("ERROR")["reason"]
