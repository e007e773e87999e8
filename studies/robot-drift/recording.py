"""Read a motion-capture recording, and find the sides, turns and laps that the robot drove.

A recording has a row per pose, with columns of a converted rosbag:
/…/pose/header/stamp (s), /…/pose/pose/position/x and y (m), /…/pose/pose/orientation/yaw_deg.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from wattwire.model.errors import UsageError
from wattwire.stats.motion.drive_path import INSTANTS, Drift, distances

FloatArray = npt.NDArray[np.float64]
COMMIT = "d1667ca"
"""Commit of the authors' repository whose tree has the recordings."""
ENDING = "_datarange.csv"
TIME, X, Y, YAW = "header/stamp", "pose/position/x", "pose/position/y", "pose/orientation/yaw_deg"
SIDES = 4
LAPS_MIN = 2
STEP_S, SPAN_S = 0.05, 0.25
"""Step of the times at which velocities are computed, and the span of each difference (s)."""
MOVING_SHARE = 0.5
"""A robot moves on a side if its speed exceeds this share of the 95th percentile of speeds."""
SIDE_MIN_S = 1.0
"""Shortest side: shorter motions, such as those of a person who carries the robot, are none."""


@dataclass(frozen=True)
class Poses:
    """Poses of a recording by ascending time (s): positions (m) and unwrapped heading (°)."""

    time_s: FloatArray
    x_m: FloatArray
    y_m: FloatArray
    heading_deg: FloatArray

    def positions(self, at_s: FloatArray) -> FloatArray:
        """Return the positions (m) at times (s), interpolated: shape [times, 2]."""
        return np.stack(
            [np.interp(at_s, self.time_s, values) for values in (self.x_m, self.y_m)], axis=1
        )

    def heading(self, at_s: FloatArray) -> FloatArray:
        """Return the heading (°) at times (s), interpolated."""
        return np.interp(at_s, self.time_s, self.heading_deg)


@dataclass(frozen=True)
class Driven:
    """What the robot of a recording drove. A lap has four sides; the first begins at `begin_s`."""

    recording: Poses
    begin_s: float
    lap_s: float
    laps: int
    speed_m_per_s: float
    turn_deg_per_s: float
    side_m: float
    corner_deg: float

    @property
    def poses(self) -> int:
        """Return the number of poses of the recording."""
        return len(self.recording.time_s)

    def poses_of_laps(self, last: int) -> int:
        """Return the number of poses in the first and the `last` lap."""
        begins_s = [self.begin_s, self.begin_s + (last - 1) * self.lap_s]
        time_s = self.recording.time_s
        return int(sum(((time_s >= b) & (time_s < b + self.lap_s)).sum() for b in begins_s))

    def drift(self, last: int) -> Drift:
        """Return the distances of lap `last` from the first one at equal times."""
        within_s = self.begin_s + (np.arange(INSTANTS) + 0.5) * (self.lap_s / INSTANTS)
        first = self.recording.positions(within_s)
        return distances(first, self.recording.positions(within_s + (last - 1) * self.lap_s))


def find(source: Path) -> dict[str, Path]:
    """Return the recordings below a checkout by the first word of their names, sorted.

    Raises UsageError if there is none, or if two names begin with the same word.
    """
    paths = sorted(source.rglob(f"*{ENDING}")) if source.is_dir() else []
    if not paths:
        raise UsageError(
            f"{source}: found no recording *{ENDING}; give a checkout of the authors' repository "
            f"at commit {COMMIT} (git checkout {COMMIT}), whose later commits have none"
        )
    recordings: dict[str, Path] = {}
    for path in paths:
        name = path.name.partition("_")[0]
        other = recordings.setdefault(name, path)
        if other != path:
            raise UsageError(
                f"{source}: found two recordings of {name}: {other.relative_to(source)} and "
                f"{path.relative_to(source)}; allowed: one recording per middleware, as in the "
                "paper. Move one of them out of the folder"
            )
    return recordings


def read_poses(path: Path) -> Poses:
    """Return the poses of a recording. Raises UsageError without poses or if time runs back."""
    try:
        frame = pl.read_csv(path, glob=False)
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: found no table of poses ({error})") from error
    columns = {}
    for ending in (TIME, X, Y, YAW):
        names = [name for name in frame.columns if name.endswith(f"/{ending}")]
        if len(names) != 1:
            raise UsageError(
                f"{path}: found {len(names)} columns …/{ending}; allowed: one, of the poses of one "
                "robot"
            )
        columns[ending] = names[0]
    poses = frame.select(pl.col(name).cast(pl.Float64, strict=False) for name in columns.values())
    poses = poses.fill_nan(None).drop_nulls()
    if poses.height == 0:
        raise UsageError(f"{path}: found no pose; allowed: a row with time, x, y and yaw per pose")
    time_s, x_m, y_m, yaw_deg = (poses[name].to_numpy() for name in columns.values())
    back = np.flatnonzero(np.diff(time_s) < 0)
    if back.size:
        raise UsageError(
            f"{path}: time runs back from {time_s[back[0]]:.6f} s to "
            f"{time_s[back[0] + 1]:.6f} s at pose {back[0] + 2}; allowed: poses by "
            "ascending time. Sort them, or export the recording again"
        )
    heading_deg = np.degrees(np.unwrap(np.radians(yaw_deg)))
    return Poses(time_s, x_m, y_m, heading_deg)


def driven(poses: Poses, path: Path) -> Driven:
    """Return the laps, speeds and turns of a recording.

    Raises UsageError for fewer than two laps, and for a gap within the laps that is longer than
    SPAN_S, because interpolation would make up the motion in it.

    A side is a time in which the robot moves faster than half of its usual speed. The lap's time is
    the median time from a side to the fourth one after it.
    """
    at_s = np.arange(poses.time_s[0] + SPAN_S, poses.time_s[-1] - SPAN_S, STEP_S)
    half_s = SPAN_S / 2
    if at_s.size < 2:
        raise _too_few_laps(path, 0)
    steps_m = poses.positions(at_s + half_s) - poses.positions(at_s - half_s)
    speeds = np.hypot(*steps_m.T) / SPAN_S
    is_moving = speeds > MOVING_SHARE * np.quantile(speeds, 0.95)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], is_moving, [False]]).astype(int)))
    sides = [
        (begin, end)
        for begin, end in edges.reshape(-1, 2)
        if at_s[end - 1] - at_s[begin] >= SIDE_MIN_S
    ]
    laps = len(sides) // SIDES
    if laps < LAPS_MIN:
        raise _too_few_laps(path, len(sides))
    begins_s = np.array([at_s[begin] for begin, _ in sides])
    ends_s = np.array([at_s[end - 1] for _, end in sides])
    lap_s = float(np.median(begins_s[SIDES:] - begins_s[:-SIDES]))
    _refuse_gaps(poses, path, begins_s[0], begins_s[0] + laps * lap_s)
    sides_m = np.hypot(*(poses.positions(ends_s + half_s) - poses.positions(begins_s - half_s)).T)
    turned = poses.heading(begins_s[1:]) - poses.heading(ends_s[:-1])
    rates = np.abs(poses.heading(at_s + half_s) - poses.heading(at_s - half_s)) / SPAN_S
    is_turning = ~is_moving & (rates > MOVING_SHARE * np.quantile(rates, 0.95))
    return Driven(
        poses,
        float(begins_s[0]),
        lap_s,
        laps,
        float(np.median(speeds[is_moving])),
        float(np.median(rates[is_turning])),
        float(np.median(sides_m)),
        float(np.median(np.abs(turned))),
    )


def _refuse_gaps(poses: Poses, path: Path, begin_s: float, end_s: float) -> None:
    """Raise UsageError for a gap between poses, longer than SPAN_S, from `begin_s` to `end_s`."""
    before_s, after_s = poses.time_s[:-1], poses.time_s[1:]
    is_in_laps = (after_s > begin_s) & (before_s < end_s)
    gaps = np.flatnonzero((after_s - before_s > SPAN_S) & is_in_laps)
    if gaps.size:
        at = gaps[0]
        raise UsageError(
            f"{path}: found no pose for {after_s[at] - before_s[at]:.3f} s after "
            f"{before_s[at]:.6f} s, within the laps; allowed: {SPAN_S:g} s at most, because the "
            "motion in a gap is unknown. Export the recording again with all its poses, or move it "
            "out of the folder"
        )


def _too_few_laps(path: Path, sides: int) -> UsageError:
    return UsageError(
        f"{path}: found {sides} sides of a square, which are {sides // SIDES} whole laps; allowed: "
        f"{LAPS_MIN} laps or more ({LAPS_MIN * SIDES} sides), whose distance is the drift"
    )
