"""Write synthetic campaigns to compare: changed copies, and languages as variants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from wattwire.report.tests.synthetic import FAST, Shape, put_row, row_of, write_campaign
from wattwire.store import Campaign

ALL = tuple(range(1000))
SMALL = {"blocks": 5, "patterns": ("topic",), "intervals_s": (0.05,), "duration_s": 2.0}


def made(folder: Path, seed: int, **shape: Any) -> Campaign:
    return Campaign(write_campaign(folder, Shape(**{**SMALL, **shape}), seed))


def changed(campaign: Campaign, **columns: Any) -> Campaign:
    """Return the campaign with numeric summary columns multiplied, and other columns replaced."""
    for path in campaign.path.glob("runs/*/summary.json"):
        frame = row_of(path)
        for name, by in columns.items():
            number = isinstance(by, float)
            frame = frame.with_columns((pl.col(name) * by if number else pl.lit(by)).alias(name))
        frame.pipe(put_row, path)
    return Campaign(campaign.path)


def rewritten(campaign: Campaign, name: str, change: Any) -> Campaign:
    """Return the campaign after a function changed one of its JSON documents."""
    path = campaign.path / name
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    return Campaign(campaign.path)


def of_variants(folder: Path, seed: int = 1, base: str = FAST, **shape: Any) -> Campaign:
    """Return a synthetic campaign whose two languages are labelled as variants."""
    campaign = made(folder, seed, clients=(1,), **shape)

    def renamed(table: dict[str, Any]) -> dict[str, Any]:
        return {("variant" if k == "language" else k): v for k, v in table.items()}

    def of_plan(plan: list[dict[str, Any]]) -> None:
        for entry in plan:
            entry["treatment"], entry["levels"] = (
                renamed(entry["treatment"]),
                renamed(entry["levels"]),
            )
            entry["treatment_key"] = entry["treatment"]["variant"]

    def of_study(study: dict[str, Any]) -> None:
        study["factors"] = renamed(study["factors"])
        study["answers"] = {"baseline": {"variant": base}, "margin": 0.05}
        study["question"] = [
            {"id": "v", "text": "?", "factors": ["variant"], "responses": ["cpu_us_per_message"]}
        ]

    for path in campaign.path.glob("runs/*/summary.json"):
        row_of(path).rename({"factor.language": "factor.variant"}).pipe(put_row, path)
    for path in campaign.path.glob("runs/*/run.json"):
        document = json.loads(path.read_text())
        path.write_text(json.dumps({**document, "treatment": renamed(document["treatment"])}))
    rewritten(campaign, "plan.json", of_plan)
    return rewritten(campaign, "study.json", of_study)
