"""The conformance suite on clients of each server, with each encoding."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contract.conformance.cell import CellUnderTest
from contract.conformance.suite import run_suite

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
