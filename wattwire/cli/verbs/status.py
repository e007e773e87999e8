"""Implement `status`, which shows the progress of a campaign."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from wattwire.cli import imported_text
from wattwire.cli.verbs import add_verb
from wattwire.cli.wrap import columns, wrapped
from wattwire.model.errors import EXIT_OK
from wattwire.model.study import TRACED
from wattwire.model.verdict import ended_unsent
from wattwire.model.warm_up import SETTLING
from wattwire.model.words import plural
from wattwire.store import Campaign, ImportedCampaign, open_campaign
from wattwire.store.campaign import used_attempt


def add_to(verbs: Any) -> None:
    """Register the command."""
    verb = add_verb(verbs, "status")
    verb.add_argument("campaign", metavar="DIR")
    verb.set_defaults(call=status)


def status(options: argparse.Namespace) -> int:
    """Print the progress and the excluded runs of a campaign."""
    campaign = open_campaign(Path(options.campaign))
    if isinstance(campaign, ImportedCampaign):
        print("\n".join(imported_text.summary_lines(campaign, columns(sys.stdout))))
        print(f"Next: wattwire report {shlex.quote(options.campaign)}")
        return EXIT_OK
    planned = campaign.journal.runs()
    attempts = campaign.journal.attempts()
    done = {attempt.run for attempt in attempts if attempt.state == "done"}
    in_flight = [attempt.run for attempt in attempts if attempt.state == "begun"]
    print("\n".join(_progress_lines(campaign, done)))
    if in_flight:
        text = f"Running or interrupted: {', '.join(in_flight)}"
        print(wrapped(text, columns(sys.stdout)))
    for line in _invalid_lines(campaign):
        print(wrapped(line, columns(sys.stdout), "  "))
    holder, directory = campaign.holder(), shlex.quote(options.campaign)
    if holder is not None:
        print(f"It is running now (process {holder}).")
    elif (campaign.stopping or {}).get("reached"):
        print("It stopped by the width of its primary interval; the remaining runs are skipped.")
        print(f"Next: wattwire report {directory}")
    elif len(done) < len(planned):
        print(f"Next: wattwire run --resume {directory}")
        if done:
            print(f"Or, for the page of the runs so far: wattwire report {directory}")
    else:
        print(f"Next: wattwire report {directory}")
    campaign.close()
    return EXIT_OK


def _progress_lines(campaign: Campaign, done: Set[str]) -> Iterator[str]:
    """Yield lines on the numbers of finished and valid runs.

    Settling runs have a separate line, because no answer uses them.
    """
    planned, counted = campaign.journal.runs(), campaign.journal.runs(first_block=1)
    settling = set(planned) - set(counted)
    if settling:
        yield f"Done: {len(settling & done)} of {plural(len(settling), 'settling run')}."
    rows = [row for row in _progress_rows(campaign) if row["run"] not in settling]
    sides = usable_by_side(rows)
    usable = sum(sum(side.values()) for side in sides)
    done_count = len(done - settling)
    yield f"Done: {done_count} of {plural(len(counted), 'run')}; valid: {usable}."
    has_study = (campaign.path / "study.json").exists()
    if has_study and campaign.study.validity.look:
        yield "The state of the machine excludes no run, because validity.look is set."


def _progress_rows(campaign: Campaign) -> list[dict[str, Any]]:
    """Return the run, verdict, control and use of every finished attempt; see `Campaign.rows`.

    They come from the journal and the plan, because reading thousands of summaries takes seconds.
    """
    has_plan = (campaign.path / "plan.json").exists()
    controls = {e["run"]: e.get("control") for e in campaign.plan} if has_plan else {}
    rows = []
    for run, done in campaign.finished().items():
        used_number = used_attempt([vars(attempt) for attempt in done])["attempt"]
        for attempt in done:
            is_used = attempt.verdict == "valid" and attempt.attempt == used_number
            row = {"run": run, "folder": attempt.folder, "verdict": attempt.verdict}
            control = controls.get(run) or ""
            rows.append({**row, "control": control, "used": is_used and not control})
    if all(ended_unsent(campaign.row(str(row["folder"]))) for row in rows if row["used"]):
        return [{**row, "used": False} for row in rows]
    return rows


def _invalid_lines(campaign: Campaign) -> Iterator[str]:
    """Yield a line per run without a valid attempt, with its verdict and the reasons.

    Earlier attempts are only counted.
    """
    for run, done in campaign.finished().items():
        attempts = [vars(attempt) for attempt in done]
        if (used := used_attempt(attempts))["verdict"] == "valid":
            continue
        document = campaign.run(used["folder"])
        reasons = [reason["detail"] for reason in document.get("reasons", [])]
        if document["outcome"] != "completed":
            outcome = document["outcome"].replace("_", " ")
            detail = document.get("outcome_detail")
            reasons.insert(0, f"{outcome}: {detail}" if detail else outcome)
        reason_text = "; ".join(dict.fromkeys(reasons)) or "no reason is stored"
        attempt_words = f" (the last of {len(attempts)} attempts)" if len(attempts) > 1 else ""
        cells = " and ".join(dict.fromkeys(document["cells"].values()))
        yield f"{run}, {cells}: {used['verdict']}, {reason_text}{attempt_words}"


def usable_by_side(rows: Sequence[Mapping[str, Any]]) -> tuple[dict[str, bool], ...]:
    """Return the mappings (run → is valid) of design runs, control runs and traced runs."""
    sides: dict[str, dict[str, bool]] = {"": {}, "control": {}, TRACED: {}}
    for row in rows:
        control = row.get("control") or ""
        if control == SETTLING:  # not a run of the design
            continue
        side = control if control in sides else "control"
        usable = row["verdict"] == "valid" if control else bool(row["used"])
        sides[side][row["run"]] = sides[side].get(row["run"], False) or usable
    return tuple(sides.values())
