"""The process of a ROS 2 cell: its domain, its profile's hash, and shared memory of the dead."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[1]
KITS = ROOT.parents[1] / "languages"

HASH_PROGRAM = """
#include <iostream>
#include <iterator>

#include "sha256.hpp"

int main() {
  std::cout << sha256_hex({std::istreambuf_iterator<char>(std::cin), {}});
}
"""


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(KITS / "python" / "kit"))
    spec = importlib.util.spec_from_file_location("ros2_process", ROOT / "python" / "process.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kit(run: str, domain: int) -> SimpleNamespace:
    return SimpleNamespace(spec={"run": run}, setting=lambda _name: domain)


def test_a_run_has_a_domain_of_its_own_and_never_the_default_one(process: ModuleType) -> None:
    domains = [process.domain_of(kit(f"token{n}", 0)) for n in range(1000)]
    assert min(domains) >= 1
    assert max(domains) <= 100
    assert len(set(domains)) > 90
    assert domains[0] == process.domain_of(kit("token0", 0))
    assert process.domain_of(kit("token0", 42)) == 42


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    for name in ("fastdds_0a1b", "fastdds_port7411"):
        (tmp_path / name).write_text("data")
        lock = tmp_path / f"{name}_el"
        lock.touch()
        old = time.time() - 600
        os.utime(lock, (old, old))
    return tmp_path


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_the_segment_of_a_dead_process_goes_and_ports_stay(
    process: ModuleType, memory: Path
) -> None:
    process.remove_dead_segments(memory)
    assert names(memory) == {"fastdds_port7411", "fastdds_port7411_el"}


def test_the_segment_of_a_living_process_stays(process: ModuleType, memory: Path) -> None:
    before = names(memory)
    with (memory / "fastdds_0a1b_el").open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        process.remove_dead_segments(memory)
    assert names(memory) == before


def test_a_fresh_segment_stays(process: ModuleType, memory: Path) -> None:
    before = names(memory)
    os.utime(memory / "fastdds_0a1b_el")
    process.remove_dead_segments(memory)
    assert names(memory) == before


def test_another_rmw_that_is_not_there_is_named_with_what_is(
    process: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "librmw_fastrtps_cpp.so").touch()
    (tmp_path / "librmw_fastrtps_shared_cpp.so").touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    failed = sys.modules["wattwire_kit"].MiddlewareFailed
    with pytest.raises(failed, match=r"this ROS has rmw_fastrtps_cpp\. Install rmw_other"):
        process.select_rmw("rmw_other")


def test_the_hash_of_the_rcl_cell_is_sha256(tmp_path: Path) -> None:
    source, program = tmp_path / "hash.cpp", tmp_path / "hash"
    source.write_text(HASH_PROGRAM)
    command = ["g++", "-std=c++17", "-O1", f"-I{ROOT / 'cpp-rcl'}", str(source), "-o", str(program)]
    subprocess.run(command, check=True)
    for size in (0, 1, 55, 56, 63, 64, 65, 1000):
        data = bytes(n * 7 % 256 for n in range(size))
        found = subprocess.run([program], input=data, capture_output=True, check=True).stdout
        assert found.decode() == hashlib.sha256(data).hexdigest()
