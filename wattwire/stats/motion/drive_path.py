"""Compute the path of a differential drive from the arrivals of its commands, and its drift.

What it computes: the pose of a robot that obeys the last command that arrived, until the next one
arrives or a watchdog stops it; the distance between two laps at equal times.
How: the velocities are piecewise constant, so each piece is an arc of a circle. The chord of an arc
of length s and angle a is s·sin(a/2)/(a/2), in the direction of the mean heading. Sums of chords
are exact, without steps of an integration.
What it misses: the robot itself. Slip, acceleration and the wheels' controller are not modelled, so
the drift is what the delivery of the commands alone causes.
Reference: Siegwart, Nourbakhsh & Scaramuzza, Introduction to Autonomous Mobile Robots, 2nd ed.,
3.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wattwire.stats.results import TooFew

FloatArray = npt.NDArray[np.float64]
INSTANTS = 2400
"""Number of equally spaced instants of a lap at which two laps are compared."""


@dataclass(frozen=True)
class DrivePath:
    """A path of arcs: the pose at the begin of each arc, and the velocities until the next one.

    All arrays have one entry per arc. `begin_s` (s) ascends from the first arrival. `x_m`, `y_m`
    (m) and `heading_rad` begin at 0. The last arc, whose velocities are 0, has no end.
    """

    begin_s: FloatArray
    x_m: FloatArray
    y_m: FloatArray
    heading_rad: FloatArray
    speed_m_per_s: FloatArray
    turn_rad_per_s: FloatArray

    def poses(self, at_s: FloatArray) -> FloatArray:
        """Return x (m), y (m) and heading (rad) at times (s), of shape [times, 3].

        The robot stands at its first pose until the first arrival.
        """
        arc = np.maximum(np.searchsorted(self.begin_s, at_s, side="right") - 1, 0)
        elapsed_s = np.maximum(at_s - self.begin_s[arc], 0.0)
        turned = self.turn_rad_per_s[arc] * elapsed_s
        dx_m, dy_m = _chord(self.speed_m_per_s[arc] * elapsed_s, turned, self.heading_rad[arc])
        columns = (self.x_m[arc] + dx_m, self.y_m[arc] + dy_m, self.heading_rad[arc] + turned)
        return np.stack(columns, axis=-1)


@dataclass(frozen=True)
class Drift:
    """Distances (m) between two laps at equal times: mean, 95th percentile and greatest."""

    mean_m: float
    p95_m: float
    max_m: float


def since_begin(arrived_s: npt.ArrayLike, due_s: npt.ArrayLike) -> FloatArray:
    """Return arrivals (s) from the begin of the first lap, for commands due at `due_s` (s).

    The lap begins when command 0 would have arrived with the delay of the fastest command. So a
    constant delay has no effect, and neither have the delay and the loss of the first commands.
    """
    arrived = np.asarray(arrived_s, dtype=float)
    return arrived - np.min(arrived - np.asarray(due_s, dtype=float))


def drive_path(
    arrived_s: npt.ArrayLike,
    speed_m_per_s: npt.ArrayLike,
    turn_rad_per_s: npt.ArrayLike,
    watchdog_s: float,
) -> DrivePath | TooFew:
    """Return the path of commands that arrived at `arrived_s` (s), in the order of their arrival.

    The three arrays have an entry per arrival. A command holds until the next arrival, but for
    `watchdog_s` at most; then the robot stands until a command arrives.
    """
    arrived = np.asarray(arrived_s, dtype=float)
    if arrived.size == 0:
        return TooFew(0, 1, "commands that arrived")
    order = np.argsort(arrived, kind="stable")
    arrived = arrived[order]
    speeds = np.asarray(speed_m_per_s, dtype=float)[order]
    turns = np.asarray(turn_rad_per_s, dtype=float)[order]
    gaps_s = np.append(np.diff(arrived), np.inf)
    stops = np.flatnonzero(gaps_s > watchdog_s)
    begin_s = np.insert(arrived, stops + 1, arrived[stops] + watchdog_s)
    speeds, turns = (np.insert(values, stops + 1, 0.0) for values in (speeds, turns))
    lengths_s = np.diff(begin_s)
    turned = turns[:-1] * lengths_s
    heading = np.concatenate([[0.0], np.cumsum(turned)])
    dx_m, dy_m = _chord(speeds[:-1] * lengths_s, turned, heading[:-1])
    x_m, y_m = (np.concatenate([[0.0], np.cumsum(steps)]) for steps in (dx_m, dy_m))
    return DrivePath(begin_s, x_m, y_m, heading, speeds, turns)


def watchdog_stops(arrived_s: npt.ArrayLike, watchdog_s: float, end_s: float) -> int:
    """Return how often the watchdog stopped the robot, after arrivals (s), before `end_s` (s)."""
    arrived = np.sort(np.asarray(arrived_s, dtype=float))
    gaps_s = np.append(np.diff(arrived), np.inf)
    return int(np.count_nonzero((gaps_s > watchdog_s) & (arrived + watchdog_s < end_s)))


def lap_drift(path: DrivePath, lap_s: float, laps: int) -> Drift | TooFew:
    """Return the drift of the last lap from the first one; each lap takes `lap_s` (s)."""
    if laps < 2:
        return TooFew(laps, 2, "laps")
    within_s = (np.arange(INSTANTS, dtype=np.float64) + 0.5) * (lap_s / INSTANTS)
    first, last = path.poses(within_s), path.poses((laps - 1) * lap_s + within_s)
    return distances(first[:, :2], last[:, :2])


def distances(first: FloatArray, last: FloatArray) -> Drift:
    """Return the distances between the positions (m) of two laps, each of shape [times, 2]."""
    apart_m = np.hypot(*(last - first).T)
    return Drift(float(apart_m.mean()), float(np.quantile(apart_m, 0.95)), float(apart_m.max()))


def _chord(
    length_m: FloatArray, turned_rad: FloatArray, heading_rad: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the displacement (m) along x and y of arcs that begin with a heading."""
    chord_m = length_m * np.sinc(turned_rad / (2.0 * np.pi))
    direction = heading_rad + turned_rad / 2.0
    return chord_m * np.cos(direction), chord_m * np.sin(direction)
