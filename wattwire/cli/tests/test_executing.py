"""Tests of `wattwire exec`, which rejects invalid commands and targets before it measures."""

from __future__ import annotations

import os

import polars as pl
import pytest

from wattwire.analysis.topics.processes.executed import executed as executed_of
from wattwire.cli.exec import table as exec_table
from wattwire.cli.main import main
from wattwire.model.deployment import Request
from wattwire.model.errors import EXIT_ENVIRONMENT, EXIT_USAGE


@pytest.mark.parametrize(
    ("program", "code", "words"),
    [
        (
            "no-such-program-here",
            EXIT_USAGE,
            "no-such-program-here: cannot be started (the program does not exist",
        ),
        ("./gone", EXIT_USAGE, "./gone: cannot be started (the program does not exist in"),
        ("./plain.txt", EXIT_ENVIRONMENT, "./plain.txt: permission denied"),
        (".", EXIT_USAGE, "cannot be started"),
    ],
)
def test_a_program_that_cannot_be_started_leaves_nothing(
    tmp_path, monkeypatch, capsys, program: str, code: int, words: str
) -> None:
    (tmp_path / "plain.txt").write_text("not a program")
    monkeypatch.chdir(tmp_path)
    assert main(["exec", "--baseline", "60s", "--out", "out", "--", program]) == code
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_is_attached_twice_is_refused_since_it_would_count_twice(tmp_path, capsys) -> None:
    (tmp_path / "group").mkdir()
    (tmp_path / "group" / "cgroup.procs").touch()
    process, group = f"pid:{os.getpid()}", f"cgroup:{tmp_path / 'group'}"
    arguments = ["exec", "--out", str(tmp_path / "out"), "--for", "0.1s"]
    assert main([*arguments, "--attach", process, "--attach", process]) == EXIT_USAGE
    assert "already attached, so it would be counted twice" in capsys.readouterr().err
    assert main([*arguments, "--attach", group, "--attach", f"{group}/."]) == EXIT_USAGE
    assert f"already attached (it is {group})" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_mean_of_a_printed_figure_names_the_repeats_without_it() -> None:
    rows = [
        {"verdict": "valid", "block": block, "value.p50_ms": p50_ms}
        for block, p50_ms in ((3, 4.0), (1, None), (2, 4.0))
    ]
    request = Request(command=("x",), values_from=("p50_ms",))
    executed = executed_of(request, pl.DataFrame(rows), pl.DataFrame())
    _, printed = exec_table._printed_sentences(executed)
    assert printed == "value.p50_ms was not printed in repeat 1 of 3, which its mean omits."
    unprinted = executed_of(request, pl.DataFrame(rows[:2]).drop("value.p50_ms"), pl.DataFrame())
    only_sentence = ["value.p50_ms was not printed in any repeat."]
    assert list(exec_table._printed_sentences(unprinted)) == only_sentence


def test_layers_of_programs_that_cannot_record_them_are_refused_before_anything_is_written(
    tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.setenv("WATTWIRE_CACHE", str(tmp_path / "cache"))
    arguments = ["exec", "--layers", "--out", str(tmp_path / "out")]
    assert main([*arguments, "--attach", f"pid:{os.getpid()}"]) == EXIT_USAGE
    assert "--layers cannot be combined with --attach" in capsys.readouterr().err
    setuid = tmp_path / "setuid"
    setuid.write_text("#!/bin/sh\n")
    setuid.chmod(0o4755)
    assert main([*arguments, "--", str(setuid)]) == EXIT_USAGE
    assert "is setuid" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
