"""A small copy of the package's layout, written by each test with numbers of its own."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from wattwire import imports

FOLDER = Path(__file__).resolve().parents[1]
TOPIC, TENTH = "cpp_py_ros2_pub_sub", "cpp_py_ros2_pub_sub_0_1"
SERVICE, ACTION = "cpp_py_ros2_service", "cpp_py_ros2_action"
BEGIN = datetime.datetime(2024, 11, 22, 22, 39, 9)
HEADER = "Date,CPU Utilization,CPU Power"
MEMORY_HEADER = (
    "run,package,interval,language,exec_time,num_clients,cpu_percentage,memory_usage"
)  # fmt: skip
MAP_HEADER = "exec,label,timestamp,cpu,mem"


def stamp(seconds: float) -> str:
    return (BEGIN + datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S")


class Package:
    """Writes files where the authors' tools would have left them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.experiments = root / "exp_runners/experiments"

    def put(self, where: str, text: str) -> Path:
        path = self.experiments / where
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def table(self, experiment: str, rows: Sequence[tuple[int, int, str, float, int]]) -> None:
        """A run table from (number, repetition, language, interval, clients)."""
        lines = ["__run_id,__done,ros_package,msg_interval,language,exec_time,num_clients"]
        lines += [
            f"run_{k}_repetition_{r},NO,some_package,{interval},{language},180,{clients}"
            for k, r, language, interval, clients in rows
        ]
        self.put(f"{experiment}/run_table.csv", "\n".join(lines) + "\n")

    def energy(
        self,
        run: str,
        side: str = "server",
        pid: int = 100,
        watts: Sequence[float] | float = 0.5,
        rows: int = 180,
        at: float = 0.0,
        use: float = 0.01,
        text: str = "",
    ) -> Path:
        powers = [watts] * rows if isinstance(watts, (int, float)) else list(watts)
        lines = [HEADER] + [f"{stamp(at + s)},{use},{power}" for s, power in enumerate(powers)]
        return self.put(f"{run}/energy-{side}-{pid}.csv", text or "\n".join(lines) + "\n")

    def memory(
        self, run: str, side: str = "server", kib: Sequence[float] = (100.0, 200.0), text: str = ""
    ) -> Path:
        name = run.rpartition("/")[2]
        lines = [MEMORY_HEADER]
        lines += [f"{stamp(0)}.5,{name},,,py,180,1,0.0,{int(value * 1024)}" for value in kib]
        return self.put(f"{run}/cpu-mem-{side}.csv", text or "\n".join(lines) + "\n")


@pytest.fixture
def package(tmp_path: Path) -> Package:
    return Package(tmp_path)


@pytest.fixture(scope="session")
def study() -> SimpleNamespace:
    """The reader and its modules, loaded as `wattwire import` loads them."""
    reader = imports.load(FOLDER)
    base = reader.function.__module__
    names = ("layout", "material", "oddities", "per_recording", "printed", "printed_tests",
             "samples", "values")  # fmt: skip
    modules = {name: sys.modules[f"{base}.{name}"] for name in names}
    return SimpleNamespace(reader=reader, read=reader.function, **modules)
