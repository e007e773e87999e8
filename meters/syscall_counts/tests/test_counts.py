"""Both ways of counting tell what a program knows that it did."""

from __future__ import annotations

import queue
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from wattwire.model.errors import MissingError
from wattwire.rig import AgentClient
from wattwire.rig.agent import find_agent
from wattwire.run.results import syscalls
from wattwire.run.results.convert import quantities_frame

HANG_S = 60.0
PARENT, CHILD, WRITTEN, WRONG = 10_000, 5_000, 3_000, 40
PROGRAM = f"""
import os, sys
sys.stdin.readline()
for _ in range({PARENT}): os.getppid()
child = os.fork()
if child == 0:
    for _ in range({CHILD}): os.getppid()
    os._exit(0)
os.waitpid(child, 0)
null = os.open("/dev/null", os.O_WRONLY)
for _ in range({WRITTEN}): os.write(null, b"x")
for _ in range({WRONG}):
    try: os.rmdir("/proc/self/none")
    except OSError: pass
print("done", flush=True)
sys.stdin.readline()
"""
KNOWN = {"getppid": PARENT + CHILD, "rmdir": WRONG, "wait4": 1}
SHARE_MAX = 0.02


@pytest.fixture
def agent(tmp_path: Path) -> Any:
    try:
        find_agent()
    except MissingError as reason:
        pytest.skip(str(reason))
    client = AgentClient(tmp_path / "state")
    yield client
    client.close()


def way_here(agent: AgentClient) -> syscalls.Way:
    way = syscalls.choose(agent.hello)
    if way.name != syscalls.KERNEL_PROGRAM:
        pytest.skip(f"system calls are not counted in the kernel here: {way.because}")
    return way


def run_program(agent: AgentClient, folder: Path, meters: list[str]) -> tuple[Any, list[int]]:
    """The sampling of one life of the program, and the times of the marks around its work."""
    events: queue.Queue[dict[str, Any]] = queue.Queue()
    agent.subscribe("program", events)
    agent.request(
        "sample_start", path=str(folder / "readings.bin"), tick_hz=10, meters=meters,
        subjects={}, marks_only=True,
    )  # fmt: skip
    argv = [sys.executable, "-S", "-c", PROGRAM]
    agent.request(
        "spawn", process="program", run="calls0", argv=argv, env={}, cwd=str(folder),
        stdout="lines",
    )  # fmt: skip
    marks = [agent.request("mark", name="begin")["t_ns"]]
    agent.request("write", process="program", text="go\n")
    while events.get(timeout=HANG_S).get("text") != "done":
        pass
    marks.append(agent.request("mark", name="end")["t_ns"])
    agent.request("write", process="program", close=True)
    while events.get(timeout=HANG_S).get("event") != "exit":
        pass
    return agent.request("sample_stop"), marks


def counted(agent: AgentClient, folder: Path) -> dict[str, list[float]]:
    way = way_here(agent)
    sampling, marks = run_program(agent, folder, [way.meter])
    frame = quantities_frame("r", "h", folder / "readings.bin", sampling["series"])
    found = syscalls.from_readings(frame, way.meter, (marks[0], marks[1]), ["program"])
    assert found["program"]["uncounted"] == 0
    return dict(found["program"]["calls"])


def test_the_kernel_counts_every_call_of_a_program_and_of_its_short_lived_child(
    agent: AgentClient, tmp_path: Path
) -> None:
    calls = counted(agent, tmp_path)
    for name, count in KNOWN.items():
        assert calls[name][0] == count, (name, calls)
    assert calls["write"][0] >= WRITTEN
    assert calls["rmdir"][2] == WRONG and calls["getppid"][2] == 0
    assert calls["getppid"][1] > 0


def test_both_ways_agree_on_a_deterministic_program(agent: AgentClient, tmp_path: Path) -> None:
    ours = counted(agent, tmp_path)
    if shutil.which(syscalls.TRACER) is None:
        pytest.skip("no program `strace` on PATH: Debian's package strace has it")
    argv = syscalls.traced([sys.executable, "-S", "-c", PROGRAM], tmp_path)
    done = subprocess.run(
        argv, input="go\n\n", text=True, capture_output=True, check=False, timeout=HANG_S
    )
    if "PTRACE" in done.stderr or "ptrace" in done.stderr:
        pytest.skip(f"strace may not trace here: {done.stderr.strip()}")
    theirs = syscalls.parse_table((tmp_path / syscalls.TABLE).read_text())
    for name in ("getppid", "write", "rmdir"):
        assert abs(ours[name][0] / theirs[name][0] - 1) <= SHARE_MAX, (name, ours, theirs)
    assert theirs["rmdir"][2] == ours["rmdir"][2] == WRONG


def test_without_cgroups_nothing_is_counted_and_the_reason_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WATTWIRE_CGROUP", "none")
    try:
        find_agent()
    except MissingError as reason:
        pytest.skip(str(reason))
    client = AgentClient(tmp_path / "state")
    try:
        way = syscalls.choose(client.hello)
    finally:
        client.close()
    assert way.name != syscalls.KERNEL_PROGRAM
    assert way.because
