"""Tests of the table of effective settings. Each level of a varied setting has a separate row."""

from __future__ import annotations

import json
from pathlib import Path

from wattwire.analysis.dataset import gather
from wattwire.report.parts import Table
from wattwire.report.sections.settings import section
from wattwire.report.tests.synthetic import Shape, write_campaign
from wattwire.store import Campaign

NAME = "settings.reliability"
SHAPE = Shape(blocks=1, patterns=("topic",), intervals_s=(0.05,), clients=(1,), duration_s=2.0)


def test_levels_of_a_varied_setting_are_not_pooled(tmp_path: Path) -> None:
    folder = write_campaign(tmp_path / "c", SHAPE)
    study = json.loads((folder / "study.json").read_text())
    study["factors"] = {**study["factors"], NAME: ["best_effort", "reliable"]}
    (folder / "study.json").write_text(json.dumps(study))
    for number, path in enumerate(sorted(folder.glob("runs/*/run.json"))):
        level = ("best_effort", "reliable")[number % 2]
        run = json.loads(path.read_text())
        run["levels"] = {**run.get("levels", run["treatment"]), NAME: level}
        run["treatment"] = {**run["treatment"], NAME: level}
        for node in run["nodes"]:
            node["ready"]["effective"]["reliability"] = level
        path.write_text(json.dumps(run))
    part = section(gather(Campaign(folder)))
    (table,) = (one for one in part.parts if isinstance(one, Table))
    assert "varied" in [column.key for column in table.columns]
    told = {(row["varied"], row["effective"].split("reliability = ")[1]) for row in table.rows}
    assert told == {("best_effort", "best_effort"), ("reliable", "reliable")}
