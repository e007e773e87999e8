"""Tests of `wattwire import`, and of the other commands on imported campaigns."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import polars as pl
import pytest

import wattwire
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import gather
from wattwire.cli.main import main
from wattwire.imports.table import column
from wattwire.imports.tests.test_loading import study
from wattwire.model.errors import EXIT_BAD_RESULT, EXIT_OK, EXIT_USAGE
from wattwire.report.tests.answered import headline
from wattwire.store import open_campaign

TABLE = "lang,size,day,power\n" + "".join(
    f"{lang},{size},{day},{base + size / 10 + day / 100}\n"
    for lang, base in (("c", 1.0), ("py", 2.0))
    for size in (1, 2)
    for day in (1, 2, 3)
)


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    """Return a folder whose subfolder `root` contains one study and is on the search path."""
    study(tmp_path / "root")
    monkeypatch.setenv("WATTWIRE_PATH", str(tmp_path / "root"))
    monkeypatch.setenv("COLUMNS", "400")
    (tmp_path / "data").mkdir()
    return tmp_path


@pytest.fixture
def table(tmp_path) -> Path:
    path = tmp_path / "mine.csv"
    path.write_text(TABLE)
    return path


def brought(root: Path, *more: str) -> list[str]:
    typed = ["import", "tiny", str(root / "data"), "--campaign", str(root / "c"), "--no-report"]
    return [*typed, *more]


def test_a_study_s_data_become_a_campaign(root, capsys) -> None:
    assert main(brought(root)) == EXIT_OK
    out = capsys.readouterr().out.splitlines()
    assert out[0] == f"2 of 2 runs are valid, with 2 values from 1 file: {root / 'c'}"
    assert out[1] == "Recipe: right."
    assert out[-1] == f"Next: wattwire report {root / 'c'}"
    assert pl.read_parquet(root / "c" / "summary.parquet", glob=False)["power_w"].to_list() == [
        1.5,
        2.5,
    ]


def test_another_recipe_is_used_and_told(root, capsys) -> None:
    assert main(brought(root, "--recipe", "theirs")) == EXIT_OK
    assert "Recipe: theirs." in capsys.readouterr().out
    assert pl.read_parquet(root / "c" / "summary.parquet", glob=False)["power_w"].to_list() == [
        3.0,
        4.0,
    ]


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["import", "tinny", "."], 'unknown study with a reader "tinny"'),
        (["import", "tiny"], "DIR is missing"),
        (["import", __file__], "this is a file; write `import csv "),
        (["import", "tiny", "/nowhere-at-all"], "this folder does not exist; name the folder"),
        (["import", "tiny", ".", "--recipe", "x"], 'unknown recipe "x"; known: right, theirs'),
        (["import", "tiny", ".", "--factor", "a"], "--factor: allowed only with `import csv FILE`"),
        (
            ["import", "csv", "/nowhere.csv", "--response", "p", "--factor", "f"],
            "this file does not exist",
        ),
        (["import", "csv", "x.csv", "--recipe", "y"], "--recipe: a table has no recipes"),
    ],
)
def test_what_cannot_be_imported_is_said(root, capsys, typed, words: str) -> None:
    assert main([*typed, "--no-report"]) == EXIT_USAGE
    assert words in capsys.readouterr().err.replace("\n  ", " ")


def test_a_second_import_into_one_folder_is_refused_before_reading(root, capsys) -> None:
    assert main(brought(root)) == EXIT_OK
    assert main(brought(root)) == EXIT_USAGE
    assert "already in use by an imported campaign" in capsys.readouterr().err


def test_without_arguments_it_lists_what_can_be_read(root, capsys) -> None:
    assert main(["import"]) == EXIT_OK
    out = capsys.readouterr().out
    assert "tiny\n  right: as it is\n  theirs: twice\n" in out and "import csv FILE" in out


def test_status_tells_what_was_imported(root, capsys) -> None:
    main(brought(root))
    capsys.readouterr()
    assert main(["status", str(root / "c")]) == EXIT_OK
    assert capsys.readouterr().out.startswith("2 of 2 runs are valid")


@pytest.mark.parametrize("run", ["b", "2", "b-1"])
def test_show_tells_a_run_s_values_and_files(root, capsys, run: str) -> None:
    main(brought(root))
    capsys.readouterr()
    assert main(["show", str(root / "c"), run]) == EXIT_OK
    out = capsys.readouterr().out
    assert out.startswith("b: valid\n  size 2\n") and "power_w = 2.5" in out
    assert "read: 1 row of x.csv" in out


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["bb"], 'no run "bb"'),
        (["9"], "run 9 does not exist; allowed: 1 to 2"),
        ([], "RUN is missing"),
        (["b", "--commands"], "its data contain no commands"),
    ],
)
def test_what_show_cannot_tell_is_said(root, capsys, typed, words: str) -> None:
    main(brought(root))
    assert main(["show", str(root / "c"), *typed]) == EXIT_USAGE
    assert words in capsys.readouterr().err


def test_an_imported_campaign_is_not_resumed(root, capsys) -> None:
    main(brought(root))
    assert main(["run", "--resume", str(root / "c"), "--plain"]) == EXIT_USAGE
    assert "this directory has no campaign" in capsys.readouterr().err


def test_a_table_becomes_a_page_with_an_answer(table, tmp_path, capsys) -> None:
    typed = ["import", "csv", str(table), "--response", "power:W", "--factor", "lang"]
    typed += ["--factor", "size", "--block", "day", "--campaign", str(tmp_path / "c")]
    assert main(typed) == EXIT_OK
    page = Path(capsys.readouterr().out.splitlines()[-1])
    text = page.read_text(encoding="utf-8")
    assert "Py had" in text or "py had" in text
    assert "Sources of the values" in text and "power, its own line" in text
    assert main(["report", str(tmp_path / "c")]) == EXIT_OK


def test_every_level_is_in_the_headline_and_figures_of_long_columns_are_written(
    tmp_path, capsys
) -> None:
    response = "latency of a call " * 15 + "ms"
    lines = [f"lib,host,{response}"]
    for at, (lib, mean) in enumerate((("a", 1.0), ("b", 1.3), ("c", 2.0)) * 6):
        lines.append(f"{lib},{'xy'[at % 2]},{mean + at % 5 / 100}")
    (tmp_path / "t.csv").write_text("\n".join(lines))
    typed = ["import", "csv", str(tmp_path / "t.csv"), "--response", f"{response}:ms"]
    typed += ["--factor", "lib", "--factor", "host", "--campaign", str(tmp_path / "c")]
    assert main(typed) == EXIT_OK
    told = " ".join(capsys.readouterr().out.split())
    assert re.search(r"b had 1\.\d+ times .* c had 1\.9\d times", told), told
    page = (tmp_path / "c" / "report" / "index.html").read_text(encoding="utf-8")
    assert "One block gives no test of interactions" in page
    names = re.findall(r"box-latency-of-a-call[\w-]*", page)
    assert names and all(len(name) < 120 for name in names)
    with wattwire.load(tmp_path / "c") as loaded:
        assert loaded.units[column(response)] == "ms"


def test_too_few_repetitions_decide_neither_in_the_table_nor_in_the_headline(
    tmp_path, capsys
) -> None:
    rows = ["v,p_ms,q_ms", "a,1000,5.0", "a,1010,5.2", "b,2000,9.0", "b,2100,9.5"]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    typed = ["import", "csv", str(tmp_path / "t.csv"), "--response", "p_ms", "--response", "q_ms"]
    assert main([*typed, "--factor", "v", "--campaign", str(tmp_path / "c")]) == EXIT_OK
    told = capsys.readouterr().out
    assert told.count("too few repetitions") == 2 and "  different" not in told


def test_a_table_with_one_level_says_what_to_compare_by(tmp_path, capsys) -> None:
    (tmp_path / "one.csv").write_text(
        "lang,day,at,w\n" + "".join(f"c,{at // 2},{at},{1.5 + at / 10}\n" for at in range(4))
    )
    typed = ["import", "csv", str(tmp_path / "one.csv"), "--response", "w:W", "--factor", "lang"]
    assert main([*typed, "--campaign", str(tmp_path / "c"), "--no-report"]) == EXIT_OK
    told = " ".join(capsys.readouterr().out.split())
    assert "There is nothing to compare, because each factor has one level." in told
    assert "with --factor COLUMN for a column in which runs differ, for example day." in told
    with contextlib.closing(open_campaign(tmp_path / "c")) as campaign:
        evidence = gather(campaign)
        first = headline(evidence, answer_all(evidence))
    assert first.startswith(
        "4 runs were measured, all with the same levels (lang c), so there is nothing"
    )
    assert first.endswith("--factor COLUMN for a column in which runs differ: day.")


def rates(folder: Path, name: str, factor: float, *options: str) -> str:
    """Import eight runs of a server with rates around 1000 times `factor`; return the campaign."""
    rows = [f"go,{day},{factor * (1000 + day)},{factor * (50 + day)}\n" for day in range(8)]
    (folder / f"{name}.csv").write_text("server,day,req_per_s,score\n" + "".join(rows))
    typed = ["import", "csv", str(folder / f"{name}.csv"), "--response", "req_per_s"]
    typed += ["--response", "score", "--factor", "server", "--no-report", *options]
    assert main([*typed, "--campaign", str(folder / name)]) == EXIT_OK
    return str(folder / name)


def test_a_response_of_a_table_is_compared_by_its_name_in_the_table(tmp_path, capsys) -> None:
    for name in ("base", "head"):
        rows = [f"go,{day},{1 + day % 2}\n" for day in range(8)]
        (tmp_path / f"{name}.csv").write_text("server,day,lost\n" + "".join(rows))
        typed = ["import", "csv", str(tmp_path / f"{name}.csv"), "--response", "lost"]
        typed += ["--factor", "server", "--no-report", "--campaign", str(tmp_path / name)]
        assert main(typed) == EXIT_OK
    compared = ["compare", str(tmp_path / "base"), str(tmp_path / "head"), "--across-machines"]
    main([*compared, "--response", "lost"])
    assert "lost  cannot tell  1.00 times" in capsys.readouterr().out
    assert main([*compared, "--response", "loss_share"]) == EXIT_USAGE
    assert "no run has loss_share; available: lost" in capsys.readouterr().err


@pytest.mark.parametrize(("factor", "code"), [(0.6, EXIT_BAD_RESULT), (1.4, EXIT_OK)])
def test_the_gate_fails_on_a_drop_of_a_rate_and_not_on_a_gain(tmp_path, capsys, factor, code):
    base, head = rates(tmp_path, "base", 1.0), rates(tmp_path, "head", factor)
    compared = ["compare", base, head, "--across-machines", "--response"]
    assert main([*compared, "req_per_s"]) == code
    capsys.readouterr()
    assert main([*compared, "score"]) == EXIT_USAGE
    assert "Import again with --higher-is-better score" in capsys.readouterr().err
    assert main([*compared, "p99"]) == EXIT_USAGE
    assert capsys.readouterr().err.rstrip().endswith("Available: req_per_s, score")
    lower = rates(tmp_path, "lower", factor, "--lower-is-better", "score")
    assert main(["compare", base, lower, *compared[3:], "score"]) == {0: 1, 1: 0}[code]
    higher = rates(tmp_path, "higher", factor, "--higher-is-better", "score")
    assert main(["compare", lower, higher, *compared[3:], "score"]) == EXIT_USAGE
    assert "higher is better in one campaign" in capsys.readouterr().err
