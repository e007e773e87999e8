"""Tests of the section with answers, including sentences for many and few levels and the table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wattwire import imports, stats
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import gather
from wattwire.imports import table
from wattwire.imports.tests.test_writing import ABOUT
from wattwire.report.parts import Fold, Section, Text, tables_of
from wattwire.report.sections import answers as answered
from wattwire.report.tests.phrase_search import phrases_in
from wattwire.report.tests.synthetic import FAST, SLOW, Shape, write_campaign
from wattwire.report.words.phrases import Phrase
from wattwire.store import Campaign


def section(folder: Path, levels: int) -> Section:
    """Return the section for `levels` levels in three blocks. Level k has about 10 + k W."""
    lines = ["node,day,power"]
    for day in range(3):
        for at in range(levels):
            scatter = 1.0 + 0.01 * ((7 * day + 3 * at) % 5)
            lines.append(f"n{at:02},{day},{(10.0 + at) * scatter:.6f}")
    folder.mkdir()
    (folder / "table.csv").write_text("\n".join(lines) + "\n")
    asked = table.TableRequest((("power", "W"),), ("node",), "day")
    read = table.read(folder / "table.csv", asked)
    evidence = gather(imports.write(read, folder / "c", ABOUT, {}))
    return answered.section(evidence, answer_all(evidence))


def sentences(part: Section) -> list[Phrase]:
    parts = [
        inner for one in part.parts for inner in (one.parts if isinstance(one, Fold) else [one])
    ]
    return [one.words for one in parts if isinstance(one, Text) and one.tone == "item"]


def test_many_levels_have_sentences_for_their_ends_and_one_for_the_rest(tmp_path) -> None:
    part = section(tmp_path / "many", 30)
    *ends, rest = sentences(part)
    claims = [one.values["level"] for one in phrases_in(ends, "answer.ratio")]
    assert claims == ["n01", "n02", "n03", "n28", "n29"]
    assert rest.key == "answers.other_levels"
    named = {key: rest.values[key] for key in ("levels", "factor", "response", "baseline")}
    assert named == {"levels": 24, "factor": "node", "response": "power", "baseline": "n00"}
    assert rest.values["lowest"] == pytest.approx(1.4, rel=0.02)
    (outcome,) = rest.values["outcomes"]
    assert outcome.values == {"levels": 24, "outcome": "different"}
    assert rest.values["default"].key == "answers.default_baseline"
    (answers,) = [one for one in tables_of(part.parts) if one.id == "answers"]
    assert len(answers.rows) == 29


def test_few_levels_have_a_sentence_each(tmp_path) -> None:
    assert len(sentences(section(tmp_path / "few", 9))) == 8


def test_a_level_without_runs_is_called_by_its_title(tmp_path) -> None:
    shape = Shape(blocks=2, duration_s=1.0, clients=(1,), skip={"language": FAST})
    evidence = gather(Campaign(write_campaign(tmp_path / "c", shape)))
    uncomputed = phrases_in(answered.section(evidence, answer_all(evidence)), "answers.no_number")
    reasons = {one.values["response"]: one.values["reason"] for one in uncomputed}
    assert reasons["CPU time per message"] == "Swift was not run"


def test_an_older_campaign_with_a_dotted_setting_is_answered_for_it(tmp_path) -> None:
    folder = write_campaign(tmp_path / "c", Shape(patterns=("topic",)))
    study = json.loads((folder / "study.json").read_text())
    study["factors"]["settings"] = {"clients": study["factors"].pop("clients")}
    study["question"] = [
        {"id": "Q1", "text": "", "factors": ["language", "settings.clients"],
         "responses": ["cpu_us_per_message"]}
    ]  # fmt: skip
    study["answers"]["baseline"] = {"settings": {"clients": 2}}
    (folder / "study.json").write_text(json.dumps(study))
    text = (folder / "plan.json").read_text().replace('"clients":', '"settings.clients":')
    (folder / "plan.json").write_text(text)
    for run in (folder / "runs").iterdir():
        document = (run / "run.json").read_text().replace('"clients":', '"settings.clients":')
        (run / "run.json").write_text(document)
    items = answer_all(gather(Campaign(folder))).items
    assert [(one.factor, one.level, one.baseline) for one in items] == [
        ("language", SLOW, FAST),
        ("settings.clients", 1, 2),
    ]
    assert all(isinstance(one.result, stats.Ratio) for one in items)
