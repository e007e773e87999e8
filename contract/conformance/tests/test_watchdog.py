"""Test that nodes and their files do not outlive a harness that is killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
HANG_S = 60.0
NODE = """
import mmap, signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
file = open(sys.argv[1], "wb+")
file.truncate(100)
mapped = mmap.mmap(file.fileno(), 100)
child = subprocess.Popen(["sleep", "600"])
print('READY {"child": %d}' % child.pid, file=open(3, "w"), flush=True)
while True:
    signal.pause()
"""
"""A node that breaks the contract: it does not end with its input."""
HARNESS = """
import sys, time
from pathlib import Path
from contract.conformance.leftovers.shared_memory import SharedMemory
from contract.conformance.process import NodeProcess

class Cell:
    name, env, argv = "cell", {}, [sys.executable, "-c", sys.argv[1], sys.argv[2]]

ended = NodeProcess(Cell, {}, Path(sys.argv[3]) / "ended", "ended", shared_memory=SharedMemory())
ended.kill()
node = NodeProcess(Cell, {}, Path(sys.argv[3]) / "node", "node", shared_memory=SharedMemory())
ready = node.wait_line("READY", 60)
node.note_shared_memory()
print(node.pid, ready.fields["child"], flush=True)
time.sleep(600)
"""


def is_running(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_harness_leaves_no_process_of_a_node_and_none_of_its_files(
    segment: Path, tmp_path: Path, number: signal.Signals
) -> None:
    argv = [sys.executable, "-c", HARNESS, NODE, str(segment), str(tmp_path)]
    pids: list[int] = []
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as harness:
        try:
            assert harness.stdout is not None
            pids = [int(word) for word in harness.stdout.readline().split()]
            assert len(pids) == 2 and all(map(is_running, pids)) and segment.exists()
            harness.send_signal(number)
            harness.wait(HANG_S)
            deadline_s = time.monotonic() + HANG_S
            while (any(map(is_running, pids)) or segment.exists()) and (
                time.monotonic() < deadline_s
            ):
                time.sleep(0.01)
            assert not any(map(is_running, pids))
            assert not segment.exists()
        finally:
            harness.kill()
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
