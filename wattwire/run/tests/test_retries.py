"""Test how a campaign repeats attempts whose harness failed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from wattwire.model.errors import AgentLostError, MissingError, UsageError, WattwireError
from wattwire.run import campaign as campaign_module
from wattwire.run.campaign import MACHINERY_FAILURES_MAX, CampaignRunner


def runner_of(outcomes: list[Exception | None], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a runner whose attempts end as listed; it is done after the last of them."""
    runner: Any = CampaignRunner.__new__(CampaignRunner)
    runner.left = list(outcomes)
    runner._progress = SimpleNamespace(event=lambda *_, **__: None)
    runner.campaign = SimpleNamespace(path=Path("c"))

    def attempt(self: Any, planned: Any) -> None:
        if (outcome := self.left.pop(0)) is not None:
            raise outcome

    monkeypatch.setattr(campaign_module.CampaignRunner, "_attempt", attempt)
    monkeypatch.setattr(campaign_module.CampaignRunner, "_is_done", lambda self, _: not self.left)
    return runner


PLANNED = SimpleNamespace(run="b1-1")
LOST = AgentLostError("gone")


def test_failures_that_are_not_in_a_row_do_not_stop_a_campaign(monkeypatch):
    runner = runner_of([LOST, None] * (2 * MACHINERY_FAILURES_MAX), monkeypatch)
    runner._run_with_retries(PLANNED)
    assert runner.left == []


def test_hosts_that_cannot_be_prepared_stop_a_campaign(monkeypatch):
    runner = runner_of([None, *[LOST] * 5], monkeypatch)
    with pytest.raises(MissingError, match=f"{MACHINERY_FAILURES_MAX} times in a row"):
        runner._run_with_retries(PLANNED)
    assert len(runner.left) == 5 - MACHINERY_FAILURES_MAX


def test_an_ended_switch_is_no_end_of_the_campaign(monkeypatch):
    runner = runner_of([WattwireError("ip: no such process"), None], monkeypatch)
    runner._run_with_retries(PLANNED)
    assert runner.left == []


@pytest.mark.parametrize("error", [MissingError("no ssh"), UsageError("no such network")])
def test_what_no_repeat_mends_ends_the_campaign_at_once(error, monkeypatch):
    runner = runner_of([error, None], monkeypatch)
    with pytest.raises(type(error)):
        runner._run_with_retries(PLANNED)
    assert runner.left == [None]
