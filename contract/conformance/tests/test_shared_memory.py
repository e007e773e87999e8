"""Test that killed nodes of the suite leave no files in /dev/shm, and that others keep theirs."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from contract.conformance.leftovers.shared_memory import SharedMemory
from contract.conformance.process import NodeProcess

CREATE = """
import mmap, sys
file = open(sys.argv[1], "wb+")
file.truncate(100)
mapped = mmap.mmap(file.fileno(), 100)
file.close()
open(sys.argv[1] + "_lock", "w").close()
print('READY {}', file=open(3, "w"), flush=True)
sys.stdin.read()
"""

CRASH_AT_STOP = """
import mmap, os, sys, time
lines = open(3, "w")
print('READY {}', file=lines, flush=True)
time.sleep(0.3)  # the harness has observed the node without the file
file = open(sys.argv[1], "wb+")
file.truncate(100)
mapped = mmap.mmap(file.fileno(), 100)
print('SENT {}', file=lines, flush=True)
sys.stdin.readline()
os._exit(4)
"""


class Cell:
    name, env = "cell", {}

    def __init__(self, path: Path) -> None:
        self.argv = [sys.executable, "-c", CREATE, str(path)]


def killed(segment: Path, folder: Path, shared_memory: SharedMemory) -> None:
    cell: Any = Cell(segment)
    node = NodeProcess(cell, {}, folder / "node", "node", shared_memory=shared_memory)
    assert node.wait_line("READY", 60) is not None, node.last_output()
    node.signal(signal.SIGKILL)
    node.kill()


def test_a_killed_node_leaves_neither_its_segment_nor_its_lock(segment: Path, tmp_path: Path):
    shared_memory = SharedMemory()
    killed(segment, tmp_path, shared_memory)
    lock = segment.with_name(f"{segment.name}_lock")
    assert segment.exists() and lock.exists()
    shared_memory.remove_unused()
    assert not segment.exists() and not lock.exists()


def test_a_node_that_crashes_at_stop_leaves_no_segment_that_it_created_after_ready(
    segment: Path, tmp_path: Path
):
    cell: Any = Cell(segment)
    cell.argv = [sys.executable, "-c", CRASH_AT_STOP, str(segment)]
    shared_memory = SharedMemory()
    node = NodeProcess(cell, {}, tmp_path / "node", "node", shared_memory=shared_memory)
    assert node.wait_line("SENT", 60) is not None, node.last_output()
    node.write("STOP\n")
    assert node.wait_exit(60) == 4, node.last_output()
    node.kill()
    assert segment.exists()
    shared_memory.remove_unused()
    assert not segment.exists()


def test_a_segment_that_existed_before_or_that_another_process_uses_stays(
    segment: Path, tmp_path: Path
):
    segment.write_bytes(b"")
    shared_memory = SharedMemory()
    killed(segment, tmp_path, shared_memory)
    shared_memory.remove_unused()
    assert segment.exists()
    segment.unlink()
    shared_memory = SharedMemory()
    killed(segment, tmp_path / "again", shared_memory)
    with segment.open() as used, subprocess.Popen(["sleep", "60"], stdin=used) as other:
        used.close()
        shared_memory.remove_unused()
        assert segment.exists()
        other.kill()
    shared_memory.remove_unused()
    assert not segment.exists()
