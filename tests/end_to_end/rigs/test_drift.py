"""Test a robot's path from arrivals against the emulator's log, and its drift against jitter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.end_to_end.rigs.kills import PLACEMENT
from wattwire.cli.main import main
from wattwire.hosts import namespaces
from wattwire.links.loads import apply_between_ends
from wattwire.model.errors import MissingError
from wattwire.model.links.profile import read_link
from wattwire.model.study.drive import Drive, Leg
from wattwire.rig.emulator import find_emulator
from wattwire.rig.emulator_log import FRAME, Fate, read_log
from wattwire.run.results.driving import path_of_arrivals
from wattwire.stats.motion.drive_path import Drift, lap_drift
from wattwire.store import Campaign

pytestmark = pytest.mark.quiet

SECOND_NS = 1_000_000_000
RATE_HZ, DURATION_S = 20, 6.0
PAYLOAD_BYTES = 64
FRAME_BYTES = PAYLOAD_BYTES + 8 + 20 + 14
"""A datagram with the headers of UDP, IPv4 and Ethernet."""
JITTERS_MS = (0, 5, 20, 50)
NEAR_M = 0.005
LINK = {"title": "T", "summary": "S"}
LINK_FILE = 'title = "T"\nsummary = "S"\n[both]\ndelay_ms = 60\njitter_ms = 20\n'
RIG = """
[hosts]
robot = {kind = "netns"}
edge = {kind = "netns"}
[networks.jittery]
link = "jittery"
near = ["robot"]
"""
STUDY = f"""
title = "A robot over a link"
[fixed]
cell = "udp/cpp"
placement = "apart"
pattern = "topic"
payload_bytes = {PAYLOAD_BYTES}
rate_hz = {RATE_HZ}
[drive]
legs = [{{ seconds = 0.25, m_per_s = 0.5 }}, {{ seconds = 0.5, deg_per_s = 180.0 }}]
repeats = 4
[plan]
blocks = 1
duration_s = {DURATION_S}
baseline_s = 0.1
linger_ms = 500
quiet_wait_s = 5.0
"""


def commands_on_link(log: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the delivered commands and when the link delivered them (ns)."""
    records = read_log(log)
    frames = np.sort(records[records["size_bytes"] == FRAME_BYTES], order="in_ns")
    delivered = frames["fate"] == Fate.DELIVERED
    arrived_ns = frames["out_ns"][delivered].astype(np.int64)
    order = np.argsort(arrived_ns, kind="stable")
    return np.flatnonzero(delivered)[order], arrived_ns[order]


def test_the_path_from_arrivals_is_that_of_the_frames_which_the_link_delivered(
    tmp_path, monkeypatch
):
    try:
        find_emulator()
        namespaces.user_namespace()
        namespaces.require_tap_devices()
    except MissingError as error:
        pytest.skip(str(error))
    link = tmp_path / "root" / "links" / "jittery"
    link.mkdir(parents=True)
    (link / "link.toml").write_text(LINK_FILE)
    (tmp_path / "rig.toml").write_text(RIG + PLACEMENT)
    (tmp_path / "study.toml").write_text(STUDY)
    arguments = [str(tmp_path / "study.toml"), "--rig", str(tmp_path / "rig.toml"), "--plain"]
    monkeypatch.setenv("WATTWIRE_PATH", str(tmp_path / "root"))
    main(["run", *arguments, "--campaign", str(tmp_path / "c"), "--no-report"])
    campaign = Campaign(tmp_path / "c")
    rows = list(campaign.rows())
    assert {"", "a", "b", "unsampled"} == {row["control"] for row in rows}
    # On a busy machine, the node reads its socket long after the link has delivered the frame.
    valid = [row for row in rows if row["verdict"] == "valid"]
    for row in valid:
        counters, arrived_ns = commands_on_link(
            campaign.path / "runs" / f"{row['run']}-{row['attempt']}" / "frames.log"
        )
        assert len(counters) == RATE_HZ * DURATION_S
        path = path_of_arrivals(campaign.study.drive, 1 / RATE_HZ, counters, arrived_ns)
        drawn = campaign.run(row["run"])["drive"]
        positions = np.stack([drawn["x_m"], drawn["y_m"]], axis=1)
        expected = path.poses(np.arange(len(positions)) * drawn["step_s"])[:, :2]
        assert np.hypot(*(positions - expected).T).max() <= NEAR_M, (row["run"], row["control"])
    campaign.close()
    if not valid:
        pytest.skip("other programs used the machine during every run")


@pytest.mark.parametrize("seed", range(1, 21))
def test_more_jitter_of_the_link_causes_more_drift(seed):
    drive = Drive((Leg(3.0, 1 / 3, 0.0), Leg(3.0, 0.0, 30.0)), repeats=4)
    frames = np.zeros(480, FRAME)
    frames["at_ns"] = SECOND_NS + np.arange(len(frames)) * (SECOND_NS // 10)
    frames["size_bytes"], frames["target"] = FRAME_BYTES, 1
    means_m = []
    for jitter_ms in JITTERS_MS:
        delays = {"delay_ms": 60, "jitter_ms": jitter_ms}
        link = read_link("jittery", {**LINK, "both": delays}, "link.toml", str)
        out_ns = apply_between_ends(link, seed, frames)["out_ns"].astype(np.int64)
        path = path_of_arrivals(drive, 0.1, np.arange(len(out_ns)), out_ns)
        drift = lap_drift(path, drive.lap_s, drive.laps(48.0))
        assert isinstance(drift, Drift)
        means_m.append(drift.mean_m)
    assert means_m[0] <= 1e-6
    assert means_m == sorted(set(means_m))
