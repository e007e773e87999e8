"""Test the looks at a campaign that stops by width, and the page's sentence about them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from wattwire import stats
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import gather
from wattwire.analysis.topics.stopping.numbers import (
    NOT_REACHED,
    REACHED,
    RUNNING,
    UNCHECKED,
    Finished,
    Stopping,
    judge,
    stopping,
    stored,
)
from wattwire.report.tests.synthetic import Shape, write_campaign
from wattwire.report.topic_page import Sentences, topic_page
from wattwire.run.stopping import KEY
from wattwire.stats import sequential
from wattwire.store import Campaign

BLOCKS = 11
SENTENCES = Sentences("stopping")


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
    none = stopping(gather(reader_of(folder)))
    assert none == Stopping() and topic_page("stopping", none).parts == ()


def test_the_page_says_stopped_or_not_reached_and_spared_runs_are_not_missing(copied) -> None:
    reader = reader_of(copied, stop_width=0.05, blocks=40)
    extra = [{**entry, "run": f"b39-{i}", "block": 39} for i, entry in enumerate(reader.plan)]
    reader.write_json("plan.json", [*reader.plan, *extra])
    assert gather(reader).untried(gather(reader).designed) > 0
    look = {"response": "cpu_us_per_message", "width": 0.031, "target": 0.05, "after": BLOCKS}
    reader.journal.set(KEY, {**look, "finished": {"swift": BLOCKS}, "reached": True})
    evidence = gather(reader)
    assert evidence.untried(evidence.designed) == 0
    result = stopping(evidence)
    assert (result.state, result.after, result.blocks_max) == (REACHED, BLOCKS, 40)
    assert (result.width, result.target, result.early) == (0.031, 0.05, ())
    assert stored(result)["stopping"]["width"] == 0.031
    ((section, (_, text)),) = topic_page("stopping", result).elsewhere
    assert (section, text.words) == ("methods.tex", SENTENCES.sentence(result))
    not_reached = {"after": 40, "width": None, "finished": {}, "reached": False}
    reader.journal.set(KEY, {**look, **not_reached})
    result = stopping(gather(reader))
    assert (result.state, result.blocks_max, result.width) == (NOT_REACHED, 40, None)


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
    result = stopping(evidence)
    assert (result.state, result.early) == (RUNNING, (Finished("swift", BLOCKS - 1),))
    found = judge(reader)
    assert found is not None
    assert found["finished"] == ["swift"]


LOOK = {"width": 0.13, "after": 7, "finished": {}, "reached": False}


@pytest.mark.parametrize(
    ("look", "state", "text"),
    [
        (None, UNCHECKED, "(± 25 %). The width has not been checked yet. Answers, "),
        (LOOK, RUNNING, "After 7 of 20 blocks, the widest primary interval in CPU time is ± 13 %"),
        ({**LOOK, "reached": True}, REACHED, "stopped after 7 of 20 blocks, because the widest"),
        ({**LOOK, "after": 20, "width": None}, NOT_REACHED, "is unknown (target: ± 25 %). Answers"),
        (
            {**LOOK, "finished": {"a": 5, "b": 6, "c": 7}},
            RUNNING,
            "(target: ± 25 %). Later blocks omit levels with sufficiently precise ratios: "
            "a after 5 and b after 6. Answers, ",
        ),
    ],
)
def test_each_state_of_the_rule_has_a_sentence_in_the_answers(look, state, text):
    result = Stopping(0.25, 6, 20, look, "CPU time")
    ((_, part),) = topic_page("stopping", result).parts
    assert (part.key, part.value) == ("stopping.state", state)
    assert text in part.words
    assert part.words == SENTENCES.sentence(result)
    assert part.words.endswith("starting with block 6.")
