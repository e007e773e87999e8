"""Test the facts about Wi-Fi of `doctor --rig`, with radios of the kernel and a planted signal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.machine.conftest import booted
from tests.machine.suite.wifi import ACCESS_POINT, SIGNAL_DBM, STATES, STATION

pytestmark = [pytest.mark.slow, pytest.mark.matrix, pytest.mark.timeout(1500)]

LIMIT_S = 1200.0


@pytest.fixture(scope="module")
def suite(tmp_path_factory) -> Path:
    """Return the results of a machine that ran the step `wifi`."""
    return booted(tmp_path_factory.mktemp("wifi") / "machine", ["wifi"], LIMIT_S).out


def wifi(suite: Path, state: str) -> tuple[dict[str, Any], dict[tuple[str, str], dict[str, Any]]]:
    """Return what `iw` printed, and the findings of `doctor` on the network by host and check."""
    document = json.loads((suite / "wifi" / f"{state}.json").read_text())
    findings = document["findings"]
    return document, {(host, f["check"]): f for f in findings for host in f["hosts"]}


@pytest.mark.parametrize("state", STATES)
def test_doctor_has_the_power_save_of_each_wifi_device_that_iw_prints(suite, state):
    document, findings = wifi(suite, state)
    for host, device in (("robot", STATION), ("edge", ACCESS_POINT)):
        printed = document["before"][f"{device} power_save"].strip()
        finding = findings[host, "Wi-Fi power save"]
        print(finding["evidence"])
        assert finding["evidence"] == f"{device}: {printed}"
        assert (finding["state"] == "note") is printed.endswith("on")
    assert document["before"][f"{STATION} power_save"].strip() == f"Power save: {state}"


@pytest.mark.parametrize("state", STATES)
def test_doctor_has_the_planted_signal_and_the_bitrate_that_iw_prints(suite, state):
    document, findings = wifi(suite, state)
    evidence = findings["robot", "Wi-Fi rate"]["evidence"]
    print(evidence)
    facts = evidence.removeprefix(f"{STATION}: ").split(", ")
    assert f"signal: {SIGNAL_DBM} dBm" in facts
    assert any(fact.startswith("tx bitrate: ") for fact in facts)
    printed = {
        line.strip()
        for time in ("before", "after")
        for line in document[time][f"{STATION} link"].splitlines()
    }
    assert set(facts) <= printed
