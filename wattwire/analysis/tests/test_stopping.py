"""Test the looks at a campaign that stops by width, and the page's sentence about them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from wattwire import stats
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import gather
from wattwire.analysis.stopping import judge
from wattwire.report.tests.phrase_search import only
from wattwire.report.tests.synthetic import Shape, write_campaign
from wattwire.report.words import stopping
from wattwire.report.words.methods import methods
from wattwire.run.stopping import KEY
from wattwire.stats import sequential
from wattwire.store import Campaign

BLOCKS = 11


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    shape = Shape(
        blocks=BLOCKS, duration_s=1.0, patterns=("topic",), clients=(1,), intervals_s=(0.05,)
    )
    return write_campaign(tmp_path_factory.mktemp("stops") / "campaign", shape)


@pytest.fixture
def copied(folder, tmp_path) -> Path:
    """Return a copy of the campaign for a test to change."""
    return Path(shutil.copytree(folder, tmp_path / "campaign"))


def reader_of(folder, **plan) -> Campaign:
    reader = Campaign(folder)
    reader.study = replace(reader.study, plan=replace(reader.study.plan, **plan))
    return reader


def test_the_look_is_the_width_of_the_primary_ratio_on_the_page(folder) -> None:
    reader = reader_of(folder, stop_width=0.5)
    found = judge(reader)
    assert found is not None
    assert found["reached"]
    assert found["finished"] == ["swift"]
    assert found["response"] == "cpu_us_per_message"
    answers = answer_all(gather(reader))
    # There are two levels with one treatment each, so only the family distinguishes both intervals.
    assert answers.level == stats.bonferroni(sequential.INNER_CONFIDENCE, answers.family)
    wider = answers.computed()[0].interval
    assert found["width"] < wider.high / wider.estimate - 1


def test_a_narrow_aim_is_not_reached_and_no_aim_is_never_looked_at(folder) -> None:
    found = judge(reader_of(folder, stop_width=1e-6))
    assert found is not None
    assert not found["reached"]
    assert judge(reader_of(folder)) is None
    assert stopping.sentence(gather(reader_of(folder))) is None


def test_the_page_says_stopped_or_not_reached_and_spared_runs_are_not_missing(copied) -> None:
    reader = reader_of(copied, stop_width=0.05, blocks=40)
    extra = [{**entry, "run": f"b39-{i}", "block": 39} for i, entry in enumerate(reader.plan)]
    reader.write_json("plan.json", [*reader.plan, *extra])
    assert gather(reader).untried(gather(reader).designed) > 0
    look = {"response": "cpu_us_per_message", "width": 0.031, "target": 0.05, "after": BLOCKS}
    reader.journal.set(KEY, {**look, "finished": {"swift": BLOCKS}, "reached": True})
    evidence = gather(reader)
    assert evidence.untried(evidence.designed) == 0
    sentence = stopping.sentence(evidence)
    reached = only(sentence, "stopping.reached").values
    assert (reached["after"], reached["blocks"]) == (BLOCKS, 40)
    assert only(sentence, "stopping.widest").values["width"] == 0.031
    assert sentence in methods(evidence, answer_all(evidence))
    not_reached = {"after": 40, "width": None, "finished": {}, "reached": False}
    reader.journal.set(KEY, {**look, **not_reached})
    assert only(stopping.sentence(gather(reader)), "stopping.not_reached").values["blocks"] == 40


def test_a_level_that_was_known_early_is_named_and_its_spared_runs_are_not_missing(
    copied,
) -> None:
    reader = reader_of(copied, stop_width=0.05, blocks=40)
    look = {"response": "cpu_us_per_message", "width": 0.2, "target": 0.05, "after": BLOCKS}
    look["finished"] = {"swift": BLOCKS - 1}
    reader.journal.set(KEY, {**look, "reached": False})
    evidence = gather(reader)
    planned = [entry for entry in reader.plan if not entry.get("skipped")]
    assert len(planned) - len(evidence.planned) == 1
    reader.journal.set(KEY, {**look, "reached": True})
    assert len(planned) - len(gather(reader).planned) == 1
    reader.journal.set(KEY, {**look, "reached": False})
    level = only(stopping.sentence(evidence), "stopping.finished_level")
    assert level.values == {"level": "swift", "after": BLOCKS - 1}
    found = judge(reader)
    assert found is not None
    assert found["finished"] == ["swift"]
