"""Compute the drift of a robot that obeys the messages of a flow as its commands.

The robot is the flow's first receiver. Its path follows from the arrivals at this node alone, so
the clocks of other hosts do not matter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from wattwire.model.deployment import Flow
from wattwire.model.ledger import MISSING, LedgerPart
from wattwire.model.sample_codes import FLAG_CORRUPT
from wattwire.model.study.drive import Drive
from wattwire.run.results.tallies import Columns
from wattwire.stats.motion.drive_path import Drift, DrivePath, drive_path, lap_drift, watchdog_stops

SECOND_NS = 1_000_000_000
DRAWN_S = 0.1
"""Time between the positions that run.json stores for the figure of the paths (s)."""
MESSAGE = "message"


class DriveTally:
    """The commands that arrived, accumulated from parts of a run's ledger."""

    def __init__(self, drive: Drive, flow: Flow, period_ns: int, duration_s: float) -> None:
        self._drive, self._flow = drive, flow
        self._period_s, self._laps = period_ns / SECOND_NS, drive.laps(duration_s)
        self._arrivals: list[pl.DataFrame] = []
        self._late = self._lost = 0

    def add(self, part: LedgerPart) -> None:
        """Add one part."""
        flow, records = self._flow, part.records
        robot = flow.receivers[0]
        is_command = (pl.col("node") == robot) & (pl.col("sender") == flow.sender)
        arrived = records.filter(
            is_command,
            pl.col("kind") == MESSAGE,
            pl.col("end_ns").is_not_null(),
            (pl.col("flags") & FLAG_CORRUPT) == 0,
        )
        self._arrivals.append(arrived.select("counter", "end_ns"))
        commands = part.deliveries.filter(is_command)
        self._lost += commands.filter(pl.col("fate").is_in(MISSING)).height
        latency_us = commands["latency_us"].drop_nulls()
        is_late = latency_us.is_finite() & (latency_us > self._period_s * 1e6)
        self._late += int(is_late.sum())

    def path(self) -> DrivePath | None:
        """Return the path from the first command on; None if none arrived."""
        frames = [frame for frame in self._arrivals if frame.height]
        if not frames:
            return None
        arrivals = pl.concat(frames).sort("end_ns")
        return path_of_arrivals(
            self._drive, self._period_s, arrivals["counter"].to_numpy(),
            arrivals["end_ns"].to_numpy(),
        )  # fmt: skip

    def summary(self) -> Columns:
        """Return the columns of the drive; the drift and the end are None if none arrived."""
        path, end_s = self.path(), self._laps * self._drive.lap_s
        columns: Columns = {"commands_late": self._late, "commands_lost": self._lost}
        if path is None:
            return columns
        drift = lap_drift(path, self._drive.lap_s, self._laps)
        if isinstance(drift, Drift):
            columns |= {
                "drift_mean_m": drift.mean_m, "drift_p95_m": drift.p95_m, "drift_max_m": drift.max_m
            }  # fmt: skip
        x_m, y_m, heading_rad = path.poses(np.array([end_s]))[0]
        times_ns = pl.concat(self._arrivals)["end_ns"].to_numpy()
        stops = watchdog_stops((times_ns - times_ns.min()) / SECOND_NS, self._drive.watchdog_s)
        return columns | {
            "drive_end_x_m": float(x_m),
            "drive_end_y_m": float(y_m),
            "drive_end_heading_deg": float(np.degrees(heading_rad)),
            "watchdog_stops": stops,
        }

    def document(self) -> dict[str, Any]:
        """Return `drive` of run.json: the positions of the path (m) at steps of DRAWN_S."""
        path = self.path()
        if path is None:
            return {}
        end_s = self._laps * self._drive.lap_s
        positions = path.poses(np.arange(0.0, end_s + DRAWN_S / 2, DRAWN_S))[:, :2].round(5)
        return {
            "step_s": DRAWN_S, "x_m": positions[:, 0].tolist(), "y_m": positions[:, 1].tolist(),
        }  # fmt: skip


def path_of_arrivals(
    drive: Drive, period_s: float, counters: np.ndarray, arrived_ns: np.ndarray
) -> DrivePath | None:
    """Return the path of the commands `counters`, which arrived at `arrived_ns` (both ordered)."""
    velocities = np.array(drive.velocities(period_s))[counters % len(drive.velocities(period_s))]
    arrived_s = (arrived_ns - arrived_ns[0]) / SECOND_NS
    path = drive_path(arrived_s, velocities[:, 0], velocities[:, 1], drive.watchdog_s)
    return path if isinstance(path, DrivePath) else None
