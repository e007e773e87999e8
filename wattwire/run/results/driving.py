"""Compute the drift of a robot that obeys the messages of a flow as its commands.

The robot is the flow's first receiver. Its path follows from the arrivals at this node, converted
to the clock of the sender. A constant error of the conversion has no effect, but an error of the
clocks' rate shifts the last lap.
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
from wattwire.stats.motion.drive_path import (
    Drift,
    DrivePath,
    FloatArray,
    drive_path,
    lap_drift,
    since_begin,
    watchdog_stops,
)

SECOND_NS = 1_000_000_000
DRAWN_S = 0.1
"""Time between the positions that run.json stores for the figure of the paths (s)."""
MESSAGE = "message"


class DriveTally:
    """The commands that arrived, accumulated from parts of a run's ledger.

    `band_ns` is the largest error (ns) of a time from the sender to the robot.
    """

    def __init__(
        self, drive: Drive, flow: Flow, period_ns: int, duration_s: float, band_ns: int = 0
    ) -> None:
        self._drive, self._flow = drive, flow
        self._period_s, self._laps = period_ns / SECOND_NS, drive.laps(duration_s)
        self._late_is_known = band_ns <= period_ns
        self._commands = self._laps * len(drive.velocities(self._period_s))
        self._arrivals: list[pl.DataFrame] = []
        self._sent = self._late = self._lost = 0

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
        is_of_laps = pl.col("counter") < self._commands
        self._sent += commands.filter(is_of_laps)["counter"].n_unique()
        self._lost += commands.filter(pl.col("fate").is_in(MISSING)).height
        latency_us = commands["latency_us"].drop_nulls()
        is_late = latency_us.is_finite() & (latency_us > self._period_s * 1e6)
        self._late += int(is_late.sum())

    def path(self) -> DrivePath | None:
        """Return the path from the begin of the first lap; None if no command arrived."""
        return path_of_arrivals(self._drive, self._period_s, *self._arrived())

    def _arrived(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the commands that arrived, and their arrivals (ns)."""
        if not self._arrivals:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        arrivals = pl.concat(self._arrivals).sort("end_ns")
        return arrivals["counter"].to_numpy(), arrivals["end_ns"].to_numpy()

    def summary(self) -> Columns:
        """Return the columns of the drive.

        The drift and the end are None if no command arrived, and if the sender sent fewer commands
        than the laps have, because the delivery does not cause such a drift.
        """
        path, end_s = self.path(), self._laps * self._drive.lap_s
        columns: Columns = {
            "commands_late": self._late if self._late_is_known else None,
            "commands_lost": self._lost,
            "commands_unsent": self._commands - self._sent,
        }
        if path is None:
            return columns
        arrived_s = _since_begin(self._period_s, *self._arrived())
        columns["watchdog_stops"] = watchdog_stops(arrived_s, self._drive.watchdog_s, end_s)
        if columns["commands_unsent"]:
            return columns
        drift = lap_drift(path, self._drive.lap_s, self._laps)
        if isinstance(drift, Drift):
            columns |= {
                "drift_mean_m": drift.mean_m, "drift_p95_m": drift.p95_m, "drift_max_m": drift.max_m
            }  # fmt: skip
        x_m, y_m, heading_rad = path.poses(np.array([end_s]))[0]
        return columns | {
            "drive_end_x_m": float(x_m),
            "drive_end_y_m": float(y_m),
            "drive_end_heading_deg": float(np.degrees(heading_rad)),
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
    """Return the path of the commands `counters`, which arrived at `arrived_ns`; None without."""
    if not counters.size:
        return None
    velocities = np.array(drive.velocities(period_s))[counters % len(drive.velocities(period_s))]
    arrived_s = _since_begin(period_s, counters, arrived_ns)
    path = drive_path(arrived_s, velocities[:, 0], velocities[:, 1], drive.watchdog_s)
    return path if isinstance(path, DrivePath) else None


def _since_begin(period_s: float, counters: np.ndarray, arrived_ns: np.ndarray) -> FloatArray:
    """Return when commands arrived (s) from the begin of the first lap; there is at least one."""
    return since_begin((arrived_ns - arrived_ns.min()) / SECOND_NS, counters * period_s)
