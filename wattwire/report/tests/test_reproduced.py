"""Tests of the sections that only imported campaigns have."""

from __future__ import annotations

import csv
import dataclasses
from types import SimpleNamespace

import polars as pl
import pytest

from wattwire import imports
from wattwire.imports import Check, Match, Remark, SetAside
from wattwire.imports.tests.test_writing import ABOUT, tiny
from wattwire.report.parts import Fold, Marked, Table, tables_of, write_csv
from wattwire.report.sections import replication


def campaign(path, checks=(), remarks=(), set_aside=()):
    imported = tiny()
    changed = type(imported)(
        imported.study, imported.runs, imported.provenance, tuple(set_aside), imported.columns,
        imported.reasons, tuple(checks), tuple(remarks),
    )  # fmt: skip
    return imports.write(changed, path, ABOUT, {})


def sections(path, **parts):
    reader = campaign(path / "c", **parts)
    made = replication.sections(SimpleNamespace(reader=reader))
    return {section.id: section for section in made}


def check(row: str, column: str, printed: str, value: float | None, match: Match, **more):
    place = {"table": "1", "node": "x", "language": row, "column": column}
    return Check("Table 1", place, printed, value, match, "their sum", **more)


CHECKS = (
    check("C++", "energy (J)", "48.82", 48.8181, Match.EXACT),
    check("C++", "power (W)", "0.27", 0.2727, Match.EXACT, weak=True),
    check("Py", "energy (J)", "127.83", 150.3526, Match.DIFFERS, explanation="two files",
          default_value=151.0),
    check("Py", "power (W)", "0.71", None, Match.NOT_COMPUTABLE, explanation="no file"),
    Check("Tests", {"test": "H"}, "6.53e-60", 6.536e-60, Match.BY_SEARCH, "IQR", searched=4),
)  # fmt: skip


def table(section, key: str) -> Table:
    return next(one for one in tables_of(section.parts) if one.id == key)


def test_the_count_of_every_verdict_comes_first(tmp_path) -> None:
    part = sections(tmp_path, checks=CHECKS)["replication"]
    assert part.parts[0].words == (
        "Of 5 printed numbers: 2 exact, 1 exact by search (weak matches, with few digits: 1), "
        "0 within 1 %, 1 differ, 1 cannot be computed from these data."
    )
    rows = table(part, "reproduced").rows
    assert [row["group"] for row in rows] == ["Table 1", "Tests"]
    assert (rows[0]["exact"], rows[0]["differs"], rows[0]["weak"], rows[0]["all"]) == (2, 1, 1, 4)


def test_a_table_is_laid_out_as_printed_with_a_mark_in_every_cell(tmp_path) -> None:
    made = table(sections(tmp_path, checks=CHECKS)["replication"], "reproduced-1")
    assert made.title == "Table 1, x", "what all rows share stands in the title"
    assert [column.title for column in made.columns] == [
        "language", "printed", "here", "printed", "here",
    ]  # fmt: skip
    assert made.groups == [("", 1), ("energy (J)", 2), ("power (W)", 2)]
    shown = [[made.text(column, row) for column in made.columns] for row in made.rows]
    assert shown == [
        ["C++", "48.82", "48.8181 ✓", "0.27", "0.2727 (✓)"],
        ["Py", "127.83", "150.3526 ✗", "0.71", "–"],
    ]
    hint = made.hint(made.columns[2], made.rows[1])
    assert hint == "differs; their sum; two files"


def test_what_is_not_plainly_exact_is_told_in_words(tmp_path) -> None:
    part = sections(tmp_path, checks=CHECKS)["replication"]
    (row,) = table(part, "reproduced-1-remarks").rows
    assert (row["where"], row["match"], row["remark"]) == ("Py, energy (J)", "differs",
                                                             "two files")  # fmt: skip
    assert row["default"] == "151.0000"
    (row,) = table(part, "reproduced-2-remarks").rows
    assert row["match"] == "exact by search (4)"
    assert row["printed"] == "6.53·10⁻⁶⁰" and str(row["here"]) == "6.5360·10⁻⁶⁰ ✓ˢ"


def test_the_files_beside_the_page_hold_the_whole_number_and_its_verdict(tmp_path) -> None:
    made = table(sections(tmp_path, checks=CHECKS)["replication"], "reproduced-1")
    write_csv(made, tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert rows[0]["energy (J) here"] == "48.8181"
    assert rows[1]["energy (J) here_verdict"] == "differs"
    assert rows[1]["power (W) here"] == "" and rows[1]["power (W) here_verdict"] == (
        "cannot be computed"
    )  # fmt: skip


def test_a_long_table_is_folded_under_its_counts(tmp_path) -> None:
    many = [check(f"l{n}", "energy (J)", "1.00", 1.0, Match.EXACT) for n in range(20)]
    part = sections(tmp_path, checks=many)["replication"]
    folds = [one for one in part.parts if isinstance(one, Fold)]
    assert folds[0].title == "Table 1, x, energy (J): 20 numbers, 20 exact"


def test_findings_are_tables_with_units_and_the_words_under_them(tmp_path) -> None:
    rows = tuple({"file": f"f{n}", "power (W)": 0.5 * n, "none": None, "printed": "1.5"}
                 for n in range(3))  # fmt: skip
    part = sections(tmp_path, remarks=[Remark("Odd", "Three are.", rows), Remark("Bare", "So.")])
    odd = table(part["about-the-data"], "about-1")
    assert (odd.title, odd.note) == ("Odd", "Three are.")
    assert [(c.title, c.kind, c.unit) for c in odd.columns] == [
        ("file", "text", ""), ("power", "measured", "W"), ("printed", "published", ""),
    ]  # fmt: skip
    assert part["about-the-data"].parts[1].words == "Bare. So."


def test_many_rows_of_a_finding_are_folded(tmp_path) -> None:
    rows = tuple({"n": n} for n in range(30))
    part = sections(tmp_path, remarks=[Remark("Odd", "Many.", rows)])["about-the-data"]
    assert part.parts[1].title == "Odd: 30 rows"
    assert part.parts[0].words == "Odd. Many."
    assert part.parts[1].parts[0].note == "", "not a second time"


def test_numbers_of_the_paper_stand_back_and_ours_do_not(tmp_path) -> None:
    rows = ({"printed (J)": "-1.5", "time printed (s)": "3", "from the printed numbers": "-2.5"},)
    part = sections(tmp_path, remarks=[Remark("Odd", "One is.", rows)])["about-the-data"]
    odd = table(part, "about-1")
    assert [c.kind for c in odd.columns] == ["published", "published", "measured"]
    assert [text for _, _, text in odd.cells(odd.rows[0])] == ["−1.5", "3", "−2.5"]


def test_provenance_and_what_was_set_aside_are_summed(tmp_path) -> None:
    aside = [SetAside("a", 0, "empty"), SetAside("b", 0, "empty"), SetAside("c", 7, "late")]
    part = sections(tmp_path, set_aside=aside)["sources"]
    (row,) = table(part, "provenance").rows
    assert (row["values"], row["files"], row["used"], row["left"]) == (2, 2, 15, 2)
    assert table(part, "set-aside").rows == [
        {"why": "empty", "places": 2, "rows": None},
        {"why": "late", "places": 1, "rows": 7},
    ]


@pytest.mark.parametrize(("how", "ways"), [("mean of {} files", 10), ("watts, line {}", 1)])
def test_many_ways_to_make_values_are_named_below_one_row(tmp_path, how: str, ways: int) -> None:
    imported = tiny()
    more = pl.concat([imported.provenance] * 5).with_columns(
        how=pl.format(how, pl.int_range(pl.len()))
    )
    reader = imports.write(
        dataclasses.replace(imported, provenance=more), tmp_path / "c", ABOUT, {}
    )
    part = replication.sections(SimpleNamespace(reader=reader))[-1]
    (row,) = table(part, "provenance").rows
    folds = [one for one in part.parts if isinstance(one, Fold)]
    if ways == 1:
        assert row["how"] == "watts, its own line" and not folds
        return
    assert row["how"].startswith("10 recipes, listed below; the first is: mean of 0 files")
    assert [fold.title for fold in folds] == ["How the values were derived: 10 recipes"]
    assert [one["how"] for one in folds[0].parts[0].rows] == [how.format(n) for n in range(10)]


def test_without_printed_numbers_there_is_nothing_to_reproduce(tmp_path) -> None:
    assert list(sections(tmp_path)) == ["sources"]


def test_a_campaign_of_our_own_has_none_of_this() -> None:
    assert replication.sections(SimpleNamespace(reader=object())) == []


@pytest.mark.parametrize(
    ("value", "printed", "shown"),
    [
        (41093.883, "41,093", "41093.88"),
        (1.2345e-7, "0.00", "1.2345·10⁻⁷"),
        (0.000238, "0.00024", "0.0002380"),
        (None, "1", "–"),
        (0.0, "0.00", "0.0000"),
    ],
)
def test_our_number_shows_two_digits_more_than_are_printed(value, printed, shown) -> None:
    assert replication._number(value, printed) == shown


def test_a_mark_without_a_number_is_a_dash() -> None:
    assert str(Marked(None, "–", "", "cannot be computed")) == "–"
