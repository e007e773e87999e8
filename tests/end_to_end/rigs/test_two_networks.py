"""Test that runs between hosts with two networks use that of the study, or are invalid.

The hosts have ssh servers. The link of the study has a delay, and the other network has none, so a
message that takes both ways arrives first by the wrong one.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tools import sshd_rig
from wattwire.cli.main import main
from wattwire.hosts import namespaces
from wattwire.model.errors import MissingError
from wattwire.rig.emulator import find_emulator
from wattwire.run.machine_description import MACHINE_ID
from wattwire.store import Campaign

pytestmark = [pytest.mark.quiet, pytest.mark.slow]

LINK, DELAY_US = "lossless-20ms", 20_000
OTHER_DEVICE = sshd_rig.DEVICE
USAGE_ERROR = 2
RATE_HZ, MESSAGES, PAYLOAD_BYTES = 100, 100, 256
"""Headers of fewer messages are fewer bytes than those of the agents, which are subtracted."""
CELLS = (
    "ros2/python", "cyclonedds/python", "zenoh/python", "mqtt/python", "udp/python", "tcp/python",
)  # fmt: skip
COMPILED = (
    "ros2/cpp-rcl",
    "cyclonedds/cpp",
    "zenoh/rust",
    "udp/cpp",
    "udp/rust",
    "tcp/cpp",
    "tcp/go",
)
STUDY = f"""
title = "Two networks"
[factors]
cell = CELLS
[fixed]
pattern = "topic"
network = "{LINK}"
placement = "apart"
rate_hz = {RATE_HZ}
payload_bytes = {PAYLOAD_BYTES}
SETTINGS
[plan]
blocks = 1
controls = false
duration_s = 1.0
baseline_s = 0.05
linger_ms = 500
retries = 2
quiet_wait_s = 0.0
ready_timeout_s = 30.0
[validity]
other_load_max = 10.0
steal_max = 10.0
missed_ticks_max = 1.1
stall_max_ms = 60000.0
"""
Measure = Callable[..., list[dict[str, Any]]]


@dataclass(frozen=True)
class Machines:
    """A rig file, and the processes that hold the namespaces of its hosts."""

    path: Path
    pids: Mapping[str, int]


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """Yield a rig of two hosts that a link and a faster network join."""
    folder = tmp_path_factory.mktemp("two-networks")
    names = sshd_rig.host_names(2)
    try:
        find_emulator()
        namespaces.require_tap_devices()
        with sshd_rig.hosts(names, folder / "ssh", [LINK]) as pids:
            path = folder / "rig.toml"
            path.write_text(sshd_rig.rig_text(names, "ssh/ssh_config", [LINK], False))
            yield Machines(path, pids)
    except MissingError as error:
        pytest.skip(str(error))


@pytest.fixture
def measured(rig: Machines, tmp_path: Path) -> Measure:
    """Return a function that measures cells; it returns the row and document of each attempt."""

    def measure(*cells: str, settings: str = "", resumed: int = 0) -> list[dict[str, Any]]:
        study, folder = tmp_path / "study.toml", tmp_path / "campaign"
        quoted = ", ".join(f'"{cell}"' for cell in cells)
        study.write_text(STUDY.replace("CELLS", f"[{quoted}]").replace("SETTINGS", settings))
        options = ["--plain", "--no-report"]
        main(["run", str(study), "--rig", str(rig.path), "--campaign", str(folder), *options])
        for _ in range(resumed):
            main(["run", "--resume", str(folder), *options])
        campaign = Campaign(folder)
        try:
            rows = campaign.rows()
            return [{**row, **campaign.run(f"{row['run']}-{row['attempt']}")} for row in rows]
        finally:
            campaign.close()

    return measure


def last_attempts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the last attempt of each run.

    On a busy machine the harness may fail an attempt, for example by a GO that arrives late. Only
    such an attempt is repeated.
    """
    runs: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        runs.setdefault(row["run"], []).append(row)
    repeated = [row for attempts in runs.values() for row in attempts[:-1]]
    assert {row["verdict"] for row in repeated} <= {"failed"}, [row["reasons"] for row in repeated]
    return [attempts[-1] for attempts in runs.values()]


@pytest.mark.parametrize(
    ("cells", "required"),
    [
        (CELLS, {"zenoh/python", "mqtt/python", "udp/python", "tcp/python"}),
        pytest.param(COMPILED, {"udp/cpp", "tcp/cpp"}, marks=pytest.mark.matrix),
    ],
)
def test_every_middleware_uses_the_network_of_the_study(
    measured: Measure, cells: tuple[str, ...], required: set[str]
) -> None:
    rows = last_attempts(measured(*cells))
    assert {row["cell"] for row in rows} >= required
    for row in rows:
        assert row["verdict"] == "valid", row["reasons"]
        assert row["received_unique"] == row["sent"] > MESSAGES // 2
        assert row["latency_p50_us"] > DELAY_US, row["cell"]


@pytest.mark.parametrize(
    ("cell", "setting"),
    [
        ("ros2/python", '"settings.discovery" = "subnet"'),
        ("cyclonedds/python", f'"settings.interface" = "{OTHER_DEVICE}"'),
    ],
)
def test_a_run_on_another_network_is_invalid_and_never_repeated(
    measured: Measure, cell: str, setting: str
) -> None:
    rows = measured(cell, settings=setting, resumed=1)
    if not rows:
        pytest.skip(f"this machine lacks {cell}")
    (row,) = last_attempts(rows)
    assert row["verdict"] == "invalid" and row["received_unique"] > 0
    (reason,) = (r for r in row["reasons"] if r["code"] == "other_interface")
    assert f"({row['sent'] * PAYLOAD_BYTES} bytes)" in reason["detail"]
    assert f"by {OTHER_DEVICE} (" in reason["detail"]


def test_a_campaign_knows_the_machines_of_its_hosts_and_refuses_another_one(
    measured: Measure, rig: Machines, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not MACHINE_ID.exists():
        pytest.skip("this machine has no machine-id, so its namespaces have none")
    measured("udp/python", resumed=1)
    campaign = tmp_path / "campaign"
    before = MACHINE_ID.read_bytes()
    hosts = json.loads((campaign / "machine.json").read_text())["hosts"]
    assert [*hosts] == ["local", *rig.pids]
    assert len({entry["boot"] for entry in hosts.values()}) == 1
    # The host's file of its namespace, not that of this machine.
    write = ["nsenter", "--mount", "--target", str(rig.pids["edge"]), "--", "tee", str(MACHINE_ID)]
    subprocess.run(write, input=b"of another machine", stdout=subprocess.DEVNULL, check=True)
    capsys.readouterr()
    assert main(["run", "--resume", str(campaign), "--plain", "--no-report"]) == USAGE_ERROR
    refusal = capsys.readouterr().err
    assert "edge:machine_id" in refusal and "robot:machine_id" not in refusal
    assert MACHINE_ID.read_bytes() == before
