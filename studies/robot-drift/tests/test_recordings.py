"""Test what `wattwire import robot-drift DIR` reads in recordings with planted motion."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from wattwire.cli.main import main
from wattwire.imports import Match
from wattwire.model.errors import UsageError

CHECKOUT = "WATTWIRE_ROBOT_RECORDINGS"
"""Variable with the path of the authors' repository at commit d1667ca."""


def rows(imported):
    return {row["factor.middleware"]: row for row in imported.runs.iter_rows(named=True)}


def refused(study, folder, recipe="default") -> str:
    with pytest.raises(UsageError) as caught:
        study.read(folder, recipe)
    return str(caught.value)


def test_a_recording_has_its_laps_speeds_and_corners(study, planted, tmp_path):
    planted.write(tmp_path, "zenoh", planted.square(5))
    row = rows(study.read(tmp_path, "default"))["zenoh"]
    assert row["laps_found"] == 5
    assert row["lap_s"] == pytest.approx(24.0, abs=0.06)
    assert row["speed_m_per_s"] == pytest.approx(planted.speed, rel=0.01)
    assert row["turn_deg_per_s"] == pytest.approx(planted.turn_deg, rel=0.01)
    assert row["side_m"] == pytest.approx(3 * planted.speed, abs=0.02)
    assert row["corner_deg"] == pytest.approx(90.0, abs=1.0)
    assert row["drift_max_m"] < 0.02


def test_the_drift_is_that_of_the_planted_rotation(study, planted, tmp_path):
    # A turn of 29.5 °/s loses 1.5° per corner, 6° per lap.
    poses = planted.square(4, corner_deg_per_s=29.5)
    planted.write(tmp_path, "mqtt", poses)
    row = rows(study.read(tmp_path, "default"))["mqtt"]
    begin = 400  # poses of the wait, at 100 Hz
    first, last = (poses[begin + lap * 2400 :][:2400, 1:3] for lap in (0, 3))
    expected = np.hypot(*(last - first).T)
    assert row["drift_mean_m"] == pytest.approx(expected.mean(), rel=0.03)
    assert row["drift_max_m"] == pytest.approx(expected.max(), rel=0.05)


def test_the_recipe_selects_the_lap_that_is_compared(study, planted, tmp_path):
    planted.write(tmp_path, "mqtt", planted.square(5, corner_deg_per_s=29.5))
    fourth, last = (rows(study.read(tmp_path, name))["mqtt"] for name in ("default", "last"))
    assert last["drift_mean_m"] > 1.1 * fourth["drift_mean_m"]


@pytest.mark.parametrize(("least", "words"), [("zenoh", "bear out"), ("mqtt", "contradict")])
def test_the_remark_states_whether_the_smallest_drift_is_that_of_the_paper(
    study, planted, tmp_path, least, words
):
    other = {"zenoh": "mqtt", "mqtt": "zenoh"}[least]
    planted.write(tmp_path, least, planted.square(4, corner_deg_per_s=29.9))
    planted.write(tmp_path, other, planted.square(4, corner_deg_per_s=29.0))
    imported = study.read(tmp_path, "default")
    (remark,) = [remark for remark in imported.remarks if remark.title == "The smallest drift"]
    assert words in remark.text and "no interval" in remark.text and remark.at_top


def test_printed_velocities_are_compared_with_those_that_were_driven(study, planted, tmp_path):
    planted.write(tmp_path, "zenoh", planted.square(4, scale=1.1))
    matches = {(check.published, check.match) for check in study.read(tmp_path, "default").checks}
    assert matches == {("0.33", Match.EXACT), ("30", Match.EXACT)}
    planted.write(tmp_path, "zenoh", planted.square(4))
    matches = {check.published: check.match for check in study.read(tmp_path, "default").checks}
    assert matches["0.33"] is Match.DIFFERS


def test_a_recording_without_poses_is_refused(study, planted, tmp_path):
    path = planted.write(tmp_path, "zenoh", planted.square(4)[:0])
    assert f"{path}: found no pose; allowed: " in refused(study, tmp_path)
    planted.write(tmp_path, "zenoh", planted.square(4)[:10], columns=("a", *planted.columns[1:]))
    assert "found 0 columns …/header/stamp; allowed: one" in refused(study, tmp_path)
    path.write_text("")
    assert f"{path}: found no table of poses" in refused(study, tmp_path)


def test_a_recording_whose_time_runs_back_is_refused(study, planted, tmp_path):
    poses = planted.square(4)
    poses[[500, 501]] = poses[[501, 500]]
    planted.write(tmp_path, "zenoh", poses)
    message = refused(study, tmp_path)
    assert "time runs back from 1689261209.010000 s to 1689261209.000000 s at pose 502" in message


def test_poses_that_are_no_numbers_are_left_out(study, planted, tmp_path):
    poses = planted.square(4)
    planted.write(tmp_path, "zenoh", poses)
    whole = rows(study.read(tmp_path, "default"))["zenoh"]
    poses[1000:1010, 1] = np.nan
    poses[1500, 3] = np.nan
    planted.write(tmp_path, "zenoh", poses)
    row = rows(study.read(tmp_path, "default"))["zenoh"]
    for column in ("drift_mean_m", "drift_max_m", "side_m", "corner_deg"):
        assert row[column] == pytest.approx(whole[column], abs=1e-3)


def test_a_gap_within_the_laps_is_refused(study, planted, tmp_path):
    poses = planted.square(4)
    planted.write(tmp_path, "zenoh", np.delete(poses, slice(1000, 1030), axis=0))
    message = refused(study, tmp_path)
    assert "found no pose for 0.310 s after 1689261213.990000 s, within the laps" in message
    assert "allowed: 0.25 s at most" in message
    planted.write(tmp_path, "zenoh", np.delete(poses, slice(1000, 1020), axis=0))
    study.read(tmp_path, "default")
    planted.write(tmp_path, "zenoh", np.delete(poses, slice(10050, 10150), axis=0))
    study.read(tmp_path, "default")  # after the last lap, as in the authors' recording of Fast DDS


def test_two_recordings_of_a_middleware_are_refused(study, planted, tmp_path):
    for name in ("zenoh_1", "zenoh_2"):
        planted.write(tmp_path, name, planted.square(4))
    message = refused(study, tmp_path)
    assert "found two recordings of zenoh: experiment/zenoh_1_square_datarange.csv and" in message
    assert "allowed: one recording per middleware" in message


@pytest.mark.parametrize(("laps", "sides"), [(1, 4), (0, 0)])
def test_a_recording_of_fewer_than_two_laps_is_refused(study, planted, tmp_path, laps, sides):
    poses = planted.square(1) if laps else planted.square(1)[:300]
    planted.write(tmp_path, "zenoh", poses)
    message = refused(study, tmp_path)
    assert f"found {sides} sides of a square, which are {laps} whole laps" in message
    assert "allowed: 2 laps or more" in message


def test_a_folder_without_recordings_names_the_commit_that_has_them(study, tmp_path):
    assert "git checkout d1667ca" in refused(study, tmp_path)


def test_the_import_prints_the_drift_of_each_recording(planted, tmp_path, capsys):
    planted.write(tmp_path, "zenoh", planted.square(4, corner_deg_per_s=29.9))
    planted.write(tmp_path, "mqtt", planted.square(4, corner_deg_per_s=29.0))
    assert main(["import", "robot-drift", str(tmp_path), "--campaign", str(tmp_path / "c")]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "2 of 2 runs are valid" in printed
    assert "In the recordings, the mean distance of the last lap from the first is" in printed


@pytest.mark.skipif(
    not os.environ.get(CHECKOUT),
    reason=f"needs {CHECKOUT}: a checkout of the authors' repository at commit d1667ca",
)
def test_the_recordings_of_the_authors_bear_out_the_smallest_drift(study):
    imported = study.read(Path(os.environ[CHECKOUT]), "default")
    found = rows(imported)
    assert set(found) == {"cyclonedds", "fastdds", "mqtt", "zenoh"}
    assert min(found, key=lambda name: found[name]["drift_mean_m"]) == "zenoh"
    for row in found.values():
        assert row["laps_found"] >= 4 and row["lap_s"] == pytest.approx(24.0, abs=0.1)
        assert 0.30 < row["speed_m_per_s"] < 0.33 and row["turn_deg_per_s"] < 30
