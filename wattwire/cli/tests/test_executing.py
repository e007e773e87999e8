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


def test_repeats_without_a_count_or_a_figure_are_named_and_in_no_rate() -> None:
    rows = [
        {"verdict": "valid", "block": block, "messages": count, "window_s": seconds,
         "cpu_us_per_message": 5.0, "value.p50_ms": p50_ms}
        for block, count, seconds, p50_ms in (
            (3, 100.0, 1.0, 4.0), (1, 200.0, 1.0, None), (2, None, 10.0, 4.0)
        )
    ]  # fmt: skip
    request = Request(command=("x",), count_from="sent", values_from=("p50_ms",))
    executed = executed_of(request, pl.DataFrame(rows), pl.DataFrame())
    omitted, _, rate = exec_table._message_sentences(executed, "")
    assert omitted.startswith("No messages were counted in repeat 2 of 3, so ")
    assert rate == "Rate: 150 messages per second."
    _, printed = exec_table._printed_sentences(executed)
    assert printed == "value.p50_ms was not printed in repeat 1 of 3, which its mean omits."
    unprinted = executed_of(request, pl.DataFrame(rows[:2]).drop("value.p50_ms"), pl.DataFrame())
    only_sentence = ["value.p50_ms was not printed in any repeat."]
    assert list(exec_table._printed_sentences(unprinted)) == only_sentence
    silent = executed_of(
        request, pl.DataFrame([{**rows[2], "block": b} for b in (1, 2)]), pl.DataFrame()
    )
    assert list(exec_table._message_sentences(silent, "")) == [
        "No messages were counted in any repeat."
    ]


def rate_sentence(totals: int, uncounted_s: float) -> str:
    """Return the sentence on a command that sent 100 messages per second for 10 s."""
    row = {
        "verdict": "valid", "messages": 1000.0, "messages_per_s": 100.0, "window_s": 60.0,
        "messages_per_s_resolution_share": 0.01, "messages_span_s": 10.0,
        "messages_uncounted_s": uncounted_s, "messages_totals": totals,
    }  # fmt: skip
    executed = executed_of(Request(command=("x",)), pl.DataFrame([row]), pl.DataFrame())
    return exec_table._rate_sentence(executed, executed.values("messages"))


def test_messages_after_the_last_total_are_those_of_one_period_at_most() -> None:
    # One total per second; 50 s without a total are not 5,000 messages.
    ended = rate_sentence(11, 50.0)
    assert "probably ended" in ended and "up to 100 messages" in ended
    assert "up to 10 % too high" in ended
    sending = rate_sentence(11, 0.4)
    assert "probably ended" not in sending and "up to 40 messages" in sending
    assert "too high" not in rate_sentence(11, 0.05)
