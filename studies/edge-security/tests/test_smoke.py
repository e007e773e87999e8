"""Test the preset `smoke` between namespaces of this machine: is the security proved?"""

from __future__ import annotations

from pathlib import Path

import pytest

from wattwire.cli.main import main
from wattwire.hosts import namespaces
from wattwire.model.errors import EXIT_OK, MissingError
from wattwire.rig.agent import find_agent
from wattwire.rig.emulator import find_emulator
from wattwire.store import Campaign

ROOT = Path(__file__).resolve().parents[3]
STUDY = ROOT / "studies" / "edge-security"
SMOKE = (
    "run", str(STUDY), "--preset", "smoke", "--look", "--yes", "--plain",
    "--rig", str(ROOT / "rigs" / "three.toml"),
)  # fmt: skip

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


def check(folder: Path) -> set[str]:
    """Check the runs of a campaign and their proofs; return the cells that were measured."""
    campaign = Campaign(folder)
    rows = list(campaign.rows())
    campaign.close()
    measured = set()
    for row in rows:
        assert row["verdict"] == "valid", row
        if row.get("control") != "proof":
            continue
        cell, level = row["factor.cell"], row["factor.settings.security"]
        measured.add(cell)
        if level == "on":
            assert (row["uninvited_received"], row["uninvited_delivered"]) == (0, 0), row
            assert row["fill_on_link"] == 0, row
        else:
            assert row["fill_on_link"] > 0, row
    assert len(rows) == 4 * len(measured)
    return measured


def test_the_security_of_dds_is_proved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    only = ["--only", "cell=cyclonedds/cpp"]
    assert main([*SMOKE, *only, "--campaign", str(tmp_path / "c")]) == EXIT_OK, capsys.readouterr()
    assert check(tmp_path / "c") <= {"cyclonedds/cpp"}


@pytest.mark.matrix
def test_the_security_of_every_cell_is_proved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*SMOKE, "--campaign", str(tmp_path / "c")]) == EXIT_OK, capsys.readouterr()
    assert check(tmp_path / "c")
