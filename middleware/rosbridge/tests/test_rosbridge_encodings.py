"""The conformance suite on clients of each server, with each encoding."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from contract.conformance.cell import CellUnderTest
from contract.conformance.suite import run_suite
from middleware.rosbridge.tests.conftest import CLIENT
from tests.built_cells import built_cells

ROBOT = "rosbridge/rospy"
JAVASCRIPT = "rosbridge/javascript"

COMBINATIONS = [
    pytest.param("websocket", "cbor", marks=pytest.mark.matrix),
    pytest.param("websocket", "cbor-raw", marks=pytest.mark.matrix),
    pytest.param("tcp", "json", marks=pytest.mark.matrix),
    pytest.param("tcp", "cbor", marks=pytest.mark.matrix),
    ("tcp", "cbor-raw"),
    pytest.param("udp", "json", marks=pytest.mark.matrix),
    pytest.param("udp", "cbor", marks=pytest.mark.matrix),
    pytest.param("udp", "cbor-raw", marks=pytest.mark.matrix),
]
"""All servers and encodings but the default. `make test-all` checks those of the matrix."""
SCENARIOS = ("open", "closed", "reply-ack", "reply-literal", "literal", "fan-out")


@pytest.mark.slow
@pytest.mark.parametrize(("server", "encoding"), COMBINATIONS)
def test_clients_pass_over_each_server_in_each_encoding(
    cell: CellUnderTest, server: str, encoding: str
) -> None:
    subject = replace(cell, settings={**cell.settings, "server": server, "encoding": encoding})
    sizes = () if server == "udp" else ("sizes",)  # 64 KiB in base64 exceed a datagram
    results = run_suite(subject, only=[*SCENARIOS, *sizes])
    assert [result for result in results if result.status == "failed"] == []
    assert sum(result.status == "passed" for result in results) > 10


@pytest.mark.slow
@pytest.mark.matrix
@pytest.mark.parametrize("encoding", ["cbor", "cbor-raw"])
def test_a_client_in_javascript_passes_in_each_encoding(tmp_path: Path, encoding: str) -> None:
    with built_cells([JAVASCRIPT], tmp_path) as cells:
        client = cells[JAVASCRIPT]
        subject = replace(client, settings={**client.settings, "encoding": encoding})
        results = run_suite(subject, only=[*SCENARIOS, "sizes"])
    assert [result for result in results if result.status == "failed"] == []
    assert sum(result.status == "passed" for result in results) > 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("server", "encoding"),
    [("tcp", "cbor-raw"), pytest.param("udp", "cbor", marks=pytest.mark.matrix)],
)
def test_a_robot_and_a_client_pass_over_each_server(
    tmp_path: Path, server: str, encoding: str
) -> None:
    """The robot ignores both settings, which select the path between the client and the bridge."""
    with built_cells([CLIENT, ROBOT], tmp_path) as cells:
        settings = {**cells[CLIENT].settings, "server": server, "encoding": encoding}
        client, robot = (replace(cells[name], settings=settings) for name in (CLIENT, ROBOT))
        results = run_suite(client, [robot], only=["pair"])
    assert [(result.name, result.status) for result in results] == [
        ("pair[rosbridge: python -> rospy]", "passed"),
        ("pair[rosbridge: rospy -> python]", "passed"),
    ]
