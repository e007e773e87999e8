"""Test that a kill at a random time loses at most the current run.

The module random_kills executes more kills than this test.
"""

from __future__ import annotations

import shutil

import pytest

from tests.end_to_end.random_kills import KINDS, Setting, kill_many

pytestmark = pytest.mark.quiet

KILLS = 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_lost_or_done_twice_or_left_behind(kind, tmp_path):
    if shutil.which("mosquitto", path="/usr/sbin:/usr/bin:/usr/local/sbin") is None:
        pytest.skip("mosquitto is not installed: the campaigns here run through a broker")
    for seen in kill_many(kind, KILLS, Setting(), tmp_path, seed=7):
        assert seen.problems == [], (seen.phase, seen.after_s)
