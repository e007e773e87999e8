"""Tests of the settings in force. Each level of a varied setting has a separate row."""

from __future__ import annotations

import json
from pathlib import Path

from wattwire.analysis.dataset import gather
from wattwire.analysis.topics.settings.numbers import (
    Guarantee,
    NodeSettings,
    Setting,
    Settings,
    Unequal,
    settings,
)
from wattwire.report.tests.synthetic import Shape, write_campaign
from wattwire.report.topic_page import topic_page
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
    result = settings(gather(Campaign(folder)))
    assert result.has_varied
    in_force = {
        (row.varied, setting.values)
        for row in result.rows
        for setting in row.effective
        if setting.name == "reliability"
    }
    assert in_force == {("best_effort", ("best_effort",)), ("reliable", ("reliable",))}


def test_a_row_lists_few_values_of_a_setting_and_counts_many() -> None:
    effective = (
        Setting("a", ("1",)), Setting("b.c", (":80", "x")), Setting("d", tuple("1234")),
    )  # fmt: skip
    row = NodeSettings("a/b", "topic", "ping", "lib 1.0", "reliable", "", effective, 4)
    kinds = (Guarantee("reliable", ("a/b",)), Guarantee("lossy", ("c/d", "e/f")))
    result = Settings(True, (row,), (Unequal((), kinds),))
    page = topic_page("settings", result)
    ((place, line),) = page.terminal_lines
    assert place == (2,) and "a/b: reliable; c/d and e/f: lossy." in line
    section = page.section()
    assert section is not None
    (table,) = section.parts
    (cells,) = table.rows
    assert cells["effective"] == "a = 1, b.c = :80 | x, d = 4 different values"
    assert "varied" not in cells
    assert [column.key for column in table.columns if column.is_whole] == ["effective"]


def test_a_campaign_of_silent_nodes_says_so_and_one_without_messages_has_no_section() -> None:
    section = topic_page("settings", Settings(True)).section()
    assert section is not None
    assert [(part.tone, part.value) for part in section.parts] == [("warning", "0")]
    assert topic_page("settings", Settings()).section() is None
