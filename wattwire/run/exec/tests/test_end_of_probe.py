"""Which ends of a probe fail a run, whatever the command does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from wattwire.model.deployment import COMMAND, PROBE, Request
from wattwire.run.dependencies import DRAIN, WINDOW, DependencyLostError
from wattwire.run.exec.command_run import CommandRecord, CommandRun, end_before_window
from wattwire.run.exec.watched_topics import ProbeOfRun
from wattwire.run.run_processes import ProcessState

ENDED = {"code": 0, "signal": None}
INTERRUPTED, KILLED = ({"code": None, "signal": number} for number in (2, 9))


def run_with(
    probe: dict[str, Any] | None, command: dict[str, Any] | None, point: str, log: str = ""
) -> CommandRun:
    """Return a run at a point, whose processes have these exits (None: it lives)."""
    states = {PROBE: ProcessState(exit=probe, pid=1), COMMAND: ProcessState(exit=command, pid=2)}
    how = "was killed by signal 9" if probe == KILLED else "ended with code 0"
    processes = SimpleNamespace(
        states=states, out_of=lambda _: None, logs_of=lambda _: [log], describe_exit=lambda _: how
    )
    run, record = CommandRun.__new__(CommandRun), CommandRecord.__new__(CommandRecord)
    record.processes = processes  # type: ignore[assignment]
    record.network, record.ended_by = None, "itself"
    run.record, run._point = record, point  # noqa: SLF001
    run._network = SimpleNamespace(ended=dict)  # type: ignore[assignment] # noqa: SLF001
    run._hosts = {}  # noqa: SLF001
    run._request = Request(command=("true",), probe="ros2/probe")  # noqa: SLF001
    run._probe = ProbeOfRun(run._request, record.processes)  # noqa: SLF001
    return run


@pytest.mark.parametrize("command", [ENDED, INTERRUPTED, None])
def test_the_end_of_the_command_is_not_that_of_its_living_probe(
    command: dict[str, Any] | None,
) -> None:
    run_with(None, command, WINDOW)._require_dependencies()  # noqa: SLF001
    run_with(ENDED, command, DRAIN)._require_dependencies()  # noqa: SLF001


@pytest.mark.parametrize(("probe", "point"), [(KILLED, WINDOW), (KILLED, DRAIN), (ENDED, WINDOW)])
def test_a_probe_that_ends_early_or_is_killed_fails_the_run_with_its_last_words(
    probe: dict[str, Any], point: str
) -> None:
    how = "was killed by signal 9" if probe is KILLED else "ended with code 0"
    with pytest.raises(DependencyLostError, match=f"^the probe {how}$"):
        run_with(probe, None, point)._require_dependencies()  # noqa: SLF001
    with pytest.raises(DependencyLostError, match=f"^the probe {how}: no disk space$"):
        run_with(probe, ENDED, point, "no disk\nspace\n")._require_dependencies()  # noqa: SLF001


@pytest.mark.parametrize(
    ("after_s", "is_searching", "stated"),
    [
        (6.6, True, "ended after 6.6 s, before the probe had found all publishers"),
        (2.0, True, "ended after 2 s, within the warm-up (3 s)"),
        (2.0, False, "within the warm-up (3 s)"),
    ],
)
def test_an_end_before_the_window_names_what_the_window_waited_for(
    after_s: float, is_searching: bool, stated: str
) -> None:
    request = Request(("x",), warmup_s=3.0)
    text = end_before_window(request, after_s, 0, is_searching)
    assert stated in text and "nothing was measured" in text
    assert ("--warmup" in text) == ("warm-up" in text)


def test_an_end_before_the_messages_of_the_warm_up_counts_them() -> None:
    text = end_before_window(Request(("x",), warmup_messages=9), 5.0, 4, is_searching=False)
    assert "within the warm-up (9 messages, of which 4 came)" in text
