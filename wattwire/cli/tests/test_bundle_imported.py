"""Tests of bundles of imported campaigns."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from wattwire.cli.main import main
from wattwire.cli.verbs.bundle import secret_lines
from wattwire.store.bundle import bundle
from wattwire.store.redact import Names, Redactor

TABLE = "lang,block,power_w\n" + "".join(
    f"{name},{block},{watts + block / 10}\n"
    for name, watts in (("a", 5), ("b", 6))
    for block in range(4)
)


def imported(folder, monkeypatch, limit=None):
    (folder / "table.csv").write_text(TABLE)
    monkeypatch.chdir(folder)
    table = str(folder / "table.csv")
    columns = ("--response", "power_w:W", "--factor", "lang", "--block", "block")
    assert main(["import", "csv", table, *columns, "--campaign", "c", "--no-report"]) == 0
    if limit is not None:
        study = json.loads((folder / "c/study.json").read_text())
        (folder / "c/study.json").write_text(json.dumps({**study, "limit": [limit]}))


def test_the_warning_of_secrets_names_the_command_that_prints_command_lines():
    redactor = Redactor(Names())
    assert list(secret_lines(redactor, Path("c d"))) == []
    redactor.place = "run.json"
    redactor.text("API_TOKEN=abcdefgh")
    (line,) = secret_lines(redactor, Path("c d"))
    assert "API_TOKEN=abc… (1×, run.json)" in line and "wattwire show 'c d' RUN --commands" in line


def test_an_imported_campaign_is_bundled_with_its_provenance(tmp_path, monkeypatch, capsys):
    imported(tmp_path, monkeypatch)
    assert main(["bundle", "c", "--author", "Doe, Jo"]) == 0
    with zipfile.ZipFile("c.zip") as archive:
        texts = {name.removeprefix("c/"): archive.read(name) for name in archive.namelist()}
    assert {"import.json", "provenance.parquet", "set_aside.csv", "CITATION.cff"} <= set(texts)
    assert json.loads(texts["import.json"])["source"] == "table.csv", "no path of this machine"
    assert b"`provenance.parquet`" in texts["README.md"]
    assert b"imported from files that others recorded" in texts["methods.tex"]
    assert b"date-released" not in texts["CITATION.cff"], "nobody knows when it was measured"
    assert b"No validity limit was checked" in texts["threats.md"]
    assert "files in" in capsys.readouterr().out


def test_names_in_lists_of_files_are_taken_out(tmp_path, monkeypatch):
    imported(tmp_path, monkeypatch)
    done = bundle(tmp_path / "c", tmp_path / "d.zip", Redactor(Names(words=("table",))), "0")
    assert done.redacted["word"] > 0
    with zipfile.ZipFile("d.zip") as archive:
        assert all(b"table.csv" not in archive.read(name) for name in archive.namelist())


def test_report_says_which_limits_are_broken_by_its_exit_code(tmp_path, monkeypatch, capsys):
    limit = {"response": "power_w", "max": 5.5}
    imported(tmp_path, monkeypatch, limit)
    assert main(["report", "c"]) == 1
    assert "1 of 2 limits broken: power_w at most 5.50" in capsys.readouterr().out
    (tmp_path / "c/study.json").write_text(
        (tmp_path / "c/study.json").read_text().replace("5.5", "55")
    )
    assert main(["report", "c"]) == 0
    assert "2 limits of the study hold." in capsys.readouterr().out
