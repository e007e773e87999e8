"""Measure wattwire's own time per run: the duration without starting, waiting and measuring."""

from __future__ import annotations

import datetime
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

STUDY = """
title = "Runs that do almost nothing"
[factors]
payload_bytes = [{levels}]
[fixed]
{deployment}
rate_hz = 100
[plan]
blocks = 1
controls = false
duration_s = 0.2
baseline_s = 0.02
linger_ms = 50
quiet_ms = 20
retries = 0
quiet_wait_s = 0.0
[validity]
other_load_max = 1.0
steal_max = 1.0
missed_ticks_max = 1.0
stall_max_ms = 60000.0
"""


class Deployment(NamedTuple):
    """Nodes of the measured runs: their keys in the study, and the promised time (ms) per run."""

    name: str
    keys: str
    promised_ms: float


UDP_TOPIC = 'middleware = "udp"\nlanguage = "cpp"\npattern = "topic"'
DEPLOYMENTS = (
    Deployment(
        "loopback/cpp, topic, 2 nodes",
        'middleware = "loopback"\nlanguage = "cpp"\npattern = "topic"',
        50.0,
    ),
    Deployment(
        "udp/cpp, pipeline, 23 nodes",
        'middleware = "udp"\nlanguage = "cpp"\npattern = "pipeline"\nnodes = 23',
        150.0,
    ),
)
RESULTS = "results and journal"
NOT_OURS = {"starting", "matching", "machine baseline", "silent baseline", "window", "drain"}


def seconds_per_run(deployment: Deployment, runs: int, rig: Path | None = None) -> list[float]:
    """Return wattwire's time (s) in each of `runs` runs of `deployment`, with synced files."""
    return [sum(phases.values()) for phases in phases_per_run(deployment, runs, rig)]


def phases_per_run(
    deployment: Deployment, runs: int, rig: Path | None = None
) -> list[dict[str, float]]:
    """Return wattwire's time (s) by phase in each of `runs` runs of `deployment`.

    The time outside of all phases is that of RESULTS: records, tables, summary row, synced files
    and journal. With a rig, the nodes run on its hosts, in its first placement and network.
    """
    with tempfile.TemporaryDirectory(prefix="wattwire-bench-") as name:
        study, campaign = Path(name, "study.toml"), Path(name, "c")
        levels = ", ".join(str(64 + k) for k in range(runs))
        study.write_text(STUDY.format(levels=levels, deployment=deployment.keys))
        subprocess.run(
            [sys.executable, "-m", "wattwire", "run", str(study), "--campaign", str(campaign),
             "--plain", "--no-report", *(() if rig is None else ("--rig", str(rig)))],
            check=True, stdout=subprocess.DEVNULL, env=dict(os.environ),
        )  # fmt: skip
        with sqlite3.connect(campaign / "journal.sqlite") as db:
            rows = db.execute(
                "SELECT folder, begun_at, ended_at FROM attempt ORDER BY begun_at"
            ).fetchall()
        own = []
        for folder, begun, ended in rows:
            document = json.loads((campaign / "runs" / folder / "run.json").read_text())
            seconds = document["seconds"]
            results_s = _seconds(ended) - _seconds(begun) - sum(seconds.values())
            ours = {phase: s for phase, s in seconds.items() if phase not in NOT_OURS}
            own.append({**ours, RESULTS: results_s})
        return own


def _seconds(stamp: str) -> float:
    return datetime.datetime.fromisoformat(stamp).timestamp()
