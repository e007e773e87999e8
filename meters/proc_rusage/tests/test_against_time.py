"""What the meter says of a program is what `/usr/bin/time -v` says of it, in the same run."""

from __future__ import annotations

import queue
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from wattwire.model.errors import MissingError
from wattwire.rig import AgentClient
from wattwire.rig.agent import find_agent
from wattwire.run.results.convert import quantities_frame

HANG_S = 60.0
PROGRAM = """
import time
held = bytearray(64 << 20)
held[::4096] = bytes(len(range(0, len(held), 4096)))
for _ in range(250):
    time.sleep(0.0005)
"""
TOLD = {
    "max_rss": r"Maximum resident set size \(kbytes\): (\d+)",
    "minor_faults": r"Minor \(reclaiming a frame\) page faults: (\d+)",
    "voluntary_switches": r"Voluntary context switches: (\d+)",
}
OWN_MOST = {"minor_faults": 1000, "voluntary_switches": 20}
"""What the program `time` itself may add to the tree: it forks, waits and writes a file."""


@pytest.fixture
def agent(tmp_path: Path) -> AgentClient:
    if shutil.which("time") is None:
        pytest.skip("no program `time` on PATH: Debian's package time has it")
    try:
        find_agent()
    except MissingError as reason:
        pytest.skip(str(reason))
    return AgentClient(tmp_path / "state")


def measured(agent: AgentClient, folder: Path, argv: list[str]) -> dict[str, float]:
    """Quantity → value of the meter over one process's life."""
    readings = str(folder / "readings.bin")
    events: queue.Queue[dict[str, Any]] = queue.Queue()
    agent.subscribe("program", events)
    agent.request(
        "sample_start", path=readings, tick_hz=10, meters=["proc_rusage"], subjects={},
        marks_only=True,
    )  # fmt: skip
    agent.request("spawn", process="program", run="rusage0", argv=argv, env={}, cwd=str(folder))
    while events.get(timeout=HANG_S).get("event") != "exit":
        pass
    sampling = agent.request("sample_stop")
    frame = quantities_frame("r", "h", Path(readings), sampling["series"])
    own = frame.filter(frame["subject"] == "program")
    return dict(zip(own["quantity"], own["value"], strict=True))


def test_memory_faults_and_switches_are_those_that_time_tells(
    agent: AgentClient, tmp_path: Path
) -> None:
    report = tmp_path / "report"
    argv = ["time", "-v", "-o", str(report), sys.executable, "-S", "-c", PROGRAM]
    try:
        found = measured(agent, tmp_path, argv)
    finally:
        agent.close()
    text = report.read_text(encoding="utf-8")
    told = {name: int(m[1]) for name, pattern in TOLD.items() if (m := re.search(pattern, text))}
    assert set(told) == set(TOLD), text
    assert told["voluntary_switches"] >= 200 and told["minor_faults"] >= 16_384
    assert found["max_rss"] == told["max_rss"] * 1024
    for name, most in OWN_MOST.items():
        assert 0 <= found[name] - told[name] <= most, (name, found, told)
