"""Test runs of the study between namespaces of this machine, over an emulated link."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wattwire.cli.main import main
from wattwire.hosts import namespaces
from wattwire.model.errors import EXIT_OK, MissingError
from wattwire.rig.agent import find_agent
from wattwire.rig.emulator import find_emulator
from wattwire.store import Campaign

ROOT = Path(__file__).resolve().parents[3]
SMOKE = (
    "run", str(ROOT / "studies" / "over-a-link"), "--preset", "smoke", "--look", "--yes", "--plain",
    "--rig", str(ROOT / "rigs" / "three.toml"),
)  # fmt: skip
ROUND_TRIP_MIN_US = {"native": 0, "lossless-20ms": 40_000, "lte": 0}
"""Twice the delay of each link. That of LTE has jitter, so it has no such bound."""

pytestmark = [pytest.mark.slow]


@pytest.fixture(autouse=True)
def _requirements() -> None:
    try:
        find_agent()
        find_emulator()
        namespaces.user_namespace()
        namespaces.require_tap_devices()
    except MissingError as error:
        pytest.skip(str(error))


def test_a_run_over_a_link_has_its_delay_its_scheduler_and_costs_of_each_host(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "campaign"
    cells = ["--only", "cell=udp/python,network=lossless-20ms"]
    assert main([*SMOKE, *cells, "--campaign", str(folder)]) == EXIT_OK, capsys.readouterr().out
    assert check_runs(folder) == {("udp/python", "lossless-20ms")}
    (document,) = (json.loads(path.read_text()) for path in folder.glob("runs/*/run.json"))
    without_permission = document["link_scheduler"] != "SCHED_FIFO"
    page = (folder / "report" / "index.html").read_text()
    assert ("lacked the permission for SCHED_FIFO" in page) == without_permission
    lines = (folder / "report" / "tables" / "costs-by-host.csv").read_text().splitlines()
    hosts = {line.split(",")[0]: line.split(",")[1] for line in lines[1:]}
    assert hosts == {"robot": "ping", "edge": "pong"}


@pytest.mark.matrix
def test_every_cell_has_a_valid_run_over_every_network(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "campaign"
    assert main([*SMOKE, "--campaign", str(folder)]) == EXIT_OK, capsys.readouterr().out
    valid = check_runs(folder)
    assert {network for _, network in valid} == {*ROUND_TRIP_MIN_US}
    assert len(valid) % len(ROUND_TRIP_MIN_US) == 0


def check_runs(folder: Path) -> set[tuple[str, str]]:
    """Return the planned cells and networks, if each run is valid and has the link's delay."""
    campaign = Campaign(folder)
    planned = {
        run["run"]: (run["levels"]["cell"], run["levels"]["network"])
        for run in campaign.plan
        if not run["skipped"]
    }
    rows = {row["run"]: row for row in campaign.summary().iter_rows(named=True)}
    for run, (_, network) in planned.items():
        assert rows[run]["verdict"] == "valid"
        assert rows[run]["latency_p50_us"] >= ROUND_TRIP_MIN_US[network]
    return {*planned.values()}
