"""Store what a probe records as a campaign, and read the last window of one."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wattwire.analysis.streams.numbers import Watched, watched
from wattwire.analysis.streams.recorded import ProbeFiles
from wattwire.catalog import Catalog
from wattwire.cli import exit_status
from wattwire.cli.exec.request import targets_of
from wattwire.cli.topics.probe_build import with_probe
from wattwire.cli.verbs import run as campaigns
from wattwire.cli.verbs.report import write_report
from wattwire.model.deployment import EXEC, PROBE, Request
from wattwire.model.words import listed, plural
from wattwire.rig import CellBuild
from wattwire.run.probing.watching import WatchRequest
from wattwire.store import Campaign

OUT = f"out/{PROBE}"


@dataclass(frozen=True)
class Stored:
    """The page of a campaign, and the numbers of its last window that was measured."""

    last: Watched | None
    number: int
    """Number of this window, from 1."""
    page: Path
    is_whole: bool
    """Whether Ctrl-C has not ended the campaign."""


def measure(
    build: CellBuild, request: WatchRequest, seconds: float, options: argparse.Namespace
) -> Stored:
    """Run the repeats, and write the page."""
    folder = Path(options.campaign)
    study = study_of(build, request, seconds, options)
    runner = campaigns.begin(folder, Catalog(), _Progress(options.repeat), ("topics", None, study))
    is_whole = True
    try:
        campaigns.execute(runner, exit_status.suspects)
    except KeyboardInterrupt:
        is_whole = False
    campaign = Campaign(folder)
    try:
        page, _ = write_report(campaign)
        return Stored(*last_of(campaign), page, is_whole)
    finally:
        campaign.close()


def study_of(
    build: CellBuild, request: WatchRequest, seconds: float, options: argparse.Namespace
) -> dict[str, Any]:
    """Return the document of a study whose runs are windows of a probe."""
    attached = Request(attached=targets_of(options.attach), for_s=seconds, cwd=os.getcwd())
    command = with_probe(attached, build, request)
    patterns = listed(list(request.patterns)) or "all topics"
    return {
        "title": f"{patterns}, watched by {build.cell.name}",
        EXEC: command.to_json(),
        "plan": {
            "blocks": options.repeat, "controls": False, "retries": 1, "warmup_calls": 0,
            "quiet_wait_s": 0.0, "duration_s": seconds,
        },
        "validity": {"look": True},
    }  # fmt: skip


def last_of(campaign: Campaign) -> tuple[Watched | None, int]:
    """Return the numbers of the last run that was measured, if any, and its block, from 1."""
    done = [a for a in campaign.journal.attempts() if a.state == "done" and a.folder]
    for attempt in reversed(done):
        run = campaign.run(str(attempt.folder))
        window, files = run["window"], ProbeFiles(campaign.folder(str(attempt.folder)) / OUT)
        if window.get("end_ns"):
            graph, records = files.read_facts(), files.read_records()
            return watched(graph, records, window["start_ns"], window["end_ns"]), int(run["block"])
    return None, 0


class _Progress:
    """Prints the repeats and the notes to standard error."""

    def __init__(self, repeats: int) -> None:
        self._repeats = repeats

    def event(self, kind: str, **fields: Any) -> None:
        if kind == "run" and self._repeats > 1:
            text = f"{fields['block']} of {plural(self._repeats, 'window')}"
            print(f"wattwire: {text}", file=sys.stderr)
        elif kind == "note":
            print(f"wattwire: {fields['text']}", file=sys.stderr)
        elif kind == "output":
            print(fields["text"], end="", file=sys.stderr)
