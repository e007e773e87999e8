"""Tests of the output: control characters, encodings without a character, closed streams."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from wattwire.cli.exec.table import _Progress
from wattwire.cli.main import main
from wattwire.cli.wrap import printable
from wattwire.model.deployment import Request, Target

EVIL = "\x1b]0;owned\x07\x1b[2J"
TABLE = f"lang,{EVIL}y\n" + "".join(f"{name}{EVIL},{n}\n" for name in "ab" for n in (1, 2, 4))


@pytest.fixture
def table(tmp_path):
    (tmp_path / "t.csv").write_text(TABLE)
    return tmp_path / "t.csv"


def test_escape_sequences_of_a_table_do_not_reach_the_terminal(table, tmp_path, capsys):
    words = ["import", "csv", str(table), f"--response={EVIL}y", "--factor=lang", "--no-report"]
    assert main([*words, "--campaign", str(tmp_path / "c")]) == 0
    assert main(["import", "csv", str(table), "--response=x", "--factor=lang"]) == 2
    told = capsys.readouterr()
    assert "\\x1b]0;owned\\x07" in told.err
    assert "\x1b" not in told.out + told.err and "\x07" not in told.out + told.err


def test_escape_sequences_of_a_study_do_not_reach_the_terminal(tmp_path, capsys):
    study = tmp_path / "s.toml"
    study.write_text('title = "a"\n[factors]\n"\\u001b[2Jx" = [1]\n')
    assert main(["plan", str(study)]) == 2
    told = capsys.readouterr().err
    assert "\\x1b[2Jx" in told and "\x1b" not in told


def test_text_keeps_its_spaces_letters_and_line_breaks():
    text = "1\u202f000 µs\tä\n中 😀"
    assert printable(text) == text
    assert printable("\x9b2J\u202ea\r") == "\\x9b2J\\u202ea\\r"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_an_output_without_a_character_escapes_it(encoding):
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "wattwire.cli.main", "list", "studies"]
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("redirect", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_output_is_no_error(redirect):
    command = f"exec {sys.executable} -m wattwire.cli.main list studies {redirect}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=False)
    assert done.returncode == 0 and b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("request_of", "words"),
    [
        (Request(command=("x",), for_s=2.0), "the command starts now (window: 2 s)"),
        (Request(command=("x",)), "the command starts now"),
        (Request(attached=(Target("pid:1", pid=1),), for_s=3.0), "the window begins now"),
    ],
)
def test_exec_announces_the_begin_of_the_window(capsys, request_of, words):
    _Progress(1, request_of).event("phase", phase="baseline")
    assert capsys.readouterr().err == ""
    _Progress(1, request_of).event("phase", phase="window")
    assert words in capsys.readouterr().err
