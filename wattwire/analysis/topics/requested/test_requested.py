"""Tests of requested tables, on campaigns with planted values, and of their page."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from wattwire.analysis.dataset import column, levels_in, levels_of, with_derived
from wattwire.analysis.metrics_by_role import values_of
from wattwire.analysis.responses import resolve
from wattwire.analysis.topics.requested.drawings import (
    Axis,
    Obstacle,
    RequestedFigure,
    Substitute,
)
from wattwire.analysis.topics.requested.numbers import Requested, requested
from wattwire.analysis.topics.requested.value_tables import (
    EXCLUDED,
    NO_VALUE,
    SATURATED,
    SKIPPED,
    UNMEASURED,
    Cell,
    ColumnGroup,
    Factor,
    PrintedCell,
    PrintedColumn,
    RequestedTable,
    ValueRow,
    ValueTable,
)
from wattwire.report.page import build_report
from wattwire.report.parts import Marked, Text, tables_of
from wattwire.report.tests.requested_campaign import campaign_of, evidence_of
from wattwire.report.tests.synthetic import FAST, SLOW
from wattwire.report.topic_page import topic_page
from wattwire.store import Campaign


def tables_in(result: Requested) -> tuple[ValueTable, ...]:
    (table,) = result.tables
    return table.tables


def cells_of(table: ValueTable) -> dict[tuple[str, int], Cell]:
    """Return the cells by the title of the row's level and the place of the group of columns."""
    return {
        (row.levels[0], place): cell for row in table.rows for place, cell in enumerate(row.cells)
    }


def plant(evidence, **columns):
    """Set columns of every valid run, and update the derived metrics."""
    frame = evidence.usable.drop("energy_uj_per_message", "energy_idle_subtracted_uj_per_message")
    evidence.usable = with_derived(frame.with_columns(**columns))
    return evidence


def test_each_value_and_role_has_a_table_with_the_printed_numbers(tmp_path) -> None:
    evidence = evidence_of(tmp_path)
    evidence.usable = evidence.usable.with_columns(
        pl.Series("faults_minor.client.0", np.full(evidence.usable.height, 2500.0))
    )
    result = requested(evidence)
    assert result.is_asked and result.has_runs and result.has_published and result.file is None
    energy, _, _, _, faults = tables = tables_in(result)
    assert [(table.response, table.unit) for table in tables] == [
        ("energy per message, client", "µJ"),
        ("CPU time per message, client", "µs"),
        ("CPU time per message, server", "µs"),
        ("time per message", "µs"),
        ("minor page faults, client", "thousand"),
    ]
    assert energy.factors == (Factor("language", "language"),)
    rows = {row.levels: row for row in energy.rows}
    assert rows["Python",].printed[0] == (PrintedCell("99", "3.5"),)
    assert rows["Swift",].printed[0] == (PrintedCell("28.2", None),)  # the lowest has no ratio
    # The columns of two clients, for which nothing was printed, are omitted.
    printed = (PrintedColumn("4", "Table 4 (Old)"),)
    assert energy.groups == (ColumnGroup("1 client", printed), ColumnGroup("2 clients", ()))
    assert energy.has_printed_ratio and not faults.has_printed_ratio
    assert faults.rows[0].cells[0] == Cell(2.5)
    assert result.tables[0].note == "Of 20,000 calls."


def test_energy_that_nothing_measured_is_missing_and_never_cpu_time(tmp_path) -> None:
    result = requested(evidence_of(tmp_path))
    energy = tables_in(result)[0]
    assert set(cells_of(energy).values()) == {UNMEASURED} and UNMEASURED.value is None
    assert not energy.is_measured and not energy.has_best and energy.most_runs == 0
    assert {ratio for row in energy.rows for ratio in row.ratios} == {None}
    (table,) = result.tables
    assert table.missing == ("energy per message", "minor page faults") and table.is_energy
    for figure_result in result.figures:
        assert figure_result.substitute == Substitute(
            "energy per message", "CPU time per message", True
        )


def test_ratios_are_over_the_lowest_of_their_own_column(tmp_path) -> None:
    evidence = evidence_of(tmp_path)
    languages, clients = (
        levels_of(evidence.usable, "language"),
        levels_of(evidence.usable, "clients"),
    )
    wanted = {(FAST, 1): 50.0, (SLOW, 1): 200.0, (FAST, 2): 90.0, (SLOW, 2): 30.0}
    rate = [1e6 / wanted[key] for key in zip(languages, clients, strict=True)]
    evidence.usable = with_derived(
        evidence.usable.drop("time_us_per_message").with_columns(
            pl.Series("rate_hz_achieved", rate)
        )
    )
    table = tables_in(requested(evidence))[3]
    rows = {row.levels[0]: row for row in table.rows}
    assert rows["Swift"].cells[0].value == pytest.approx(50.0)
    assert rows["Swift"].ratios == pytest.approx((1.0, 3.0))
    assert rows["Python"].ratios == pytest.approx((4.0, 1.0))


def test_a_role_s_cost_per_message_is_that_of_all_its_nodes_over_all_messages(tmp_path) -> None:
    evidence = evidence_of(tmp_path)
    frame = evidence.usable
    cpu = resolve("cpu_us_per_message", evidence.described)
    parts = [values_of(evidence, frame, cpu, role) for role in ("client", "server")]
    assert sum(parts) == pytest.approx(column(frame, "cpu_us_per_message"))
    two = np.array([level == 2 for level in levels_of(frame, "clients")])
    assert parts[0][two] == pytest.approx(2 * parts[1][two])  # two equal clients and one server


@pytest.mark.parametrize(("saturated", "has_number"), [(1, True), (2, False)])
def test_a_minority_of_saturated_runs_is_left_out_of_tables(
    tmp_path, saturated, has_number
) -> None:
    evidence = evidence_of(tmp_path, measured_energy=True)
    levels = levels_in(evidence.usable, evidence.varied)
    is_here = [dict(zip(evidence.varied, run, strict=True)) == {"language": FAST, "clients": 2}
               for run in levels]  # fmt: skip
    is_saturated = [here and sum(is_here[:at]) < saturated for at, here in enumerate(is_here)]
    plant(
        evidence,
        energy_message_j=column(evidence.usable, "sent") / 1e6 * np.where(is_saturated, 1e6, 1.0),
        outcome=pl.Series(["saturated" if it else "completed" for it in is_saturated]),
    )
    cpu_time = tables_in(requested(evidence))[1]
    (swift,) = (row for row in cpu_time.rows if row.levels == ("Swift",))
    assert (swift.cells[1].verdict == "") == has_number
    assert (swift.ratios[1] is not None) == has_number
    assert cpu_time.has_saturated == (not has_number)
    if not has_number:
        assert swift.cells[1].verdict == SATURATED and swift.cells[1].value is not None


def test_energy_by_idle_subtraction_has_its_own_table(tmp_path) -> None:
    both = [{"response": "energy_uj_per_message"},
            {"response": "energy_idle_subtracted_uj_per_message"}]  # fmt: skip
    table = {"title": "Idle", "rows": "language", "values": both}
    evidence = evidence_of(tmp_path, measured_energy=True, study={"table": [table]})
    sent = column(evidence.usable, "sent")
    plant(evidence, energy_message_j=sent * 2e-6, energy_idle_subtracted_j=sent * 7e-6)
    ours, subtracted = tables_in(requested(evidence))
    assert [row.cells[0].value for row in ours.rows] == pytest.approx([2.0, 2.0])
    assert [row.cells[0].value for row in subtracted.rows] == pytest.approx([7.0, 7.0])
    assert "idle subtraction" in subtracted.response
    assert ours.pooled == ("clients",) and ours.groups == (ColumnGroup("", ()),)


def test_without_the_file_of_published_numbers_there_is_no_column_of_them(tmp_path) -> None:
    result = requested(evidence_of(tmp_path, printed=""))
    assert result.file == "published.csv"
    assert not any(group.printed for table in tables_in(result) for group in table.groups)


def test_a_cell_without_a_median_has_its_reason(tmp_path) -> None:
    evidence = evidence_of(tmp_path, blocks=1, unknown_runs=(1,), skip={"clients": 1})
    verdicts = [cell.verdict for cell in cells_of(tables_in(requested(evidence))[3]).values()]
    assert (verdicts.count(SKIPPED), verdicts.count(EXCLUDED)) == (2, 1)
    (skipped, *_) = (cell for cell in cells_of(tables_in(requested(evidence))[3]).values())
    assert skipped.reason
    evidence = evidence_of(tmp_path / "unmeasured", blocks=1)
    first = np.arange(evidence.usable.height) == 0
    rate = pl.Series(np.where(first, np.nan, 20.0))
    frame = evidence.usable.drop("time_us_per_message").with_columns(rate_hz_achieved=rate)
    evidence.usable = with_derived(frame)
    verdicts = [cell.verdict for cell in cells_of(tables_in(requested(evidence))[3]).values()]
    assert verdicts.count(NO_VALUE) == 1


def test_a_study_without_requests_has_no_section(tmp_path) -> None:
    plain = {"table": [], "figure": [], "ranking": []}
    result = requested(evidence_of(tmp_path, study=plain))
    assert result == Requested() and topic_page("requested", result).section() is None


def test_one_block_has_medians_of_one_run(tmp_path) -> None:
    table = tables_in(requested(evidence_of(tmp_path, blocks=1)))[1]
    assert (table.fewest_runs, table.most_runs) == (1, 1)
    page = build_report(Campaign(campaign_of(tmp_path / "page", blocks=1))).read_text("utf-8")
    assert "Tables and figures of the study" in page and "Table 4 (Old)" in page


def test_without_a_valid_run_the_section_has_a_warning_alone(tmp_path) -> None:
    result = requested(evidence_of(tmp_path, blocks=1, unknown_runs=(0, 1, 2, 3)))
    assert result == Requested(True)
    section = topic_page("requested", result).section([((5,), Text("of another topic"))])
    assert section is not None and section.id == "requested-tables"
    (text,) = section.parts
    assert (text.key, text.value, text.tone) == ("requested.has_runs", "False", "warning")


def test_boxes_have_a_point_per_treatment_and_scatter_plots_one_per_run(tmp_path) -> None:
    boxes, scatter = requested(evidence_of(tmp_path)).figures
    assert boxes.drawing is not None and scatter.drawing is not None
    points = boxes.drawing.chart.points
    assert len(points) == 2 * 4  # two roles × four treatments
    assert {point["panel"] for point in points} == {"client", "server"}
    assert len(scatter.drawing.chart.points) == 3 * 4  # all runs
    assert scatter.drawing.x == Axis("time per message", "µs")


TABLE_RESULT = ValueTable(
    "delay", "µs", True, (Factor("language", "language"),),
    (ColumnGroup("1 client", (PrintedColumn("4", "Table 4"),)), ColumnGroup("2 clients", ())),
    (
        ValueRow(
            ("Swift",), (Cell(2.0), Cell(5.0, SATURATED)), (1.0, None),
            ((PrintedCell("2.5", "1.25"),), ()),
        ),
        ValueRow(
            ("Python",), (Cell(None, SKIPPED, "too slow"), Cell()), (None, None),
            ((PrintedCell(None, None),), ()),
        ),
    ),
    1, 3, ("pattern",), True, True,
)  # fmt: skip
WHOLE = Requested(
    True, True, True, None, "10.1/x",
    (RequestedTable("Delay, as in table 4", "A note.", ("energy",), True, (TABLE_RESULT,)),),
    (RequestedFigure("No bars", "box", Obstacle("not measured", ("energy",))),),
)  # fmt: skip


def test_the_page_has_our_numbers_next_to_the_printed_ones() -> None:
    section = topic_page("requested", WHOLE).section([((5,), Text("of another topic"))])
    assert section is not None
    about, question, note, missing, table, obstacle, last = section.parts
    assert (about.key, about.value) == ("requested.file", "None")
    assert (question.tone, note.words) == ("question", "A note.")
    assert (missing.key, missing.value) == ("requested.missing", "1")
    assert (table.id, table.title) == ("laid-out-1-1", "Delay (µs)")
    assert [(column.key, column.group, column.kind) for column in table.columns] == [
        ("language", "", "text"),
        ("0 here", "1 client", "measured"),
        ("0 best", "1 client", "measured"),
        ("0 4", "1 client", "published"),
        ("0 4 ratio", "1 client", "published"),
        ("1 here", "2 clients", "measured"),
        ("1 best", "2 clients", "measured"),
    ]
    assert table.columns[0].factor == "language"
    swift, python = table.rows
    assert (swift["0 here"], swift["0 best"]) == (2.0, 1.0)
    assert (swift["0 4"], swift["0 4 ratio"]) == ("2.5", "1.25")
    saturated = swift["1 here"]
    assert (saturated.value, str(saturated), saturated.verdict) == (
        5.0,
        "5.00 saturated",
        SATURATED,
    )
    assert python["0 here"] == Marked(None, "skipped", "", SKIPPED, "too slow")
    assert python["1 here"] is None and python["0 4"] is None
    assert "1 to 3 runs per cell, pooled over pattern" in table.note
    assert "“saturated”" in table.note
    assert (obstacle.key, obstacle.value) == ("requested.obstacle", "not measured")
    assert last.words == "of another topic"


def test_missing_numbers_state_what_is_missing() -> None:
    cells = (UNMEASURED, Cell(None, NO_VALUE), Cell(None, EXCLUDED))
    rows = tuple(ValueRow((), (cell,), (None,), ((),)) for cell in cells)
    table = ValueTable("a", "", False, (), (ColumnGroup("", ()),), rows, 0, 0, (), False, False)
    result = Requested(True, True, tables=(RequestedTable("T", "", (), False, (table,)),))
    (found,) = tables_of([part for _, part in topic_page("requested", result).parts])
    marked = [row["0 here"] for row in found.rows]
    assert [cell.words for cell in marked] == ["not measured", "no value", "excluded"]
    assert [cell.hint for cell in marked] == [
        "not measured on this machine",
        "no message of the cell's runs gave this response",
        "no run of the cell is valid",
    ]
    assert found.note == "" and [column.title for column in found.columns] == ["here"]
