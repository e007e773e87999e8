"""Test that the power of a report is the emulated meter's, and that no bundle has its address."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from meters.http_plug.tests.emulator import Plug
from meters.watts_up.tests.emulator import WattsUp
from wattwire.cli.main import main
from wattwire.model.errors import EXIT_ENVIRONMENT, MissingError
from wattwire.model.outside_meters import WINDOWS_PER_READING
from wattwire.rig.agent import find_agent
from wattwire.run.results import power

pytestmark = pytest.mark.slow
RESOLUTION_W = 0.1
POWER_W = 41.3


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[WattsUp]:
    try:
        find_agent()
    except MissingError as reason:
        pytest.skip(str(reason))
    monkeypatch.chdir(tmp_path)
    # The emulated meter is ten times as fast as a meter, so a tenth of the time is enough.
    monkeypatch.setattr(power, "WINDOWS_PER_READING", WINDOWS_PER_READING / 10)
    emulated = WattsUp(lambda _: POWER_W, interval_s=0.1)
    yield emulated
    emulated.close()


def executed(*options: str, baseline: str = "6s") -> int:
    return main(["exec", *options, "--for", "3s", "--baseline", baseline, "--campaign", "c",
                 "--no-report", "--", "sleep", "60"])  # fmt: skip


def test_the_power_of_a_run_is_the_meters(meter: WattsUp, tmp_path: Path) -> None:
    assert executed("--meter", f"watts_up={meter.path}") == 0
    row = pl.read_parquet("c/summary.parquet").row(0, named=True)
    assert row["energy_source"] == "watts_up/power_input"
    for name in ("power_window_w", "power_machine_w"):
        assert row[name] == pytest.approx(POWER_W, abs=RESOLUTION_W / 2)
    machine = json.loads(Path("c/machine.json").read_text())
    assert machine["outside_meters"] == [
        {"name": "watts_up", "host": "", "window_s": 1.0, "share": 0.015, "watts": 0.3}
    ]
    assert main(["bundle", "c", "-o", "c.zip"]) == 0
    with zipfile.ZipFile("c.zip") as archive:
        texts = {name: archive.read(name) for name in archive.namelist()}
    assert any(name.endswith("meters.json") for name in texts)
    assert not [name for name, data in texts.items() if meter.path.encode() in data]


def test_a_meter_that_cannot_be_read_ends_the_campaign_before_its_first_run(
    meter: WattsUp, capsys: pytest.CaptureFixture[str]
) -> None:
    assert executed("--meter", "watts_up=/dev/null") == EXIT_ENVIRONMENT
    assert "meter watts_up at /dev/null: /dev/null is no serial device" in capsys.readouterr().err
    assert not Path("c").exists()


def test_a_plug_is_too_slow_for_seconds(meter: WattsUp) -> None:
    plug = Plug(POWER_W)
    try:
        assert executed("--meter", f"http_plug=shelly:127.0.0.1:{plug.port}") == 0
    finally:
        plug.close()
    row = pl.read_parquet("c/summary.parquet").row(0, named=True)
    assert row["energy_source"] != "http_plug/energy_input"
    assert "http_plug/energy_input: too short for this meter" in row["energy_too_short"]


def test_both_meters_cover_a_run_and_the_first_rank_is_used(
    meter: WattsUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The emulated plug counts each second, and not once per minute.
    monkeypatch.setattr(power, "WINDOWS_PER_READING", 3 / 60)
    plug = Plug(POWER_W * 1.05)
    try:
        addresses = (f"watts_up={meter.path}", f"http_plug=shelly:127.0.0.1:{plug.port}")
        options = [word for at in addresses for word in ("--meter", at)]
        # The plug's first counter comes within 2 s: 1/20 of a baseline.
        assert executed(*options, baseline="40s") == 0
    finally:
        plug.close()
    (path,) = Path("c/runs").glob("*/quantities.parquet")
    meters = set(pl.read_parquet(path)["meter"])
    assert {"watts_up", "http_plug"} <= meters
    row = pl.read_parquet("c/summary.parquet").row(0, named=True)
    assert row["energy_source"] == "watts_up/power_input"
    assert row["energy_source_second"] == "http_plug/energy_input"
    bound_w = 0.1 * POWER_W  # the age of the counter at both ends of a window of 3 s is unknown
    assert row["power_window_second_w"] == pytest.approx(POWER_W * 1.05, abs=bound_w)
