"""Test that a run handles processes that end at an unfavourable moment."""

from __future__ import annotations

import time

import pytest

from wattwire.hosts.hosts import here
from wattwire.model.deployment import HOST, Deployment
from wattwire.rig.agent import AgentError
from wattwire.run.run_processes import GuardLostError, NodeEndedError, ProcessState, RunProcesses


class Refusing:
    """Agent that refuses every request with the same kind of error."""

    def __init__(self, kind):
        self.kind = kind
        self.asked = []

    def submit(self, operation, **fields):
        self.asked.append((operation, fields))

    def reply(self, operation, future):
        raise AgentError(operation, self.kind, 'no running process "subscriber-0"')


def _processes(agent, folder):
    return RunProcesses({HOST: here(agent)}, Deployment(()), "ww0", folder)


def test_a_process_that_died_before_a_line_came_is_no_failure_of_ours(tmp_path):
    agent = Refusing("failed")
    _processes(agent, tmp_path).write("subscriber-0", "STOP")
    assert agent.asked == [("write", {"process": "subscriber-0", "text": "STOP\n"})]


def test_lines_for_several_processes_are_sent_before_the_first_reply(tmp_path):
    agent = Refusing("failed")
    _processes(agent, tmp_path).write_all({"publisher-0": "GO 1", "subscriber-0": "GO 2"})
    assert [fields["text"] for _, fields in agent.asked] == ["GO 1\n", "GO 2\n"]


def test_a_line_that_a_living_process_does_not_take_is_told(tmp_path):
    with pytest.raises(AgentError, match="no running process"):
        _processes(Refusing("busy"), tmp_path).write("subscriber-0", "STOP")


def test_a_node_that_ends_after_ready_is_the_cause_of_a_wait_for_others(tmp_path):
    processes = _processes(Refusing("failed"), tmp_path)
    answered = ProcessState(lines={"READY": {}, "ERROR": {"reason": "the device ended"}})
    answered.exit = {"code": 4, "signal": None}
    processes.states |= {"server-0": answered, "client-0": ProcessState()}
    with pytest.raises(NodeEndedError) as ended:
        processes.wait_for("READY", ["server-0", "client-0"], time.monotonic())
    assert (ended.value.process, ended.value.timed_out) == ("server-0", False)
    assert ended.value.problem == (
        "ended with code 4 (the device ended) before the other nodes printed READY"
    )


def test_the_loss_of_a_guard_is_named_as_the_end_of_its_process(tmp_path):
    processes = _processes(Refusing("failed"), tmp_path)
    processes.states["broker"] = ProcessState()
    with pytest.raises(GuardLostError, match="the guard of broker died"):
        processes._take({"event": "guard_lost", "process": "broker"})
    assert processes.describe_exit("broker") == "ended with its guard"
