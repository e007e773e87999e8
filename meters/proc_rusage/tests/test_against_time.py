"""Test that the meter agrees with `/usr/bin/time -v` in the same run."""

from __future__ import annotations

import queue
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from wattwire.model.deployment import Deployment
from wattwire.model.errors import MissingError
from wattwire.rig import AgentClient
from wattwire.rig.agent import find_agent
from wattwire.run.results.convert import quantities_frame

HANG_S = 60.0
PROGRAM = """
import time
memory = bytearray(64 << 20)
memory[::4096] = bytes(len(range(0, len(memory), 4096)))
for _ in range(250):
    time.sleep(0.0005)
"""
PATTERNS = {
    "max_rss": r"Maximum resident set size \(kbytes\): (\d+)",
    "minor_faults": r"Minor \(reclaiming a frame\) page faults: (\d+)",
    "voluntary_switches": r"Voluntary context switches: (\d+)",
}
EXTRA_MAX = {"minor_faults": 1000, "voluntary_switches": 20}
"""Maximum contribution of the program `time`, which forks, waits and writes a file."""


@pytest.fixture
def agent(tmp_path: Path) -> AgentClient:
    if shutil.which("time") is None:
        pytest.skip("the program `time` is not on PATH; it is in Debian's package time")
    try:
        find_agent()
    except MissingError as reason:
        pytest.skip(str(reason))
    return AgentClient(tmp_path / "state")


def measured(agent: AgentClient, folder: Path, argv: list[str]) -> dict[str, float]:
    """Return the meter's values of a program by quantity."""
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
    frame = quantities_frame("r", Deployment(()), Path(readings), sampling["series"])
    program = frame.filter(frame["subject"] == "program")
    return dict(zip(program["quantity"], program["value"], strict=True))


def test_memory_faults_and_switches_agree_with_time(agent: AgentClient, tmp_path: Path) -> None:
    report = tmp_path / "report"
    argv = ["time", "-v", "-o", str(report), sys.executable, "-S", "-c", PROGRAM]
    try:
        values = measured(agent, tmp_path, argv)
    finally:
        agent.close()
    text = report.read_text(encoding="utf-8")
    matches = {name: re.search(pattern, text) for name, pattern in PATTERNS.items()}
    truth = {name: int(match[1]) for name, match in matches.items() if match}
    assert set(truth) == set(PATTERNS), text
    assert truth["voluntary_switches"] >= 200 and truth["minor_faults"] >= 16_384
    assert values["max_rss"] == truth["max_rss"] * 1024
    for name, extra_max in EXTRA_MAX.items():
        assert 0 <= values[name] - truth[name] <= extra_max, (name, values, truth)
