"""Test the meter against a small library with functions of NVML, as no machine here has NVML."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.sampled_meters import sampling_agent
from wattwire.model.deployment import Deployment
from wattwire.run.results import power
from wattwire.run.results.convert import quantities_frame

NAME = "nvml_energy"
SOURCE = Path(__file__).with_name("nvml.c")
Build = Callable[..., Path]

needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """Return a function that builds the library for agents, and returns the file of the energy."""

    def compile_library(*macros: str) -> Path:
        library = tmp_path / "libnvidia-ml.so.1"
        command = ["gcc", "-Wall", "-Werror", "-shared", "-fPIC", *macros]
        subprocess.run([*command, "-o", str(library), str(SOURCE)], check=True)
        monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
        energy = tmp_path / "energy"
        monkeypatch.setenv("INVENTED_ENERGY", str(energy))
        energy.write_text("5000000")
        return energy

    return compile_library


def described(folder: Path) -> Any:
    """Return the agent's description of the meter."""
    with sampling_agent(folder) as agent:
        return next(meter for meter in agent.hello["meters"] if meter["name"] == NAME)


@needs_compiler
def test_the_counter_of_each_gpu_is_a_series_outside_of_the_package(
    build: Build, tmp_path: Path
) -> None:
    energy = build()
    path = tmp_path / "readings.bin"
    with sampling_agent(tmp_path / "state") as agent:
        agent.request("sample_start", path=str(path), tick_hz=10, meters=[NAME], subjects={})
        energy.write_text("5000700")
        time.sleep(1.5)
        energy.unlink()
        time.sleep(1.5)
        energy.write_text("100")
        reply = agent.request("sample_stop")
    (series,) = reply["series"]
    assert (series["subject"], series["scope"], series["unit"]) == ("gpu-0", "gpu", "uj")
    assert series["info"]["name"] == "Invented GPU 1"
    # The card vanished, and then its driver was loaded again.
    assert series["info"]["lost"] >= 2
    values = quantities_frame("run", Deployment(()), path, reply["series"])["value"].to_list()
    assert values[0] == 5_000_000_000.0 and values[-1] == 5_000_700_000.0
    assert not power.sources(reply["series"])


@needs_compiler
def test_a_gpu_without_a_counter_is_named(build: Build, tmp_path: Path) -> None:
    build()
    meter = described(tmp_path / "state")
    assert meter["state"] == "present" and not meter["default"]
    assert meter["info"]["gpus"] == {"gpu-0": "Invented GPU 1"}
    assert "no energy counter" in meter["info"]["refused"]["gpu-1"]


@needs_compiler
@pytest.mark.parametrize(
    ("macro", "reason"),
    [
        ("-DENERGY=3", "no energy counter; Volta and newer ones have"),
        ("-DENERGY=4", "no right to the GPU"),
        ("-DCOUNT=0", "the NVIDIA driver has no GPU"),
        ("-DINIT=9", "the NVIDIA driver is not loaded"),
        ("-DINIT=18", "different versions"),
        ("-DINIT=77", "nvmlInit_v2: NVML refuses (error 77)"),
        ("-DWITHOUT_COUNTER", "has no nvmlDeviceGetTotalEnergyConsumption"),
    ],
)
def test_an_absent_counter_has_its_reason(
    build: Build, tmp_path: Path, macro: str, reason: str
) -> None:
    build(macro)
    meter = described(tmp_path / "state")
    assert meter["state"] == "absent" and reason in meter["reason"]


def test_a_machine_without_the_library_has_no_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_text("no library")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    meter = described(tmp_path / "state")
    assert meter["state"] == "absent"
    assert "the NVIDIA driver is not installed" in meter["reason"]
