"""A synthetic package in the layout of the ROS 2 energy paper.

It has 1,800 runs, 7,166 files and 2.8 M rows. Only the layout comes from the authors' data:
folders, file names, columns and numbers of rows. The values are random, with a fixed seed.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

INTERVALS_S = (0.05, 0.1, 0.25, 0.5, 1.0)
LANGUAGES = ("py", "cpp")
CLIENTS = (1, 2, 3)
REPETITIONS = 20
ENERGY_ROWS, MEMORY_ROWS, LAUNCHER_ROWS = 179, 735, 340
NODES_WITHOUT_ENERGY = 34
RUN_S = 240
BEGUN = datetime.datetime(2024, 11, 22, 9, 0, 0)
RUN_TABLE = "__run_id,__done,ros_package,msg_interval,language,exec_time,num_clients"
MEMORY_HEADER = "run,package,interval,language,exec_time,num_clients,cpu_percentage,memory_usage"


@dataclass(frozen=True)
class Experiment:
    """A folder of runs: its name, package, message intervals and sampled process.

    With `launcher`, the memory samples are of the launcher instead of the node.
    """

    name: str
    package: str
    intervals_s: tuple[float, ...]
    launcher: bool = False


EXPERIMENTS = (
    Experiment("cpp_py_ros2_pub_sub", "simple_publisher_subscriber", (0.05, 0.25, 0.5, 1.0)),
    Experiment("cpp_py_ros2_pub_sub_0_1", "simple_publisher_subscriber", (0.1,)),
    Experiment("cpp_py_ros2_service", "simple_service_client", INTERVALS_S),
    Experiment("cpp_py_ros2_action", "action_tutorials", INTERVALS_S, launcher=True),
)


@dataclass
class Written:
    """The numbers of written runs, files and rows."""

    runs: int = 0
    files: int = 0
    rows: int = 0


def write(folder: Path, seed: int = 1) -> Written:
    """Write the package in `folder`, and return its numbers of runs, files and rows."""
    rng = np.random.default_rng(seed)
    written = Written()
    for experiment in EXPERIMENTS:
        place = folder / "exp_runners" / "experiments" / experiment.name
        place.mkdir(parents=True)
        table = [RUN_TABLE]
        for repetition in range(REPETITIONS):
            treatments = [
                (interval_s, language, clients)
                for interval_s in experiment.intervals_s
                for language in LANGUAGES
                for clients in CLIENTS
            ]
            for number, treatment in enumerate(treatments):
                name = f"run_{number}_repetition_{repetition}"
                interval_s, language, clients = treatment
                table.append(
                    f"{name},DONE,{experiment.package},{interval_s},{language},180,{clients}"
                )
                _write_run(place / name, experiment, treatment, written, rng)
        (place / "run_table.csv").write_text("\n".join(table) + "\n")
    return written


def _write_run(
    folder: Path,
    experiment: Experiment,
    treatment: tuple[float, str, int],
    written: Written,
    rng: np.random.Generator,
) -> None:
    folder.mkdir()
    interval_s, language, clients = treatment
    begun = BEGUN + datetime.timedelta(seconds=RUN_S * written.runs)
    language_factor = 1.0 if language == "py" else 0.2
    power_w = (
        language_factor * (0.05 + 0.04 * clients + 0.03 / interval_s) * np.exp(rng.normal(0, 0.05))
    )
    memory = int((42e6 if language == "py" else 21e6) * np.exp(rng.normal(0, 0.002)))
    for role, pid in (("server", 0), ("client", 1)):
        # Some nodes of services and actions have no energy recordings.
        without_energy = 1200 <= written.runs < 1200 + NODES_WITHOUT_ENERGY and role == "server"
        if not without_energy:
            path = folder / f"energy-{role}-{600_000 + 2 * written.runs + pid}.csv"
            _energy(begun, power_w, rng).write_csv(path, float_precision=14)
            written.files += 1
            written.rows += ENERGY_ROWS
        path = folder / f"cpu-mem-{role}.csv"
        if experiment.launcher:
            frame = _launcher(begun, rng)
            frame.write_csv(path)
        else:
            frame = _memory(begun, folder.name, language, clients, memory, rng)
            with path.open("wb") as file:
                file.write(MEMORY_HEADER.encode() + b"\n")
                frame.write_csv(file, include_header=False)
        written.files += 1
        written.rows += frame.height
    written.runs += 1


def _energy(begun: datetime.datetime, power_w: float, rng: np.random.Generator) -> pl.DataFrame:
    draws = power_w * np.exp(rng.normal(0, 0.3, ENERGY_ROWS))
    seconds = pl.datetime_range(
        begun, begun + datetime.timedelta(seconds=ENERGY_ROWS - 1), "1s", eager=True
    )
    return pl.DataFrame(
        {
            "Date": seconds.dt.strftime("%Y-%m-%d %H:%M:%S"),
            "CPU Utilization": draws / 190,
            "CPU Power": draws,
        }
    )


def _stamps(begun: datetime.datetime, rows: int, every_ms: int) -> pl.Series:
    end = begun + datetime.timedelta(milliseconds=every_ms * (rows - 1))
    return pl.datetime_range(begun, end, f"{every_ms}ms", eager=True)


def _memory(
    begun: datetime.datetime, run: str, language: str, clients: int, memory: int,
    rng: np.random.Generator,
) -> pl.DataFrame:  # fmt: skip
    """Return rows with nine fields for a header with eight, where the time stamp has no name."""
    return pl.DataFrame(
        {
            "stamp": _stamps(begun, MEMORY_ROWS, 244).dt.strftime("%Y-%m-%d %H:%M:%S%.3f"),
            "run": [run] * MEMORY_ROWS,
            "package": [None] * MEMORY_ROWS,
            "interval": [None] * MEMORY_ROWS,
            "language": [language] * MEMORY_ROWS,
            "exec_time": [180] * MEMORY_ROWS,
            "clients": [clients] * MEMORY_ROWS,
            "cpu": np.round(rng.gamma(1.0, 2.0, MEMORY_ROWS), 1),
            "memory": memory + 4096 * rng.integers(0, 4, MEMORY_ROWS),
        }
    )


def _launcher(begun: datetime.datetime, rng: np.random.Generator) -> pl.DataFrame:
    """Return memory samples of the launcher, which is a shell script and not the node."""
    return pl.DataFrame(
        {
            "exec": [1] * LAUNCHER_ROWS,
            "label": ["x"] * LAUNCHER_ROWS,
            "timestamp": _stamps(begun, LAUNCHER_ROWS, 530).dt.timestamp("ms") // 1000,
            "cpu": np.round(rng.gamma(1.0, 2.0, LAUNCHER_ROWS), 1),
            "mem": [2300] * LAUNCHER_ROWS,
        }
    )
