"""Test a campaign that stops by width: when the rule applies, skipped runs, and resuming."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from wattwire.design import PlannedRun
from wattwire.model.study import Plan
from wattwire.model.treatment import Treatment
from wattwire.run.campaign import CampaignRunner
from wattwire.store.journal import Journal

PLAN = Plan(blocks=14, stop_width=0.05, blocks_min=10, primary="language")


class Runner(CampaignRunner):
    """The real loop over a plan, with runs that take no time and are recorded as done."""

    def __init__(self, journal: Journal, plan: Plan, blocks: int, levels: str = "ab") -> None:
        treatments = [Treatment.of({"language": level}, {}) for level in levels]
        self.campaign = SimpleNamespace(journal=journal, path="here", alignment_loads=lambda: None)
        self._study = SimpleNamespace(plan=plan)
        self._plan = [
            PlannedRun(f"b{block:02d}-p{place}", block, place, treatment, "")
            for block in range(1, blocks + 1)
            for place, treatment in enumerate(treatments, 1)
        ]
        self.done: list[str] = []
        self.messages: list[str] = []
        self._progress = SimpleNamespace(event=self._hear)

    def _hear(self, kind, **fields) -> None:
        if kind == "note":
            self.messages.append(fields["text"])

    def _is_done(self, planned) -> bool:
        return planned.run in self.done

    def _run_with_retries(self, planned) -> None:
        self.done.append(planned.run)

    def _write_summary(self) -> None:
        pass


@pytest.fixture
def journal(tmp_path):
    opened = Journal(tmp_path / "journal.sqlite")
    yield opened
    opened.close()


@pytest.fixture
def judged(monkeypatch):
    """Return a function that runs a campaign with `judge` instead of the analysis."""

    def run(runner, judge) -> None:
        monkeypatch.setattr("wattwire.analysis.topics.stopping.numbers.judge", judge)
        runner.execute()

    return run


def judge_at(block: int, looked: list[int], runner: Runner):
    """Return a judge that reports the target width as reached after `block` blocks."""

    def judge(_):
        blocks = len(runner.done) // 2
        looked.append(blocks)
        reached = blocks >= block
        return {"reached": reached, "finished": ["b"] * reached, "width": 0.04, "target": 0.05}

    return judge


def test_it_looks_after_each_whole_block_from_the_least_on_and_spares_the_rest(
    journal, judged
) -> None:
    runner, looked = Runner(journal, PLAN, 14), []
    judged(runner, judge_at(12, looked, runner))
    assert looked == [10, 11, 12]
    assert runner.done[-1] == "b12-p2"
    assert "after 12 of 14 blocks" in runner.messages[0]
    assert journal.get("stopping")["after"] == 12


def test_a_resume_does_not_go_on_and_does_not_look_again(journal, judged) -> None:
    first, looked = Runner(journal, PLAN, 14), []
    judged(first, judge_at(10, looked, first))
    again = Runner(journal, PLAN, 14)
    again.done = list(first.done)
    judged(again, judge_at(10, looked, again))
    assert again.done == first.done
    assert looked == [10]


def test_blocks_that_were_added_for_another_reason_are_run_all_the_same(journal, judged) -> None:
    runner = Runner(journal, PLAN, 16)
    judged(runner, judge_at(10, [], runner))
    assert [run for run in runner.done if run > "b10"][-4:] == [
        "b15-p1", "b15-p2", "b16-p1", "b16-p2",
    ]  # fmt: skip
    assert "b11-p1" not in runner.done


def test_a_width_that_is_not_reached_runs_all_blocks_and_is_remembered(journal, judged) -> None:
    runner, looked = Runner(journal, PLAN, 14), []
    judged(runner, judge_at(99, looked, runner))
    assert len(runner.done) == 28
    assert looked == [10, 11, 12, 13, 14]
    assert journal.get("stopping")["reached"] is False
    assert not runner.messages


def test_a_level_that_is_known_leaves_later_blocks_to_the_others(journal, judged) -> None:
    runner, looked = Runner(journal, PLAN, 14, "abc"), []

    def judge(_):
        looked.append(runner.done[-1][:3])
        blocks = int(runner.done[-1][1:3])
        finished = ["b"] * (blocks >= 10) + ["c"] * (blocks >= 12)
        return {"reached": len(finished) == 2, "finished": finished, "width": 0.1, "target": 0.05}

    judged(runner, judge)
    assert looked == ["b10", "b11", "b12"]
    assert runner.done[-4:] == ["b11-p1", "b11-p3", "b12-p1", "b12-p3"]
    assert journal.get("stopping")["finished"] == {"b": 10, "c": 12}
    again = Runner(journal, PLAN, 14, "abc")
    again.done = list(runner.done)
    judged(again, judge)
    assert again.done == runner.done


def test_without_a_width_nobody_looks(journal, judged) -> None:
    runner, looked = Runner(journal, Plan(blocks=14), 14), []
    judged(runner, judge_at(1, looked, runner))
    assert looked == []
    assert len(runner.done) == 28
