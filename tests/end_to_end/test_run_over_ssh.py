"""Test a campaign on hosts over ssh, each with a network and shared memory of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Cli
from tests.end_to_end.rigs.ssh_machines import Machines, machines_over_ssh
from wattwire.model.errors import MissingError
from wattwire.store import Campaign

pytestmark = [pytest.mark.slow]

HOSTS = ("robot", "edge", "cloud")
PLACEMENT = """
[placements.apart]
sender = "robot"
relay = "cloud"
receiver = "edge"
service = "cloud"
"""
STUDY = (
    "over-a-link", "--preset", "smoke", "--set", 'network=["lan"]', "--set", "plan.primary=cell",
    "--set", 'cell=["udp/python", "tcp/python"]', "--set", "plan.duration_s=2", "--look", "--yes",
    "--no-report", "--json",
)  # fmt: skip


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    with contextlib.ExitStack() as running:
        try:
            started = running.enter_context(machines_over_ssh(tmp_path / "sshd", HOSTS))
        except MissingError as error:
            pytest.skip(str(error))
        (tmp_path / "rig.toml").write_text(started.rig + PLACEMENT)
        yield started


def connection_to(host: str, config: Path) -> int:
    """Return the pid of the ssh to a host."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            is_ssh = os.path.basename(words[0]) == b"ssh"
            if is_ssh and {str(config).encode(), host.encode()} <= {*words}:
                return int(process.name)
    raise AssertionError(f"no ssh to {host}")


def test_a_campaign_runs_over_ssh_and_repeats_a_run_whose_connection_is_cut(
    machines: Machines, tmp_path: Path
) -> None:
    campaign, cut = tmp_path / "campaign", 0
    rig = ("--rig", str(tmp_path / "rig.toml"), "--campaign", str(campaign))
    running = Cli(tmp_path).start("run", *STUDY, *rig)
    assert running.stdout is not None and running.stderr is not None
    events = []
    for line in running.stdout:
        events.append(json.loads(line))
        windows = [e for e in events if e.get("phase") == "window"]
        if len(windows) == 2 and not cut:
            time.sleep(0.5)
            cut = connection_to("edge", machines.server.config)
            os.kill(cut, signal.SIGKILL)
    assert running.wait() == 0, running.stderr.read()
    running.stderr.close()
    running.stdout.close()
    lost = [e["text"] for e in events if e["kind"] == "note" and "tries again" in e["text"]]
    assert len(lost) == 1 and "host edge: agent: it ended" in lost[0]
    assert machines.left() == []
    stored = Campaign(campaign)
    try:
        states = sorted(attempt.state for attempt in stored.journal.attempts())
        rows = stored.rows()
    finally:
        stored.close()
    assert states == ["done", "done", "done"]
    assert sorted(row["verdict"] for row in rows) == ["failed", "valid", "valid"]
    for row in (row for row in rows if row["verdict"] == "valid"):
        assert row["received_unique"] == row["sent"] > 0 and row["cpu_us_per_message.on.robot"] > 0
        assert row["cpu_us_per_message.on.edge"] > 0
