"""Read the authors' motion-capture recordings of a robot: laps, speeds and drift of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from wattwire.imports import Check, Imported
from wattwire.imports.agreement import agrees, close
from wattwire.imports.imported import Match, Remark, SetAside

from .recording import Driven, driven, find, read_poses

RECIPES = {
    "default": "the first and the fourth lap, as the paper's 96 s, from the first motion on",
    "last": "the first and the last whole lap of each recording",
}
PAPER_LAPS = 4
SPEED, TURN = "speed_m_per_s", "turn_deg_per_s"
PRINTED = {SPEED: "0.33", TURN: "30"}
"""Velocities that the caption of figure 4 states."""
NAMES = {"cyclonedds": "CycloneDDS", "fastdds": "Fast DDS", "mqtt": "MQTT", "zenoh": "Zenoh"}
PAPER_LEAST = "zenoh"
COLUMNS = {
    "laps_found": {"unit": "", "kind": "measured", "summary": "whole laps in the recording"},
    "lap_s": {"unit": "s", "kind": "measured",
              "summary": "median time between the begins of sides, four sides apart"},
    SPEED: {"unit": "m/s", "kind": "measured", "summary": "median speed on the sides"},
    TURN: {"unit": "°/s", "kind": "measured", "summary": "median rate of the turns"},
    "side_m": {"unit": "m", "kind": "measured", "summary": "median length of a side"},
    "corner_deg": {"unit": "°", "kind": "measured", "summary": "median angle of a turn"},
}  # fmt: skip


def read(source: Path, recipe: str) -> Imported:
    """Return the recordings below `source` as a campaign of one run each.

    Raises UsageError if there is none, if there are two of a middleware, or if one has no poses, a
    time that runs back, a gap within its laps, or fewer than two laps.
    """
    files = find(source)
    recordings = {name: driven(read_poses(path), path) for name, path in files.items()}
    laps = {name: _laps(recording, recipe) for name, recording in recordings.items()}
    rows = [
        _row(position, name, recordings[name], laps[name])
        for position, name in enumerate(recordings, 1)
    ]
    runs = pl.DataFrame(rows)
    checks = tuple(_checks(recordings, recipe))
    return Imported(
        study=_study(list(recordings)),
        runs=runs,
        provenance=_provenance(rows, files, recordings, source, laps),
        set_aside=tuple(_unused(source, files)),
        columns=COLUMNS,
        checks=checks,
        remarks=tuple(_remarks(recordings, rows)),
        machine={
            "hosts": {"the authors' robot": {"facts": [
                {"key": "robot", "value": "TurtleBot 4, OptiTrack motion capture", "unit": "",
                 "check": "report"},
            ], "meters": []}},
            "titles": {"middleware": NAMES},
        },
    )  # fmt: skip


def _laps(recording: Driven, recipe: str) -> int:
    """Return the number of the lap that is compared with the first one."""
    return recording.laps if recipe == "last" else min(PAPER_LAPS, recording.laps)


def _row(position: int, name: str, recording: Driven, laps: int) -> dict[str, Any]:
    drift = recording.drift(laps)
    return {
        "run": f"recording-{name}", "attempt": 1, "block": 1, "position": position,
        "verdict": "valid", "outcome": "completed", "used": True, "control": "",
        "factor.middleware": name,
        "drift_mean_m": drift.mean_m, "drift_p95_m": drift.p95_m, "drift_max_m": drift.max_m,
        "laps_found": recording.laps, "lap_s": recording.lap_s,
        SPEED: recording.speed_m_per_s, TURN: recording.turn_deg_per_s,
        "side_m": recording.side_m, "corner_deg": recording.corner_deg,
    }  # fmt: skip


def _study(names: list[str]) -> Mapping[str, Any]:
    return {
        "name": "robot-drift",
        "title": "Drift of a robot, as Zhang et al. recorded it",
        "source": "10.48550/arXiv.2309.07496",
        "question": [
            {"id": "RD1", "factors": ["middleware"], "responses": ["drift_mean_m", "drift_max_m"],
             "text": "Which middleware causes the least drift?"},
        ],
        "factors": {"middleware": names},
        "fixed": {"pattern": "topic"},
        "plan": {"primary": "middleware", "blocks": 1},
        "answers": {"baseline": {"middleware": names[0]}},
    }  # fmt: skip


def _provenance(
    rows: list[dict[str, Any]],
    files: Mapping[str, Path],
    recordings: Mapping[str, Driven],
    source: Path,
    laps: Mapping[str, int],
) -> pl.DataFrame:
    entries = []
    for row in rows:
        name = row["factor.middleware"]
        recording = recordings[name]
        for column in row:
            if not (column.startswith("drift_") or column in COLUMNS):
                continue
            is_drift = column.startswith("drift_")
            used = recording.poses_of_laps(laps[name]) if is_drift else recording.poses
            how = f"lap {laps[name]} against lap 1, at equal times" if is_drift else "all poses"
            entries.append(
                {"run": row["run"], "column": column,
                 "files": [files[name].relative_to(source).as_posix()], "rows_used": used,
                 "rows_left_out": recording.poses - used, "how": how}
            )  # fmt: skip
    return pl.DataFrame(entries)


def _unused(source: Path, files: Mapping[str, Path]) -> Iterator[SetAside]:
    known = set(files.values())
    for path in sorted(source.rglob("*.csv")):
        if path not in known:
            yield SetAside(path.relative_to(source).as_posix(), 0, "no recording of a drive")


def _checks(recordings: Mapping[str, Driven], recipe: str) -> Iterator[Check]:
    """Yield the velocities of figure 4, with those that the robot drove."""
    for name, recording in recordings.items():
        for column, printed in PRINTED.items():
            value = recording.speed_m_per_s if column == SPEED else recording.turn_deg_per_s
            match = (
                Match.EXACT
                if agrees(printed, value)
                else Match.WITHIN_1_PERCENT
                if close(printed, value)
                else Match.DIFFERS
            )
            explanation = "" if match is Match.EXACT else "the command, not the motion"
            yield Check(
                "Figure 4", {"recording": NAMES.get(name, name), "column": column}, printed, value,
                match, recipe, explanation=explanation,
            )  # fmt: skip


def _remarks(recordings: Mapping[str, Driven], rows: list[dict[str, Any]]) -> Iterator[Remark]:
    drifts = {row["factor.middleware"]: row["drift_mean_m"] for row in rows}
    ranked = sorted(drifts, key=lambda name: drifts[name])
    least = ranked[0]
    listed = ", ".join(f"{NAMES.get(name, name)} {100 * drifts[name]:.1f} cm" for name in ranked)
    claim = "the drift of Zenoh is the smallest"
    if PAPER_LEAST not in drifts:
        text = f"No recording of Zenoh is here, so they cannot show that {claim}."
    elif least == PAPER_LEAST:
        text = f"The recordings bear out the paper's claim that {claim}."
    else:
        text = f"The recordings contradict the paper's claim that {claim}."
    yield Remark(
        "The smallest drift",
        f"{text} Mean distance of the laps: {listed}. Each middleware has one recording, so there "
        "is no interval: another drive with the same middleware may differ as much.",
        at_top=True,
    )
    speeds = [recording.speed_m_per_s for recording in recordings.values()]
    corners = [recording.corner_deg for recording in recordings.values()]
    yield Remark(
        "Driven speeds",
        f"The robot drove {min(speeds):.3f} to {max(speeds):.3f} m/s on the sides, and turned by "
        f"{min(corners):.1f}° to {max(corners):.1f}° at a corner. The paper states the commands: "
        "0.33 m/s, and 30 °/s for a square. The robot's own motion adds to the drift.",
        at_top=True,
    )
    counts = {name: recording.laps for name, recording in recordings.items()}
    listed = ", ".join(f"{NAMES.get(name, name)} {count}" for name, count in counts.items())
    poses = [recording.poses_of_laps(1) // 2 for recording in recordings.values()]
    yield Remark(
        "Number of laps",
        f"The paper compares four laps in 96 s, with 2200 frames. Whole laps found in the "
        f"recordings: {listed}. The first lap has {min(poses)} to {max(poses)} poses.",
    )
