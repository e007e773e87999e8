"""Test that durations are stored for forecasts, and that invalid files are ignored."""

from __future__ import annotations

import os

import pytest

from wattwire.rig import observed as module
from wattwire.rig.observed import KEPT, Observed, ObservedRun, note_build, note_run, observed

NAME = "middle/language"
READY = {"library": {"name": "l", "version": "2"}, "guarantee": {"delivery": "reliable"}}


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("WATTWIRE_CACHE", str(tmp_path))
    return tmp_path


def test_nothing_is_known_at_first():
    assert observed(NAME) == Observed()
    assert observed(NAME).typical_build_s() is None
    assert observed(NAME).overhead_s(2, 0.5) is None and observed(NAME).call_s(2) is None


def test_the_median_of_the_latest_is_kept():
    for seconds in (100.0, *([12.0] * KEPT)):
        note_build(NAME, seconds)
    note_run(NAME, ObservedRun(2, 3.0), READY)
    note_run(NAME, ObservedRun(2, 5.0, 0.04), {})
    known = observed(NAME)
    assert len(known.build_s) == KEPT and known.typical_build_s() == 12.0
    assert known.overhead_s(2, 0.5) == 4.0
    assert known.call_s(9) == 0.04
    assert known.ready == READY
    assert observed("middle/other") == Observed()


def test_more_nodes_take_longer_than_those_that_were_seen():
    note_run(NAME, ObservedRun(2, 3.0), {})
    assert observed(NAME).overhead_s(8, 0.5) == pytest.approx(0.5 + 2.5 * 4)
    note_run(NAME, ObservedRun(9, 11.0), {})
    assert observed(NAME).overhead_s(9, 0.5) == 11.0


def test_a_thousand_nodes_take_longer_even_if_two_start_faster_than_the_base():
    note_run(NAME, ObservedRun(2, 1.2), {})
    assert observed(NAME).overhead_s(2002, 1.5, 0.02) == pytest.approx(1.2 + 2000 * 0.02)


def test_the_highest_rate_of_runs_that_missed_their_rate_is_kept():
    note_run(NAME, ObservedRun(2, 1.0), {})
    assert observed(NAME).reached_hz(2) is None
    for rate_hz in (40_000.0, 30_000.0, None):
        note_run(NAME, ObservedRun(2, 1.0, None, rate_hz), {})
    assert observed(NAME).reached_hz(2) == 40_000.0
    note_run(NAME, ObservedRun(9, 1.0, None, 5_000.0), {})
    assert observed(NAME).reached_hz(9) == 5_000.0, "eight clients share the CPUs"
    assert observed(NAME).reached_hz(8) == 40_000.0
    assert observed(NAME).reached_hz(1) is None


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"build_s": [-1], "runs": [], "ready": {}}',
     '{"build_s": ["x"], "runs": [], "ready": {}}', '{"build_s": [], "runs": [1], "ready": {}}'],
)  # fmt: skip
def test_a_damaged_file_says_nothing_and_is_replaced(folder, text):
    note_build(NAME, 1.0)
    (path,) = (folder / module.FOLDER).iterdir()
    path.write_text(text)
    assert observed(NAME) == Observed()
    note_build(NAME, 2.0)
    assert observed(NAME).build_s == (2.0,)


def test_a_cache_that_cannot_be_written_keeps_nothing(folder):
    (folder / module.FOLDER).write_text("a file where the folder would be")
    note_build(NAME, 1.0)
    assert observed(NAME) == Observed()
    assert os.listdir(folder) == [module.FOLDER]
