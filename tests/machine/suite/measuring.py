"""Measure loads and a campaign with the zones, and leave the readings next to the module's log."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.machine.suite.rights import PYTHON_M
from tests.machine.suite.zones import zones
from wattwire.rig import AgentClient

STUDIES = Path(__file__).resolve().parents[1]
WRAPPING_UJ = 40_000_000
"""Range of a counter that wraps after 2 to 4 s."""
OF_A_RUN_UJ = 80_000_000
"""Range of a counter that wraps after 4 to 8 s, so at least once in each run."""
METERS = ("powercap", "proc_cpu", "host_state")
TICK_HZ = 10.0
SETTLE_S = 2.0
"""Wait (s) until a load has started; an interpreter needs about a second here."""
SILENT_S, WINDOW_S = 3.0, 5.0
BATTERY_WINDOW_S = 20.0
"""The gauge has steps of 1 mWh, which are 3.6 J or a quarter of a second."""
BLOCKS = 3
READY_S = 180.0
"""An interpreter with rclpy needs a minute to start here."""
ENDING_S = 60.0
"""Time before the limit of the suite in which a campaign that is interrupted ends."""
LOADS = {"a": 0.15, "b": 0.3}
"""Share of a core that each load uses."""
LOAD = """
import sys, time
share, period_s = float(sys.argv[1]), 0.05
due = time.monotonic()
while True:
    end = time.process_time() + share * period_s
    while time.process_time() < end: pass
    due = max(due + period_s, time.monotonic() - period_s)
    time.sleep(max(0.0, due - time.monotonic()))
"""


def wraps(folder: Path) -> None:
    """Sample an idle machine, then a busy one, while each package wraps several times."""
    with zones(folder, range_uj=WRAPPING_UJ):
        _sample(folder, [{}, {"a": 0.9}])


def battery(folder: Path) -> None:
    """Sample the battery, whose driver is there only for this step: one source serves a campaign.

    Write what the kernel says about it, too.
    """
    subprocess.run(["/sbin/modprobe", "battery"], check=True)
    try:
        for name in ("model_name", "status", "energy_now"):
            shutil.copyfile(f"/sys/class/power_supply/BAT0/{name}", folder / name)
        _sample(folder, [{}], ["battery_power"], BATTERY_WINDOW_S)
    finally:
        subprocess.run(["/sbin/modprobe", "--remove", "battery"], check=True)


def additivity(folder: Path) -> None:
    """Sample two loads, alone and together, in blocks."""
    alone: list[Mapping[str, float]] = [{name: share} for name, share in LOADS.items()]
    with zones(folder):
        _sample(folder, [*alone, LOADS] * BLOCKS)


def campaign(folder: Path) -> None:
    """Run the study of joules per message while the counters wrap in each run."""
    _run(folder, [str(STUDIES / "planted_joules.toml")], range_uj=OF_A_RUN_UJ)


def held(folder: Path) -> None:
    """Run the study of a CPU latency limit, which changes the power of the idle machine."""
    _run(folder, [str(STUDIES / "held_latency.toml")])


def ros2_energy(folder: Path) -> None:
    """Run the smoke preset of the study of a paper. The machine needs the middleware `ros2`."""
    slow = ("--set", f"plan.ready_timeout_s={READY_S}", "--set", "validity.look=true")
    _run(folder, ["ros2-energy", "--preset", "smoke", *slow])


def _run(folder: Path, study: Sequence[str], **parameters: int) -> None:
    """Run a study in memory, and copy the campaign out.

    On a host that is too busy for all blocks, the campaign is interrupted before the suite's limit:
    its runs are kept. The uptime of the machine is that of the suite but for the boot.
    """
    inside = Path("/tmp") / folder.name
    with zones(folder, **parameters), (folder / "run.log").open("w") as log:
        command = [*PYTHON_M, "run", *study, "--campaign", str(inside), "--no-report"]
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            left_s = float(os.environ["LIMIT_S"]) - time.monotonic() - ENDING_S
            code = process.wait(timeout=max(0.0, left_s))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            code = min(process.wait(timeout=ENDING_S), 0)
    archive = shutil.make_archive(str(inside), "tar", inside.parent, inside.name)
    shutil.copyfile(archive, folder / "campaign.tar")  # one file, because each takes its time
    if code:
        raise RuntimeError(f"{' '.join(command)}: exit code {code}; see run.log")


def _sample(
    folder: Path,
    steps: list[Mapping[str, float]],
    meters: Sequence[str] = METERS,
    window_s: float = WINDOW_S,
) -> None:
    """Sample the meters in a silent and a loaded span for each step (load → share of a core)."""
    inside = Path("/tmp") / folder.name
    inside.mkdir()
    agent = AgentClient(inside)
    spans: list[dict[str, Any]] = []
    try:
        path = inside / "readings.bin"
        agent.request(
            "sample_start", path=str(path), tick_hz=TICK_HZ, meters=list(meters), subjects={}
        )
        for number, loads in enumerate(steps):
            silent = _span(agent, SILENT_S)
            names = {f"{name}-{number}": share for name, share in loads.items()}
            for name, share in names.items():
                _spawn(agent, inside, name, share)
            time.sleep(SETTLE_S)
            window = _span(agent, window_s)
            for name in names:
                agent.request("signal", process=name, signal="KILL", tree=True)
            time.sleep(0.5)
            spans.append({"loads": list(names), "silent": silent, "window": window})
        stopped = agent.request("sample_stop")
        agent.request("clean", run="wwmachine")
    finally:
        agent.close()
    shutil.copyfile(path, folder / "readings.bin")
    document = {"series": stopped["series"], "steps": spans}
    (folder / "sampled.json").write_text(json.dumps(document), encoding="utf-8")


def _span(agent: AgentClient, seconds: float) -> tuple[int, int]:
    begin_ns = int(agent.request("mark", name="begin")["t_ns"])
    time.sleep(seconds)
    return begin_ns, int(agent.request("mark", name="end")["t_ns"])


def _spawn(agent: AgentClient, folder: Path, name: str, share: float) -> None:
    log = str(folder / f"{name}.log")
    agent.request(
        "spawn", process=name, run="wwmachine", argv=[sys.executable, "-S", "-c", LOAD, str(share)],
        env={}, cwd=str(folder), stdout=log, stderr=log, clear_env=False,
    )  # fmt: skip
