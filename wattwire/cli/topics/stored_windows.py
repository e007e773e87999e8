"""Store what a probe records as a campaign, whose command is the probe."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from wattwire.analysis.streams.numbers import Watched, watched
from wattwire.analysis.streams.recorded import ProbeFiles
from wattwire.catalog import Catalog
from wattwire.cli import exit_status
from wattwire.cli.exec.request import targets_of
from wattwire.cli.verbs import run as campaigns
from wattwire.cli.verbs.report import write_report
from wattwire.model.deployment import COMMAND, EXEC, Request
from wattwire.model.words import listed, plural
from wattwire.rig import CellBuild
from wattwire.run.probing.watching import WatchRequest, environment_of
from wattwire.store import Campaign

WARM_UP_S = 3.0
"""Time (s) in which the probe finds the publishers, before the window."""


def measure(
    build: CellBuild, request: WatchRequest, seconds: float, options: argparse.Namespace
) -> tuple[Watched | None, Path, bool]:
    """Run the repeats; return the last one's numbers, the page, and whether all were measured."""
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
        return last_of(campaign), page, is_whole
    finally:
        campaign.close()


def study_of(
    build: CellBuild, request: WatchRequest, seconds: float, options: argparse.Namespace
) -> dict[str, Any]:
    """Return the document of a study whose runs are windows of a probe."""
    command = Request(
        command=tuple(request.command(build)),
        attached=targets_of(options.attach),
        for_s=seconds,
        cwd=os.getcwd(),
        warmup_s=WARM_UP_S,
        env=tuple(f"{name}={value}" for name, value in environment_of(build).items()),
        probe=build.cell.name,
    )
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


def last_of(campaign: Campaign) -> Watched | None:
    """Return the numbers of the last run that was measured; None if there is none."""
    done = [a for a in campaign.journal.attempts() if a.state == "done" and a.folder]
    if not done:
        return None
    folder = campaign.folder(str(done[-1].folder))
    window = campaign.run(folder.name)["window"]
    files = ProbeFiles(folder / "out" / COMMAND)
    graph, records = files.read_facts(), files.read_records()
    return watched(graph, records, window["start_ns"], window["end_ns"])


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
