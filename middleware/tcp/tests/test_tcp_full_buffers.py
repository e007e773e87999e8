"""Concurrent calls whose requests and replies are larger than the kernel's buffers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.conformance.cell import CellUnderTest
from contract.conformance.group import pair
from contract.conformance.scenario import Bench
from contract.conformance.spec import open_loop
from tests.built_cells import built_cells

CELLS = ("tcp/cpp", "tcp/python", "tcp/rust")
MANY_AT_ONCE = {
    **open_loop(8, 1), "payload.bytes": 2_000_000, "outstanding_max": 4,
    "settings.receive_buffer_bytes": 16_384, "settings.send_buffer_bytes": 16_384,
}  # fmt: skip


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, CellUnderTest]]:
    with built_cells(CELLS, tmp_path_factory.mktemp("tcp")) as built:
        yield built


@pytest.mark.parametrize("name", CELLS)
def test_a_client_reads_replies_while_it_waits_to_send(
    cells: dict[str, CellUnderTest], tmp_path: Path, name: str
) -> None:
    # The server sends a reply of 2 MB and reads no request meanwhile. If the client read no reply
    # while it sends the next request, both would wait until the timeout.
    members = pair(cells[name], cells[name], "service", MANY_AT_ONCE)
    assert Bench(cells[name], tmp_path, ()).whole_run("service", members=members) == []
