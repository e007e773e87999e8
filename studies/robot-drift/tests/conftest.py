"""Recordings of a robot that drives squares, written by each test with its own motion."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from wattwire.imports.loading import load

FOLDER = Path(__file__).resolve().parents[1]
PREFIX = "/tracker/robot/pose/"
COLUMNS = ("header/stamp", "pose/position/x", "pose/position/y", "pose/orientation/yaw_deg")
SIDE_S, CORNER_S, SPEED, TURN_DEG = 3.0, 3.0, 0.3, 30.0
WAIT_S = 4.0
RATE_HZ = 100


def square(laps: int, corner_deg_per_s: float = TURN_DEG, scale: float = 1.0) -> np.ndarray:
    """Return time (s), x, y (m) and yaw (°) of a robot that waits, drives `laps` and waits."""
    steps = round(RATE_HZ * SIDE_S)
    is_side = np.tile(np.repeat([True, False], steps), 4 * laps)
    waiting = np.zeros(round(RATE_HZ * WAIT_S), dtype=bool)
    speeds = np.concatenate([waiting, is_side, waiting]) * SPEED * scale
    turns = np.concatenate([waiting, ~is_side, waiting]) * corner_deg_per_s
    yaw_deg = np.cumsum(turns) / RATE_HZ
    x_m, y_m = (np.cumsum(speeds * f(np.radians(yaw_deg))) / RATE_HZ for f in (np.cos, np.sin))
    time_s = 1_689_261_204 + np.arange(len(x_m)) / RATE_HZ
    wrapped_deg = (yaw_deg + 180) % 360 - 180
    return np.stack([time_s, x_m, y_m, wrapped_deg], axis=1)


def write(folder: Path, name: str, poses: np.ndarray, columns: tuple[str, ...] = COLUMNS) -> Path:
    """Write a recording; return its path."""
    path = folder / "experiment" / f"{name}_square_datarange.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [",".join(["__time", *(PREFIX + column for column in columns)])]
    lines += [",".join(f"{value:.6f}" for value in (row[0], *row)) for row in poses]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def study():
    """Return the reader of the study."""
    return load(FOLDER)


@pytest.fixture(scope="session")
def planted():
    """Return the functions that make recordings, and their velocities and columns."""
    return SimpleNamespace(
        square=square, write=write, speed=SPEED, turn_deg=TURN_DEG, columns=COLUMNS
    )
