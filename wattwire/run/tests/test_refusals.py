"""Test that a node's refusal is a failure of the harness, not a result of the cell."""

from wattwire.model.deployment import Deployment
from wattwire.model.verdict import Outcome, Verdict
from wattwire.run.record import RunRecord
from wattwire.run.run_processes import ProcessState
from wattwire.run.runner import OneRun


class Processes:
    def __init__(self, states):
        self.states = states


def test_a_refused_go_fails_the_run_and_names_the_key():
    run = OneRun.__new__(OneRun)
    error = {"code": 2, "key": "GO", "reason": "12 ns in the past"}
    states = {"client-0": ProcessState(lines={"ERROR": error}), "server-0": ProcessState()}
    processes = Processes(states)
    run.record = RunRecord(
        token="t",
        deployment=Deployment(()),
        nodes=[],
        processes=processes,  # type: ignore[arg-type]
        outcome=Outcome.DIED,
    )
    run._note_refusals()
    (reason,) = run.record.reasons
    assert reason.verdict is Verdict.FAILED
    assert reason.detail == "client-0 rejected GO: 12 ns in the past"
