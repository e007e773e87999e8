"""Tests of the topic on remarks about imported data."""

from __future__ import annotations

from types import SimpleNamespace

from wattwire.analysis.topics.data_remarks.numbers import DataRemarks, RemarkColumn, data_remarks
from wattwire.imports import Remark
from wattwire.imports.tests.test_writing import written_with
from wattwire.report.parts import Fold, Table, Text
from wattwire.report.topic_page import topic_page


def result_of(path, *remarks: Remark) -> DataRemarks:
    return data_remarks(SimpleNamespace(reader=written_with(path, remarks=remarks)))


def test_a_remark_has_a_table_with_units_and_its_text_below(tmp_path) -> None:
    rows = tuple({"file": f"f{n}", "power (W)": 0.5 * n, "none": None, "printed": "1.5"}
                 for n in range(3))  # fmt: skip
    result = result_of(tmp_path, Remark("Odd", "Three are.", rows), Remark("Bare", "So."))
    assert result.remarks[0].columns == (
        RemarkColumn("file", "file", "text", ""),
        RemarkColumn("power (W)", "power", "measured", "W"),
        RemarkColumn("printed", "printed", "published", ""),
    )
    section = topic_page("data_remarks", result).section()
    table, bare = section.parts
    assert (section.id, table.id, table.note) == ("about-the-data", "about-1", "Three are.")
    assert [row["power (W)"] for row in table.rows] == [0.0, 0.5, 1.0]
    assert isinstance(bare, Text)


def test_a_remark_with_many_rows_is_collapsed(tmp_path) -> None:
    rows = tuple({"n": n} for n in range(30))
    section = topic_page(
        "data_remarks", result_of(tmp_path, Remark("Odd", "Many.", rows))
    ).section()
    text, fold = section.parts
    assert isinstance(text, Text) and isinstance(fold, Fold)
    (table,) = fold.parts
    assert len(table.rows) == 30
    assert table.note == "", "the text is above the table, and not a second time below it"


def test_printed_numbers_have_another_style_than_measured_ones(tmp_path) -> None:
    rows = ({"printed (J)": "-1.5", "time printed (s)": "3", "from the printed numbers": "-2.5"},)
    result = result_of(tmp_path, Remark("Odd", "One is.", rows))
    kinds = [column.kind for column in result.remarks[0].columns]
    assert kinds == ["published", "published", "measured"]
    (table,) = topic_page("data_remarks", result).section().parts
    assert isinstance(table, Table)
    assert [text for _, _, text in table.cells(table.rows[0])] == ["−1.5", "3", "−2.5"]


def test_remarks_that_qualify_every_answer_are_at_the_top(tmp_path) -> None:
    result = result_of(tmp_path, Remark("A", "One.", at_top=True), Remark("B", "Two."))
    assert [remark.title for remark in result.at_top] == ["A"]
    lines = topic_page("data_remarks", result).terminal_lines
    assert [place for place, _ in lines] == [(3,)]


def test_remarks_are_threats_of_a_bundle(tmp_path) -> None:
    copied = Remark("Files that are copies", "They count twice.", ({"file": "a"},))
    ((section, (place, text)),) = topic_page("data_remarks", result_of(tmp_path, copied)).elsewhere
    assert (section, place, text.paragraph, text.value) == ("threats.md", (20, 85), "internal", "1")
    assert "(1 row in remarks.json): Files that are copies. They count" in text.words


def test_a_measured_campaign_has_no_remarks() -> None:
    result = data_remarks(SimpleNamespace(reader=object()))
    assert result == DataRemarks() and topic_page("data_remarks", result).section() is None
