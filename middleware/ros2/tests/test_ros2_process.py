"""The process of a ROS 2 cell: its domain, its profile's hash, and orphaned shared memory."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[1]
KITS = ROOT.parents[1] / "languages"

HASH_PROGRAM = """
#include <iostream>
#include <iterator>

#include "wattwire_ros2/sha256.hpp"

int main() {
  std::cout << sha256_hex({std::istreambuf_iterator<char>(std::cin), {}});
}
"""


CLEAN_PROGRAM = """
#include "wattwire_ros2/shared_memory.hpp"

int main(int, char** argv) { remove_dead_memory(argv[1]); }
"""

FAST_DDS_FILES = (
    "fastdds_0a1b", "fastdds_0a1b_el",
    "fastdds_port7411", "fastdds_port7411_el", "sem.fastdds_port7411_mutex",
    "fastdds_port7412", "fastdds_port7412_sl",
    "fastdds_port7413", "sem.fastdds_port7413_mutex",
)  # fmt: skip
PORTS = {name for name in FAST_DDS_FILES if "port" in name}


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(KITS / "python" / "kit"))
    monkeypatch.syspath_prepend(str(ROOT / "python"))
    spec = importlib.util.spec_from_file_location("ros2_process", ROOT / "python" / "process.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kit(run: str, domain: int) -> SimpleNamespace:
    return SimpleNamespace(spec={"run": run}, setting=lambda _name: domain)


def test_a_run_has_its_own_domain_and_never_the_default_domain(process: ModuleType) -> None:
    domains = [process.domain_of(kit(f"token{n}", 0)) for n in range(1000)]
    assert min(domains) >= 1
    assert max(domains) <= 100
    assert len(set(domains)) > 90
    assert domains[0] == process.domain_of(kit("token0", 0))
    assert process.domain_of(kit("token0", 42)) == 42


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    for name in FAST_DDS_FILES:
        path = tmp_path / name
        path.write_text("data")
        age(path)
    return tmp_path


def age(path: Path) -> None:
    old = time.time() - 600
    os.utime(path, (old, old))


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture(params=["python", "cpp"])
def remove_dead(
    request: pytest.FixtureRequest, process: ModuleType, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Path], None]:
    """Return the function of the Python or C++ cells that removes orphaned shared memory."""
    if request.param == "python":
        return process.remove_dead_memory
    folder = tmp_path_factory.mktemp("cleaner")
    program = compiled(CLEAN_PROGRAM, folder)
    return lambda memory: subprocess.run([program, str(memory)], check=True) and None


def test_orphaned_files_are_removed_and_other_files_remain(
    remove_dead: Callable[[Path], None], memory: Path
) -> None:
    for name in ("fastdds_notes.txt", "sem.other_mutex"):
        (memory / name).touch()
        age(memory / name)
    # A segment without a lock file is being created.
    (memory / "fastdds_ffff").touch()
    age(memory / "fastdds_ffff")
    remove_dead(memory)
    assert names(memory) == {"fastdds_notes.txt", "sem.other_mutex", "fastdds_ffff", *PORTS}


def test_orphaned_files_of_fast_dds_2_are_removed(
    remove_dead: Callable[[Path], None], memory: Path
) -> None:
    for path in [*memory.iterdir()]:
        path.rename(memory / path.name.replace("fastdds", "fastrtps"))
    remove_dead(memory)
    assert names(memory) == {name.replace("fastdds", "fastrtps") for name in PORTS}


def test_files_of_a_running_process_remain(
    remove_dead: Callable[[Path], None], memory: Path
) -> None:
    with (memory / "fastdds_0a1b_el").open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        remove_dead(memory)
    assert names(memory) == set(FAST_DDS_FILES)


def test_new_files_remain(remove_dead: Callable[[Path], None], memory: Path) -> None:
    os.utime(memory / "fastdds_0a1b_el")
    remove_dead(memory)
    assert names(memory) == {"fastdds_0a1b", "fastdds_0a1b_el", *PORTS}


def test_a_missing_rmw_is_reported_with_the_available_ones(
    process: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "librmw_fastrtps_cpp.so").touch()
    (tmp_path / "librmw_fastrtps_shared_cpp.so").touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    failed = sys.modules["wattwire_kit"].MiddlewareFailed
    with pytest.raises(failed, match=r"this ROS has rmw_fastrtps_cpp\. Install rmw_other"):
        process.select_rmw("rmw_other")


def compiled(program: str, folder: Path, include: Path = ROOT / "environment" / "include") -> Path:
    source, binary = folder / "program.cpp", folder / "program"
    source.write_text(program)
    command = ["g++", "-std=c++17", "-O1", "-pthread", f"-I{include}", str(source), "-o"]
    command.append(str(binary))
    subprocess.run(command, check=True)
    return binary


def test_the_hash_of_the_cpp_cells_is_sha256(tmp_path: Path) -> None:
    program = compiled(HASH_PROGRAM, tmp_path)
    for size in (0, 1, 55, 56, 63, 64, 65, 1000):
        data = bytes(n * 7 % 256 for n in range(size))
        found = subprocess.run([program], input=data, capture_output=True, check=True).stdout
        assert found.decode() == hashlib.sha256(data).hexdigest()


SPIN_END_PROGRAM = """
#include <chrono>
#include <cstdio>
#include <thread>

#include "spin_end.hpp"

// Leaves the spin as soon as the future is set, and takes its time to be cancelled.
struct Executor {
  void spin_until_future_complete(std::shared_future<void> future) { future.wait(); }
  void spin() {}
  bool is_spinning() { return true; }
  void cancel() {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    cancelled = true;
  }
  std::atomic<bool> cancelled{false};
};

int main() {
  Executor executor;
  SpinEnd<Executor> end(executor);
  std::thread other([&] { end.reach(); });
  end.spin_until();
  std::puts(executor.cancelled ? "the executor is free" : "the executor is still in use");
  other.join();
}
"""


def test_a_cpp_node_leaves_its_executor_only_when_no_thread_is_in_it(tmp_path: Path) -> None:
    program = compiled(SPIN_END_PROGRAM, tmp_path, ROOT / "cpp")
    done = subprocess.run([program], capture_output=True, check=True, text=True)
    assert done.stdout == "the executor is free\n"


LATE_SPIN_PROGRAM = """
#include <cstdio>

#include "spin_end.hpp"

// Begins to spin late and forgets an earlier cancellation, as rclcpp's executors do.
struct Executor {
  void spin_until_future_complete(std::shared_future<void>) {}
  bool is_spinning() { return spinning; }
  void spin() {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    for (spinning = true; spinning;) std::this_thread::yield();
  }
  void cancel() { spinning = false; }
  std::atomic<bool> spinning{false};
};

int main() {
  Executor executor;
  SpinEnd<Executor> end(executor, SpinBy::kSpin);
  std::thread other([&] { end.reach(); });
  end.spin_until();
  other.join();
  std::puts("ended");
}
"""


def test_a_cpp_node_ends_a_spin_that_begins_after_the_end_of_the_window(tmp_path: Path) -> None:
    program = compiled(LATE_SPIN_PROGRAM, tmp_path, ROOT / "cpp")
    done = subprocess.run([program], capture_output=True, check=True, text=True, timeout=30)
    assert done.stdout == "ended\n"


def test_the_library_of_a_node_has_the_version_of_its_rmw(
    process: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for prefix, package, version in (
        ("ros", "rclpy", "9.1.2"), ("ros", "rcl", "10.1.3"), ("overlay", "rmw_other_cpp", "4.0.3"),
    ):  # fmt: skip
        manifest = tmp_path / prefix / "share" / package / "package.xml"
        manifest.parent.mkdir(parents=True)
        manifest.write_text(f"<package><version>{version}</version></package>")
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{tmp_path / 'overlay'}:{tmp_path / 'ros'}")
    assert process.client_library("rmw_other_cpp") == (
        "rclpy", "9.1.2", "rcl 10.1.3, rmw_other_cpp 4.0.3"
    )  # fmt: skip
    assert process.client_library("rmw_x")[2].endswith("rmw_x unknown")
