"""The three ways of waiting for a reply, in whole runs of the study stairway."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

NEEDED = (
    "/usr/bin/rosmaster", "/usr/include/ros/ros.h", "/usr/include/std_msgs/String.h",
    "/usr/lib/python3/dist-packages/rospy/__init__.py",
    "/usr/lib/python3/dist-packages/std_msgs/__init__.py",
)  # fmt: skip
ABSENT = [path for path in NEEDED if not Path(path).exists()]
pytestmark = [
    pytest.mark.quiet,
    pytest.mark.skipif(bool(ABSENT), reason=f"ROS 1 is not installed: {ABSENT}"),
]
HANG_S = 300
TICK_US = 10_000


@pytest.mark.parametrize(
    ("language", "waits"),
    [("python", ["callback", "poll", "rate"]), ("cpp", ["callback", "rate"])],
)
def test_a_wait_with_a_sleep_takes_at_least_a_tick(
    tmp_path: Path, language: str, waits: list[str]
) -> None:
    """No upper limit is asserted, because a loaded machine may delay any reply.

    After a delay, rospy.Rate does not sleep until it has caught up, so only the longest is a tick.
    """
    campaign = tmp_path / "campaign"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "wattwire", "run", "stairway", "--preset", "smoke", "--look"),
            *("--only", f"language={language}", "--campaign", str(campaign), "--no-report"),
        ],
        env=dict(os.environ), capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    summary = pl.read_parquet(campaign / "summary.parquet", glob=False)
    assert sorted(summary["factor.settings.wait"].to_list()) == waits
    assert summary["lost"].to_list() == [0] * len(waits)
    for row in summary.iter_rows(named=True):
        folder = campaign / "runs" / f"{row['run']}-{row['attempt']}"
        messages = pl.read_parquet(folder / "messages.parquet", glob=False)
        longest_us = (messages["end_ns"] - messages["begin_ns"]).max() / 1000
        assert row["factor.settings.wait"] == "callback" or longest_us >= TICK_US, longest_us
