"""Tests of the topic on printed numbers, on campaigns of planted checks."""

from __future__ import annotations

import csv
from types import SimpleNamespace

from wattwire.analysis.topics.replication.numbers import (
    ListedNumber,
    MatchCount,
    Replication,
    replication,
)
from wattwire.imports import Check, Match
from wattwire.imports.tests.test_writing import written_with
from wattwire.report.parts import Fold, Marked, Section, Table, tables_of, write_csv
from wattwire.report.topic_page import Sentences, topic_page


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


def result_of(path, checks=CHECKS) -> Replication:
    return replication(SimpleNamespace(reader=written_with(path, checks=tuple(checks))))


def section_of(path, checks=CHECKS) -> Section:
    return topic_page("replication", result_of(path, checks)).section()


def table(section: Section, key: str) -> Table:
    return next(each for each in tables_of(section.parts) if each.id == key)


def test_the_numbers_are_counted_by_match(tmp_path) -> None:
    result = result_of(tmp_path)
    assert (result.numbers, result.exact, result.by_search, result.weak) == (5, 2, 1, 1)
    assert (result.near, result.differ, result.absent) == (0, 1, 1)
    of_table, of_tests = result.tallies
    assert (of_table.group, of_table.numbers, of_table.weak) == ("Table 1", 4, 1)
    assert of_table.by_match == (2, None, None, 1, 1)
    assert (of_tests.group, of_tests.by_match) == ("Tests", (None, 1, None, None, None))


def test_the_counts_are_the_first_paragraph_and_a_line_at_the_top(tmp_path) -> None:
    page = topic_page("replication", result_of(tmp_path))
    assert page.terminal_lines == (((50,), page.texts[0]),)
    assert page.section().parts[0].value == "2"


def test_a_table_is_laid_out_as_printed_with_a_mark_in_every_cell(tmp_path) -> None:
    laid_out = table(section_of(tmp_path), "reproduced-1")
    assert laid_out.title == "Table 1, x", "what all rows share is in the title"
    titles = ["language", "printed", "here", "printed", "here"]
    assert [column.title for column in laid_out.columns] == titles
    assert laid_out.groups == [("", 1), ("energy (J)", 2), ("power (W)", 2)]
    rows = [[laid_out.text(column, row) for column in laid_out.columns] for row in laid_out.rows]
    assert rows == [
        ["C++", "48.82", "48.8181 ✓", "0.27", "0.2727 (✓)"],
        ["Py", "127.83", "150.3526 ✗", "0.71", "–"],
    ]
    hint = laid_out.hint(laid_out.columns[2], laid_out.rows[1])
    assert hint == "differs; their sum; two files"


def test_numbers_that_are_not_exact_are_listed_with_their_explanation(tmp_path) -> None:
    of_table, of_tests = result_of(tmp_path).groups
    (inexact,) = of_table.inexact
    assert inexact.place == ("Py", "energy (J)")
    assert (inexact.number.verdict, inexact.number.explanation) == ("differs", "two files")
    assert inexact.number.default_text == "151.0000" and inexact.number.has_other_default
    (searched,) = of_tests.inexact
    assert (searched.number.is_by_search, searched.number.searched) == (True, 4)
    assert (searched.number.printed, searched.number.text) == ("6.53·10⁻⁶⁰", "6.5360·10⁻⁶⁰")
    assert Sentences("replication").mark(searched.number) == "✓ˢ"
    assert not of_tests.columns and of_tests.listed == (ListedNumber(("H",), searched.number),)


def test_the_csv_file_has_the_whole_number_and_its_match(tmp_path) -> None:
    write_csv(table(section_of(tmp_path), "reproduced-1"), tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(encoding="utf-8") as file:
        first, second = csv.DictReader(file)
    assert first["energy (J) here"] == "48.8181"
    assert second["energy (J) here_verdict"] == "differs"
    assert (second["power (W) here"], second["power (W) here_verdict"]) == (
        "", "cannot be computed",
    )  # fmt: skip


def test_a_long_table_is_collapsed_under_its_counts(tmp_path) -> None:
    many = [check(f"l{n}", "energy (J)", "1.00", 1.0, Match.EXACT) for n in range(20)]
    (group,) = result_of(tmp_path / "a", many).groups
    assert group.is_collapsed and group.shared == ("x", "energy (J)")
    assert (group.numbers, group.by_match) == (20, (MatchCount("exact", 20),))
    folds = [part for part in section_of(tmp_path / "b", many).parts if isinstance(part, Fold)]
    assert [part.parts[0].id for part in folds] == ["reproduced-1", "recipes"]


def test_recipes_are_sorted_by_exact_matches(tmp_path) -> None:
    result = result_of(tmp_path)
    assert result.recipe_matches == ("exact", "exact by search", "differs")
    assert [(row.recipe, row.by_match) for row in result.recipes] == [
        ("their sum", (2, None, 1)), ("IQR", (None, 1, None)),
    ]  # fmt: skip


def test_without_printed_numbers_there_is_no_section(tmp_path) -> None:
    page = topic_page("replication", result_of(tmp_path, ()))
    assert page.section() is None and not page.terminal_lines
    assert replication(SimpleNamespace(reader=object())) == Replication()


def test_a_mark_without_a_number_is_a_dash() -> None:
    assert str(Marked(None, "–", "", "cannot be computed")) == "–"
