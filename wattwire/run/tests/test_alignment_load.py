"""Test that a campaign with --align makes a known load before its first and after its last run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from meters.watts_up.tests.emulator import WattsUp
from wattwire.cli.main import main
from wattwire.model.errors import MissingError, WattwireError
from wattwire.model.outside_meters import CHIPS, AccuracyClass, OutsideMeter
from wattwire.rig import AgentClient
from wattwire.rig.agent import find_agent
from wattwire.run import alignment_load
from wattwire.run.alignment_load import AlignmentLoad
from wattwire.stats import Interval
from wattwire.stats.series.alignment import Load, chips, clock_offset
from wattwire.store import Campaign

pytestmark = pytest.mark.slow
CHIP_S = 0.02
READ_CHIP_S, PERIOD_S, LATE_S = 0.2, 0.1, 0.3
"""Length of a chip and period of an emulated meter, ten times as fast as real ones, and its delay.
"""


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment_load, "REST_S", 0.5)


@pytest.fixture(autouse=True)
def agent_is_built() -> None:
    try:
        find_agent()
    except MissingError as reason:
        pytest.skip(str(reason))


def test_the_times_of_the_chips_are_those_that_the_cores_observed(tmp_path: Path) -> None:
    agent = AgentClient(tmp_path / "agent")
    try:
        load = AlignmentLoad(agent, tmp_path / "load", CHIP_S).make()
    finally:
        agent.close()
    boundaries_ns = np.array(load["boundaries_ns"])
    assert load["levels"] == list(chips()) and boundaries_ns.size == CHIPS + 1
    assert load["cpus"] and load["boot_id"] == agent.hello["boot_id"]
    span_s = (boundaries_ns[-1] - boundaries_ns[0]) / 1e9
    assert abs(span_s - CHIPS * CHIP_S) <= 2 * load["late_ns"] / 1e9
    assert (np.diff(boundaries_ns) > 0).all()


def test_a_meter_is_read_during_the_load_and_aligned_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, begins_s = AlignmentLoad._start, []

    def started(load: AlignmentLoad, cpu: int, begin_ns: int) -> Path:
        begins_s.append(begin_ns / 1e9)
        return start(load, cpu, begin_ns)

    def power_w(now_s: float) -> float:
        """Return the power of a machine that consumes it 0.3 s after the load."""
        chip = int((now_s - LATE_S - begins_s[0]) // READ_CHIP_S) if begins_s else -1
        return 22.0 if 0 <= chip < CHIPS and chips()[chip] else 10.0

    monkeypatch.setattr(AlignmentLoad, "_start", started)
    meter = WattsUp(power_w, interval_s=PERIOD_S)
    agent = AgentClient(tmp_path / "agent")
    outside = {"watts_up": OutsideMeter("watts_up", meter.path, PERIOD_S, AccuracyClass())}
    try:
        document = AlignmentLoad(agent, tmp_path / "load", READ_CHIP_S, meters=outside).make()
        assert agent.request("clock", count=1)
    finally:
        agent.close()
        meter.close()
    readings = document["meters"]["watts_up"]
    assert readings["quantity"] == "power_input" and not readings["counter"]
    origin_ns = document["boundaries_ns"][0]
    ours_s = (np.array(document["boundaries_ns"]) - origin_ns) / 1e9
    load = Load(ours_s, np.array(document["levels"], float))
    times_s = (np.array(readings["t_ns"]) - origin_ns) / 1e9
    offset = clock_offset(times_s, np.array(readings["values"]) / 1e6, load, PERIOD_S)
    assert isinstance(offset, Interval), str(offset)
    assert times_s[-1] > ours_s[-1]  # the readings of the last chip come late
    # The emulated meter sends the power at a time and not the mean before it.
    assert offset.estimate == pytest.approx(LATE_S - PERIOD_S / 2, abs=READ_CHIP_S / 2)


def test_a_load_that_does_not_end_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alignment_load, "LOAD", "import time; time.sleep(60)")
    monkeypatch.setattr(alignment_load, "PATIENCE_S", 0.2)
    agent = AgentClient(tmp_path / "agent")
    try:
        with pytest.raises(WattwireError, match="did not end within"):
            AlignmentLoad(agent, tmp_path / "load", CHIP_S).make()
    finally:
        agent.close()


COMMANDS = {
    "run": (
        "run", "first-look", "--only", "middleware=udp,language=python,pattern=topic",
        "--set", "plan.blocks=1", "--yes", "--plain", "--look",
    ),
    "try": (
        "try", "udp/python", "--blocks", "1", "--for", "500ms", "--yes", "--plain", "--look",
    ),
    "exec": ("exec", "--for", "500ms", "--baseline", "200ms"),
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_the_loads_enclose_the_runs_of_a_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(alignment_load, "CHIP_S", CHIP_S)
    options = ["--no-report", "--align", "--campaign", str(tmp_path / "c")]
    command = ["--", "sleep", "60"] if name == "exec" else []
    assert main([*COMMANDS[name], *options, *command]) == 0
    campaign = Campaign(tmp_path / "c")
    first, last = campaign.alignment_loads() or ()
    windows = [campaign.run(row["run"])["window"] for row in campaign.plan if row["run"]]
    assert first["boundaries_ns"][-1] < min(window["start_ns"] for window in windows)
    assert last["boundaries_ns"][0] > max(window["end_ns"] for window in windows)
    assert first["boot_id"] == last["boot_id"]
