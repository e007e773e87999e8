"""Test that `doctor` names the source of energy of boards from trees of their files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from wattwire.cli.main import main
from wattwire.model.errors import EXIT_OK, EXIT_USAGE, MissingError
from wattwire.rig.agent import find_agent

BOARDS = Path(__file__).with_name("fixtures") / "boards"
NOTHING = "nothing here measures energy"


def told(capsys: pytest.CaptureFixture[str], folder: Path, code: int = EXIT_OK) -> str:
    try:
        find_agent()
    except MissingError as reason:
        pytest.skip(str(reason))
    assert main(["doctor", "--tree", str(folder)]) == code
    captured = capsys.readouterr()
    return " ".join((captured.out + captured.err).split())


@pytest.mark.parametrize(
    ("board", "name", "source"),
    [
        ("jetson", "NVIDIA Jetson Orin Nano Developer Kit", "hwmon measures energy here"),
        ("pi4", "Raspberry Pi 4 Model B", NOTHING),
        ("pi5", "Raspberry Pi 5 Model B", NOTHING),
        ("laptop", "LENOVO 20KHCTO1WW", "powercap measures energy here"),
        ("virtual-machine", "QEMU Standard PC", NOTHING),
    ],
)
def test_each_board_has_its_name_and_its_source(capsys, board: str, name: str, source: str) -> None:
    text = told(capsys, BOARDS / board)
    assert name in text and source in text
    assert "--meter watts_up=/dev/ttyUSB0" in text


@pytest.mark.parametrize(
    ("board", "remedy"),
    [
        ("pi4", "it has no sensor of its power"),
        ("pi4", "INA226 or INA238 with a shunt of 10 mΩ into the 5 V line"),
        ("pi5", "they are parts and no source of energy; its meter: rpi_pmic"),
        ("pi5", "INA226 or INA238 with a shunt of 10 mΩ into the 5 V line"),
        ("virtual-machine", "unless its host passes them on"),
    ],
)
def test_a_board_without_a_source_has_a_remedy(capsys, board: str, remedy: str) -> None:
    assert remedy in told(capsys, BOARDS / board)


def test_the_meter_of_a_board_is_not_that_of_another(capsys) -> None:
    assert "its meter: rpi_pmic" not in told(capsys, BOARDS / "pi4")


def test_a_laptop_without_counters_has_its_battery(capsys, tmp_path: Path) -> None:
    shutil.copytree(BOARDS / "laptop", tmp_path / "laptop")
    shutil.rmtree(tmp_path / "laptop" / "0" / "sys" / "class" / "powercap")
    assert "battery_power measures energy here" in told(capsys, tmp_path / "laptop")


def test_a_folder_without_a_tree_is_refused(capsys, tmp_path: Path) -> None:
    assert "found no folder 0" in told(capsys, tmp_path, EXIT_USAGE)
