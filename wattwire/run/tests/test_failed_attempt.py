"""Test which exceptions end a campaign, and that other failed attempts leave their logs."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

import pytest

from wattwire.model.errors import AgentLostError, MissingError, UsageError
from wattwire.model.records import SampleFileError
from wattwire.model.verdict import Verdict
from wattwire.rig.agent import AgentError
from wattwire.run.failed_attempt import LOG, ends_campaign, keep_only_logs
from wattwire.run.run_processes import GuardLostError


@pytest.mark.parametrize(
    "error",
    [
        KeyboardInterrupt(),
        SystemExit(1),
        MissingError("no room"),
        OSError(errno.ENOSPC, "full"),
        OSError(errno.EROFS, "read-only"),
        sqlite3.OperationalError("locked"),
    ],
)
def test_the_machine_and_the_user_end_a_campaign(error: BaseException) -> None:
    assert ends_campaign(error)


@pytest.mark.parametrize(
    "error",
    [
        AgentLostError("gone"),
        GuardLostError("gone"),
        AgentError("spawn", "io", "no"),
        KeyError("endpoints"),
        MemoryError(),
        RecursionError(),
        IsADirectoryError(errno.EISDIR, "is a directory"),
        FileNotFoundError(errno.ENOENT, "gone"),
        SampleFileError("cut"),
        UsageError("a spec that no node can follow"),
    ],
)
def test_everything_else_is_a_verdict_of_the_attempt(error: Exception) -> None:
    assert not ends_campaign(error)


def test_what_a_node_left_goes_and_the_logs_stay_with_the_traceback(tmp_path: Path) -> None:
    folder = tmp_path / "attempt"
    (folder / "out" / "node" / "samples.bin").mkdir(parents=True)
    os.mkfifo(folder / "out" / "node" / "pipe")
    (folder / "logs").mkdir()
    (folder / "logs" / "node.err").write_text("last words")
    (tmp_path / "precious").write_text("precious")
    (folder / "run.json").symlink_to(tmp_path / "precious")
    try:
        raise ValueError("no number:\nnot here either")
    except ValueError as error:
        reason = keep_only_logs(folder, error)
    assert reason.verdict is Verdict.FAILED and reason.code == "exception"
    assert "ValueError: no number:" in reason.detail and LOG in reason.detail
    assert sorted(p.name for p in folder.rglob("*")) == ["exception.txt", "logs", "node.err"]
    assert "Traceback" in (folder / LOG).read_text()
    assert (tmp_path / "precious").read_text() == "precious"


def test_an_attempt_whose_folder_is_gone_or_a_link_leaves_its_traceback_too(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "precious").write_text("precious")
    folder = tmp_path / "attempt"
    folder.mkdir()
    (folder / "logs").symlink_to(victim)
    keep_only_logs(folder, ValueError("x"))
    assert (folder / LOG).is_file() and not (folder / "logs").is_symlink()
    assert [p.name for p in victim.iterdir()] == ["precious"]
    keep_only_logs(tmp_path / "gone", ValueError("x"))
    assert (tmp_path / "gone" / LOG).is_file()


@pytest.mark.parametrize(
    "error", [AgentLostError("the agent"), GuardLostError("the guard"), AgentError("x", "io", "no")]
)
def test_the_loss_of_the_harness_is_named_in_the_verdict(error: Exception, tmp_path: Path) -> None:
    reason = keep_only_logs(tmp_path / "attempt", error)
    assert (reason.verdict, reason.code) == (Verdict.FAILED, "harness")
    assert reason.detail == str(error)
