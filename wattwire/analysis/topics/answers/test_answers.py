"""Test the section on answers, including sentences for many and few levels and the table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wattwire import imports, stats
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import Evidence, gather
from wattwire.analysis.topics.answers.numbers import AnsweredStudy
from wattwire.analysis.topics.answers.questions import Stated, WithoutNumber
from wattwire.imports import table
from wattwire.imports.tests.test_writing import ABOUT
from wattwire.report.parts import Fold, Text, tables_of
from wattwire.report.tests.answered import answered_study, section
from wattwire.report.tests.synthetic import FAST, SLOW, Shape, write_campaign
from wattwire.report.topic_page import Sentences, topic_page
from wattwire.store import Campaign

SENTENCES = Sentences("answers")


def imported(folder: Path, levels: int) -> Evidence:
    """Return the evidence of `levels` levels in three blocks. Level k has about 10 + k W."""
    lines = ["node,day,power"]
    for day in range(3):
        for at in range(levels):
            scatter = 1.0 + 0.01 * ((7 * day + 3 * at) % 5)
            lines.append(f"n{at:02},{day},{(10.0 + at) * scatter:.6f}")
    folder.mkdir()
    (folder / "table.csv").write_text("\n".join(lines) + "\n")
    asked = table.TableRequest((("power", "W"),), ("node",), "day")
    read = table.read(folder / "table.csv", asked)
    return gather(imports.write(read, folder / "c", ABOUT, {}))


def stated_of(study: AnsweredStudy) -> tuple[Stated, ...]:
    """Return what the only question states, and check that the page has a sentence on each."""
    (question,) = study.questions
    parts = [part for _, part in topic_page("answers", study).parts]
    (fold,) = [part for part in parts if isinstance(part, Fold)]
    texts = [text.words for text in fold.parts if isinstance(text, Text)]
    assert texts == list(map(SENTENCES.stated, question.stated))
    return question.stated


def test_many_levels_have_sentences_for_their_ends_and_one_for_the_rest(tmp_path) -> None:
    evidence = imported(tmp_path / "many", 30)
    answers = answer_all(evidence)
    *ends, rest = stated_of(answered_study(evidence, answers))
    titles = [end.statement.level_title for end in ends if end.statement]
    assert titles == ["n01", "n02", "n03", "n28", "n29"]
    others = rest.others
    assert others is not None
    assert (others.levels, others.factor_title, others.response.title) == (24, "node", "power")
    assert (others.baseline_title, others.is_baseline_named) == ("n00", False)
    assert others.is_ratio
    assert others.lowest == pytest.approx(1.4, rel=0.02)
    (outcome,) = others.outcomes
    assert (outcome.levels, outcome.outcome) == (24, "different")
    words = SENTENCES.other_levels(others)
    assert words.startswith("For the other 24 levels of node, the power is 1.4")
    assert words.endswith("is n00, the first level, because the study names no baseline "
                          "(answers.baseline).")  # fmt: skip
    (table_of_all,) = (
        one for one in tables_of(section(evidence, answers).parts) if one.id == "answers"
    )
    assert len(table_of_all.rows) == 29


def test_few_levels_have_a_sentence_each(tmp_path) -> None:
    evidence = imported(tmp_path / "few", 9)
    stated = stated_of(answered_study(evidence, answer_all(evidence)))
    assert len(stated) == 8 and all(item.statement for item in stated)


def test_a_level_without_runs_is_called_by_its_title(tmp_path) -> None:
    shape = Shape(blocks=2, duration_s=1.0, clients=(1,), skip={"language": FAST})
    evidence = gather(Campaign(write_campaign(tmp_path / "c", shape)))
    study = answered_study(evidence, answer_all(evidence))
    missing = [item for question in study.questions for item in question.without_number]
    assert WithoutNumber("CPU time per message", "Swift was not run") in missing


def test_a_summary_has_decided_answers_first_and_no_question_without_answers(tmp_path) -> None:
    shape = Shape(patterns=("topic",), study={"answers": {"margin": 0.05}})
    evidence = gather(Campaign(write_campaign(tmp_path / "c", shape)))
    answers = answer_all(evidence)
    study = answered_study(evidence, answers)
    decided = [short.outcome == "different" for short in study.shorts]
    assert any(decided) and decided == sorted(decided, reverse=True)
    page = section(evidence, answers)
    assert [part.id for part in page.parts if hasattr(part, "id")][:1] == ["short-answers"]
    titles = [part.words for part in page.parts if getattr(part, "tone", "") == "question"]
    assert len(titles) == len(evidence.study.questions)
    (chart,) = (part for part in page.parts if getattr(part, "id", "") == "ratios")
    points = chart.spec["datasets"]["points"]
    assert [point["response"] for point in points] == sorted(p["response"] for p in points)
    assert points[0]["margin_high"] == pytest.approx(1.05)


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
