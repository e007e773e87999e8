"""Multiply a measured campaign of few runs into one of many runs, without measuring them."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wattwire.store import Campaign

SPREAD = 0.05
"""Standard deviation of the simulated variation between runs, on the log scale."""
VARIED = ("latency_", "since_send_", "cpu_", "rate_hz_", "throughput_")
"""Beginnings of the names of the responses that vary. The seed is fixed."""


def multiplied(seed: Campaign, folder: Path, blocks: int) -> Path:
    """Write a campaign with `blocks` copies of the single block of `seed`; return its folder.

    The tables of the copies are links to the tables of the originals.
    """
    draw = random.Random(1)
    campaign = Campaign.create(folder)
    plan, summaries, originals = [], [], seed.plan
    for entry, block in _copies(originals, blocks):
        run = f"b{block:02d}-p{entry['position']:03d}"
        old = seed.folder(entry["run"])
        new = campaign.path / "runs" / f"{run}-1"
        keys = {"run": run, "block": block}
        row = {**json.loads((old / "summary.json").read_text("utf-8")), **keys}
        for name in [n for n in row if n.startswith(VARIED) and isinstance(row[n], float)]:
            row[name] *= draw.lognormvariate(0.0, SPREAD)
        _copy(old, new, {"summary.json": row, "run.json": keys})
        plan.append({**entry, **keys})
        summaries.append({**row, "used": True})
    study = seed.study_document
    campaign.freeze("study.json", {**study, "plan": {**study["plan"], "blocks": blocks}})
    campaign.freeze("plan.json", plan)
    for name in ("machine.json", "study.toml"):
        shutil.copyfile(seed.path / name, campaign.path / name)
    campaign.journal.write_plan(
        ((e["run"], e["block"], e["position"], e["treatment_key"]) for e in plan),
        identity=seed.journal.get("identity"),
    )
    _finish(campaign, [entry["run"] for entry in plan])
    campaign.write_summary(summaries, seed.read_json("columns.json"))
    campaign.close()
    return folder


def _copies(plan: list[dict[str, Any]], blocks: int) -> Iterator[tuple[dict[str, Any], int]]:
    for block in range(1, blocks + 1):
        for entry in plan:
            yield entry, block


def _copy(old: Path, new: Path, changes: dict[str, dict[str, Any]]) -> None:
    """Link the tables of a run's folder, and write its documents with these changes."""
    new.mkdir()
    for path in sorted(old.iterdir()):
        if path.name in changes:
            document = {**json.loads(path.read_text("utf-8")), **changes[path.name]}
            (new / path.name).write_text(json.dumps(document), "utf-8")
        elif path.is_file():
            os.link(path, new / path.name)


def _finish(campaign: Campaign, runs: list[str]) -> None:
    """Record every run as done in one transaction, because each commit waits for the disk."""
    at = "2026-01-01T00:00:00"
    rows = [(run, 1, "done", "token", "valid", "completed", f"{run}-1", at, at) for run in runs]
    database = campaign.journal._db
    database.execute("BEGIN")
    database.executemany("INSERT INTO attempt VALUES (?,?,?,?,?,?,?,?,?)", rows)
    database.execute("COMMIT")
