"""Test both methods of counting system calls with a program whose calls are known."""

from __future__ import annotations

import queue
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sampled_meters import sampling_agent
from wattwire.model.deployment import Deployment
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
def agent(tmp_path: Path) -> Iterator[AgentClient]:
    with sampling_agent(tmp_path / "state") as client:
        yield client


def kernel_method(agent: AgentClient) -> syscalls.Way:
    method = syscalls.choose(agent.hello)
    if method.name != syscalls.KERNEL_PROGRAM:
        pytest.skip(f"the kernel does not count system calls on this host: {method.because}")
    return method


def run_program(agent: AgentClient, folder: Path, meters: list[str]) -> tuple[Any, list[int]]:
    """Run the program once; return the sampling and the times of the marks around its work."""
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
    method = kernel_method(agent)
    sampling, marks = run_program(agent, folder, [method.meter])
    frame = quantities_frame("r", Deployment(()), folder / "readings.bin", sampling["series"])
    counts = syscalls.from_readings(frame, method.meter, (marks[0], marks[1]), ["program"])
    assert counts["program"]["uncounted"] == 0
    return dict(counts["program"]["calls"])


def test_the_kernel_counts_every_call_of_a_program_and_its_short_lived_child(
    agent: AgentClient, tmp_path: Path
) -> None:
    calls = counted(agent, tmp_path)
    for name, count in KNOWN.items():
        assert calls[name][0] == count, (name, calls)
    assert calls["write"][0] >= WRITTEN
    assert calls["rmdir"][2] == WRONG and calls["getppid"][2] == 0
    assert calls["getppid"][1] > 0


def test_both_methods_agree_on_a_deterministic_program(agent: AgentClient, tmp_path: Path) -> None:
    meter = counted(agent, tmp_path)
    if shutil.which(syscalls.TRACER) is None:
        pytest.skip("the program `strace` is not on PATH; it is in Debian's package strace")
    argv = syscalls.traced([sys.executable, "-S", "-c", PROGRAM], tmp_path)
    done = subprocess.run(
        argv, input="go\n\n", text=True, capture_output=True, check=False, timeout=HANG_S
    )
    if "PTRACE" in done.stderr or "ptrace" in done.stderr:
        pytest.skip(f"strace has no permission to trace: {done.stderr.strip()}")
    strace = syscalls.parse_table((tmp_path / syscalls.TABLE).read_text())
    for name in ("getppid", "write", "rmdir"):
        assert abs(meter[name][0] / strace[name][0] - 1) <= SHARE_MAX, (name, meter, strace)
    assert strace["rmdir"][2] == meter["rmdir"][2] == WRONG


def test_without_cgroups_the_method_is_another_and_has_a_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WATTWIRE_CGROUP", "none")
    try:
        find_agent()
    except MissingError as reason:
        pytest.skip(str(reason))
    client = AgentClient(tmp_path / "state")
    try:
        method = syscalls.choose(client.hello)
    finally:
        client.close()
    assert method.name != syscalls.KERNEL_PROGRAM
    assert method.because
