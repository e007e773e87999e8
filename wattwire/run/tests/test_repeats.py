"""Test that a run which a busy machine excluded is not repeated while the machine stays busy."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from wattwire.design import PlannedRun
from wattwire.model.study import Plan
from wattwire.model.treatment import Treatment
from wattwire.model.validity import ValidityLimits
from wattwire.run.campaign import CampaignRunner

PLANNED = PlannedRun("b01-p001", 1, 1, Treatment.of({"cell": "a"}, {}), "")


class Runner(CampaignRunner):
    """A runner with one invalid attempt, on a machine that is quiet again or not."""

    def __init__(self) -> None:
        attempt = SimpleNamespace(state="done", verdict="invalid", folder="x")
        journal = SimpleNamespace(attempts=lambda _run: [attempt])
        self.campaign = SimpleNamespace(journal=journal)
        self._study = SimpleNamespace(plan=Plan(retries=1), validity=ValidityLimits())
        self._rig = SimpleNamespace(is_from_file=False)
        self._not_repeated: set[str] = set()
        self.notes: list[str] = []
        self._progress = SimpleNamespace(event=self._hear)

    def _hear(self, kind, **fields) -> None:
        if kind == "note":
            self.notes.append(fields["text"])


@pytest.mark.parametrize("quiet", [False, True])
@pytest.mark.parametrize("was_quiet", [False, True])
def test_a_run_is_repeated_only_if_the_machine_is_quiet_again(monkeypatch, quiet, was_quiet):
    """A wait that was in vain before the run is not repeated after it."""
    waits_s = []

    def wait(_agents, _limits, wait_s):
        waits_s.append(wait_s)
        return {"quiet": quiet, "waited_s": 10.0}

    monkeypatch.setattr("wattwire.run.campaign.wait_until_quiet", wait)
    runner = Runner()
    assert not runner._is_done(PLANNED)
    agent = SimpleNamespace(hello={"boot_id": "here"})
    runner._repeat_only_if_quiet(PLANNED, agent, {"quiet": was_quiet})
    assert waits_s == [Plan().quiet_wait_s if was_quiet else 0.0]
    assert runner._is_done(PLANNED) == (not quiet)
    assert len(runner.notes) == (not quiet)
    assert not Runner()._is_done(PLANNED), "a resumed campaign repeats the run"
