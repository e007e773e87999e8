"""Tests of line wrapping, which applies to text for people but not to text for machines."""

from __future__ import annotations

import io
import json
import os
from dataclasses import asdict

import pytest

from wattwire.cli.main import main
from wattwire.cli.screen import JsonProgress, PlainProgress
from wattwire.cli.verbs.run import _usable_words
from wattwire.cli.wrap import (
    LOG_COLUMNS,
    PrintableStream,
    columns,
    one_line,
    pairs,
    table,
    unless_closed,
    wrapped,
)
from wattwire.rig import BuildStep

RUN = {"run": "b01-p001", "label": "cell=loopback/python payload_bytes=64 settings.delay_us=20"}
DONE = {
    "verdict": "invalid", "outcome": "saturated", "last": True,
    "detail": "the sender could not keep the rate that was asked of it",
    "reasons": ["other load used 89.8 % of the cores; allowed: 50.0 %"],
    "figures": {"sent": 100, "lost": 0, "latency_p50_us": 54.0, "cpu_us_per_message": 73.0},
}  # fmt: skip


@pytest.fixture(autouse=True)
def unasked(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)


def play(progress):
    progress.event("campaign", path="campaigns/c", runs=2, left=2, skipped=1)
    name = "a-middleware/" + "of-a-very-long-name" * 3
    progress.event("building", **asdict(BuildStep(name, 1, 5, 2, 4, 12.0)))
    progress.event("run", **RUN)
    progress.event("done", **DONE)
    progress.event("note", text="a word and another, " * 20)


def test_plain_progress_stays_within_the_columns_of_a_log_and_loses_no_word():
    stream = io.StringIO()
    play(PlainProgress(stream))
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= LOG_COLUMNS
    told = " ".join(stream.getvalue().split())
    for part in (
        RUN["label"],
        DONE["reasons"][0],
        DONE["detail"],
        "[1/2 runs, 1 invalid",
        "note: a",
    ):
        assert part in told
    assert [line for line in lines if line.startswith("b01-p001")], "a run begins its own line"


def test_progress_for_machines_is_one_line_an_event():
    stream = io.StringIO()
    play(JsonProgress(stream))
    kinds = [json.loads(line)["kind"] for line in stream.getvalue().splitlines()]
    assert kinds == ["campaign", "building", "run", "done", "note"]


def test_a_path_stays_whole_however_long_it_is():
    path = "/" + "/".join(["folder"] * 30)
    assert path in wrapped(f"written to {path} and nowhere else", 60).splitlines()[1].strip()


@pytest.mark.parametrize("figure", ["97.0 %", "54 µs", "40 s", "3 min"])
def test_a_unit_stays_by_its_number(figure):
    assert figure in wrapped(f"at most, it is said, {figure} of them", 25)


def test_texts_next_to_names_wrap_in_their_own_column():
    rows = [("state", "can be built after the environment"), ("", one_line("$ build it " * 9))]
    assert pairs([*rows, ("none", " ")], 30) == [
        "  state  can be built after",
        "         the environment",
        f"         {('$ build it ' * 9).rstrip()}",
        "  none",
    ]


def test_a_name_beyond_the_longest_that_counts_moves_only_its_own_text():
    lines = pairs([("a" * 12, "one two three"), ("b", "one")], 20, name_width_max=4)
    assert lines == [f"  {'a' * 12}  one", "        two three", "  b     one"]


def test_columns_of_a_table_are_as_wide_as_their_longest_text():
    rows = [("cell", "CPU, µs"), ("udp/cpp", "9"), ("", "1 000")]
    assert table(rows, "<>") == ["  cell     CPU, µs", "  udp/cpp        9", "             1 000"]
    assert table([], "<>") == []


def test_a_table_that_is_too_wide_narrows_its_widest_texts_and_no_number():
    rows = [("name", "value"), ("word " * 8, "12.3 [11.9, 12.8]")]
    lines = table(rows, "<>", 40, indent="")
    assert max(map(len, lines)) == 40 and len(lines) == 3
    assert lines[1].endswith("  12.3 [11.9, 12.8]") and lines[2] == "word word word word"
    folded = table([("p" * 50, "12.3 [11.9, 12.8]")], "<>", 40, indent="")
    assert [line.split()[0] for line in folded] == ["p" * 21, "p" * 21, "p" * 8]


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def fileno(self):
        return 7


@pytest.mark.parametrize(("found", "expected"), [(72, 72), (3, 40)])
def test_on_a_terminal_its_width_counts_unless_no_word_would_fit(monkeypatch, found, expected):
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((found, 20)))
    assert columns(Terminal()) == expected
    assert columns(io.StringIO()) == LOG_COLUMNS


@pytest.mark.parametrize(
    ("asked", "expected"), [("70", 70), ("1", 40), ("0", LOG_COLUMNS), ("wide", LOG_COLUMNS)]
)
def test_the_width_asked_for_in_the_environment_counts(monkeypatch, asked, expected):
    monkeypatch.setenv("COLUMNS", asked)
    assert columns(io.StringIO()) == expected


def test_lists_stay_within_the_columns_of_a_log(capsys):
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    assert "  loopback/python" in out and max(map(len, out.splitlines())) <= LOG_COLUMNS


def test_an_error_is_one_line_in_a_log_and_wrapped_on_a_terminal(capsys, monkeypatch):
    assert main(["plan", "there-is-no-such-study"]) == 2
    whole = capsys.readouterr().err
    assert whole.count("\n") == 1
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((60, 20)))
    assert main(["plan", "there-is-no-such-study"]) == 2
    assert max(map(len, terminal.getvalue().splitlines())) <= 60
    assert terminal.getvalue().split() == whole.split()


def test_control_runs_are_counted_beside_those_of_the_design():
    rows = [
        {"run": "a", "control": "", "used": False, "verdict": "failed"},
        {"run": "a", "control": "", "used": True, "verdict": "valid"},
        {"run": "b", "control": "", "used": False, "verdict": "invalid"},
        {"run": "c", "control": "a", "used": False, "verdict": "valid"},
        {"run": "d", "control": "b", "used": False, "verdict": "invalid"},
    ]
    assert _usable_words(rows) == ("1 of 2 design runs and 1 of 2 control runs are valid")
    assert _usable_words(rows[:3]) == "1 of 2 design runs are valid"


def test_output_to_a_closed_pipe_is_discarded() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        stream = PrintableStream(pipe)
        print("a line", file=stream, flush=True)
        print("another line", file=stream, flush=True)
        with unless_closed(stream):
            stream.buffer.write(b"bytes")
            stream.buffer.flush()
