"""UDPROS: whole runs of the C++ cell with `transport = udp`."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from contract.conformance.cell import CellUnderTest
from contract.conformance.group import Group, pair
from contract.conformance.process import NodeProcess
from contract.conformance.spec import open_loop
from contract.conformance.suite import run_suite, scenarios_for

CPP = pytest.mark.parametrize("cell", ["ros1/cpp"], indirect=True)
MESSAGES = 10
PAYLOAD_BYTES = 4096
"""Bytes of a payload that needs 3 datagrams. The receive buffer holds those of all messages, so a
subscriber that waits for the CPU loses none."""
pytestmark = pytest.mark.slow


def over(cell: CellUnderTest, transport: str) -> CellUnderTest:
    return replace(cell, settings={**cell.settings, "transport": transport})


@CPP
@pytest.mark.parametrize(
    ("transport", "protocol", "ordering", "udp_sockets"),
    [("tcp", "TCPROS", "per_sender", 1), ("udp", "UDPROS", "none", 2)],
)
def test_roscpp_reports_the_requested_transport(
    cell: CellUnderTest,
    master: str,
    tmp_path: Path,
    transport: str,
    protocol: str,
    ordering: str,
    udp_sockets: int,
) -> None:
    """The kernel agrees: every node of roscpp has a UDP socket, a connection of UDPROS another."""
    changes = {**open_loop(MESSAGES, 50), "payload.bytes": PAYLOAD_BYTES}
    subject = over(cell, transport)
    with Group(tmp_path, "topic", pair(subject, subject, "topic", changes), [master]) as group:
        addresses: list[str] = []
        group.run(lambda _: addresses.extend(*map(udp_addresses_of, group.receivers)))
        ready = [node.fields("READY") for node in group.nodes]
        (subscriber,) = group.receivers
        done = subscriber.fields("DONE")
    assert [line["effective"]["protocol"] for line in ready] == [protocol] * 2
    assert [line["effective"]["transport"] for line in ready] == [f"{transport}/ipv4"] * 2
    assert [line["guarantee"]["ordering"] for line in ready] == [ordering] * 2
    assert addresses == ["127.0.0.1"] * udp_sockets
    assert (done["received"], done["corrupt"], done["foreign"]) == (MESSAGES, 0, 0)


@CPP
@pytest.mark.matrix
def test_the_cell_passes_every_scenario_with_short_payloads_over_udpros(
    cell: CellUnderTest,
) -> None:
    """Payloads of 64 KiB exceed the receive buffer if a subscriber waits for the CPU."""
    names = [scenario.name for scenario in scenarios_for(cell, [])]
    short = [name for name in names if not name.startswith("sizes")]
    results = run_suite(over(cell, "udp"), only=short)
    assert [result for result in results if result.status == "failed"] == []
    assert sum(result.status == "passed" for result in results) > 20


def udp_addresses_of(node: NodeProcess) -> Iterator[str]:
    """Yield the local address of each UDP socket of a node."""
    folder = Path(f"/proc/{node.pid}")
    sockets = {os.readlink(link) for link in (folder / "fd").iterdir()}
    for line in (folder / "net" / "udp").read_text().splitlines()[1:]:
        columns = line.split()
        if f"socket:[{columns[9]}]" in sockets:
            address = int(columns[1].partition(":")[0], 16).to_bytes(4, "little")
            yield socket.inet_ntoa(address)
