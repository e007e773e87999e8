"""Tests of the topic on printed numbers, on campaigns with planted values."""

from __future__ import annotations

import math

import polars as pl
import pytest

from wattwire.analysis.dataset import gather
from wattwire.analysis.topics.published.numbers import (
    Absence,
    Constant,
    PrintedTable,
    Published,
    Windows,
    published,
)
from wattwire.model.errors import UsageError
from wattwire.report.parts import tables_of
from wattwire.report.tests.planted import planted
from wattwire.report.tests.synthetic import FAST, SLOW, Shape, write_campaign
from wattwire.report.topic_page import topic_page
from wattwire.stats import Band, Interval
from wattwire.store import Campaign

ROWS = (
    "table,node_role,pattern,language,clients,interval_s,cpu_percent,memory_kib,energy_j,"
    "power_w,source\n"
    f"9,client,service,{FAST},2,0.05,0.590,19000,50.1,0.3,Table 9\n"
    f"9,client,service,{SLOW},1,0.05,1.59,41000,80,0.9,Table 9\n"
    f"9,client,service,{FAST},3,0.05,0.7,19100,51,0.3,Table 9\n"
)


def result_of(folder, rows: str = ROWS, **shape) -> Published:
    study = {"published": "published.csv", "source": "10.0000/none", **shape.pop("study", {})}
    campaign = write_campaign(folder / "campaign", Shape(study=study, **shape))
    if rows:
        (campaign / "published.csv").write_text(rows, "utf-8")
    return published(gather(Campaign(campaign)))


def planted_result(folder, rows: str, *windows_s: float) -> Published:
    """Return the result of a campaign without meters and of these printed rows."""
    document = {"factors": {"variant": ["a", "b"]}, "variants": {"a": {}, "b": {}},
                "published": "published.csv"}  # fmt: skip
    treatments = [{"variant": "a"}, {"variant": "b"}]
    evidence = planted(folder, document, treatments, lambda _: 100.0, 2)
    (folder / "published.csv").write_text(rows, "utf-8")
    if windows_s:
        evidence.usable = evidence.usable.with_columns(pl.Series("cost_window_s", windows_s))
    return published(evidence)


def by_key(table: PrintedTable, row: int) -> dict:
    """Return our value of each quantity in a row."""
    keys = (quantity.key for quantity in table.quantities)
    return dict(zip(keys, table.rows[row].here, strict=True))


def test_printed_rows_have_the_values_of_all_metered_clients(tmp_path) -> None:
    result = result_of(tmp_path)
    (table,) = result.tables
    assert [column.name for column in table.columns] == ["language", "clients"]
    two, one, three = table.rows
    assert (two.runs, two.printed[0]) == (3, "0.590")  # as printed in the paper
    memory = by_key(table, 0)["memory_kib"]
    assert isinstance(memory.value, Interval)
    assert memory.value.estimate == pytest.approx(20_000)
    assert memory.nodes == pytest.approx((20_000, 20_000))
    assert by_key(table, 1)["memory_kib"].nodes == pytest.approx((41_000,))
    assert isinstance(by_key(table, 0)["power_w"].value, Band)
    assert (three.runs, three.absence) == (0, Absence("not planned"))
    assert one.absence is None


def test_an_estimate_never_has_the_name_of_a_measured_quantity(tmp_path) -> None:
    (table,) = result_of(tmp_path).tables
    kinds = {quantity.key: quantity.kind for quantity in table.quantities}
    assert kinds["energy_j"] == kinds["power_w"] == "estimate"
    assert kinds["cpu_percent"] == "measured"


def test_a_printed_energy_of_a_node_stands_beside_its_share_of_busy_time(tmp_path) -> None:
    document = {"factors": {"variant": ["a", "b"]}, "variants": {"a": {}, "b": {}},
                "published": "published.csv"}  # fmt: skip
    rows = "table,node_role,variant,cpu_percent,energy_j,power_w\n"
    rows += "5,publisher,a,1.0,48.8,0.27\n5,publisher,absent,1.0,48.8,0.27\n"
    evidence = planted(tmp_path, document, [{"variant": "a"}, {"variant": "b"}], lambda _: 1.0, 3)
    (tmp_path / "published.csv").write_text(rows, "utf-8")
    evidence.usable = evidence.usable.with_columns(
        pl.lit(2.0).alias("cost_window_s"), pl.lit(0.1).alias("cpu_share.publisher.0"),
        pl.lit(3.0).alias("energy_j.publisher.0"),
        pl.lit(40.0).alias("energy_busy_share_j.publisher.0"),
    )  # fmt: skip
    result = published(evidence)
    (table,) = tables_of(topic_page("published", result).section().parts)
    row, absent = table.rows
    assert absent["because"] and absent["energy_j_busy_share"] is None
    measured = ("energy_j_here", "power_w_here", "energy_j_busy_share", "power_w_busy_share")
    assert [row[key].estimate for key in measured] == pytest.approx([3.0, 1.5, 40.0, 20.0])
    assert "cpu_percent_busy_share" not in row
    assert "charged with the power of the idle machine" in str(table.note)


def test_the_page_has_the_printed_and_our_numbers_with_the_study_s_titles(tmp_path) -> None:
    result = result_of(tmp_path)
    (table,) = tables_of(topic_page("published", result).section().parts)
    assert table.id == "published-9-client"
    kinds = {column.key: column.kind for column in table.columns}
    assert kinds["energy_j_published"] == "published" and kinds["energy_j_here"] == "estimate"
    assert "energy_j_each" not in kinds and kinds["memory_kib_each"] == "text"
    language, clients = table.columns[:2]
    assert (table.rows[1]["language"], table.text(language, table.rows[1])) == (SLOW, "Python")
    assert table.rows[0]["memory_kib_here"] == by_key(result.tables[0], 0)["memory_kib"].value
    assert table.rows[0]["because"] is None and table.rows[2]["because"]


def test_a_printed_row_that_no_cell_can_run_has_the_reason(tmp_path) -> None:
    result = result_of(tmp_path, skip={"pattern": "service", "language": SLOW, "clients": 1})
    absence = result.tables[0].rows[1].absence
    assert absence == Absence("skipped", ("the cell has no such capability",))


def test_platforms_are_not_matched_and_quantities_may_be_printed_only(tmp_path) -> None:
    rows = (
        "table,node_role,platform,pattern,language,clients,interval_s,energy_j,time_s,source\n"
        f"4,client,theirs,service,{FAST},1,0.05,50.1,,Table 4\n"
        f"4,both,theirs,service,{FAST},1,0.05,,28,Table 4\n"
    )
    client, both = result_of(tmp_path, rows, blocks=2).tables
    assert client.rows[0].runs == both.rows[0].runs == 2
    assert client.rows[0].printed == ("50.1",) and both.rows[0].printed == ("28",)
    assert [quantity.kind for quantity in both.quantities] == [""]
    assert both.rows[0].absence is None


def test_a_role_without_nodes_has_a_reason(tmp_path) -> None:
    rows = f"table,node_role,language,cpu_percent\n4,nobody,{FAST},0.5\n"
    (table,) = result_of(tmp_path, rows, blocks=1).tables
    assert table.rows[0].absence == Absence("no role", ("nobody",))


def test_a_row_whose_runs_were_excluded_has_their_reason(tmp_path) -> None:
    rows = f"table,node_role,language,cpu_percent\n4,client,{FAST},0.5\n"
    result = result_of(
        tmp_path, rows, blocks=1, patterns=("topic",), intervals_s=(0.2,), clients=(1,),
        unknown_runs=(0, 1),
    )  # fmt: skip
    assert result.tables[0].rows[0].absence.kind == "excluded"
    assert result.windows == Windows(has_runs=False)


def test_windows_are_those_of_the_valid_runs_and_energy_is_a_subject_if_there_is_some(tmp_path):
    plain, power = "table,variant,cpu_percent\nI,a,9\n", "table,variant,power_w\nI,a,9\n"
    result = planted_result(tmp_path / "c", plain, 0.00095, 0.4, 0.5, 1.1449)
    assert (result.windows.shortest_s, result.windows.longest_s) == (0.00095, 1.1449)
    assert not result.windows.are_equal and not result.has_energy
    result = planted_result(tmp_path / "e", power, *[1.1401, 1.1402] * 2)
    assert result.windows.are_equal and result.has_energy
    assert planted_result(tmp_path / "u", plain, *[math.nan] * 4).windows == Windows()


def test_the_title_of_a_table_names_no_empty_column(tmp_path) -> None:
    rows = "table,node_role,variant,network,device,source\nI,,a,,x,Table I\nII,both,a,wlan,x,\n"
    result = planted_result(tmp_path / "c", rows)
    first, second = result.tables
    assert (first.source, first.role) == ("Table I", "")
    assert first.constants == (Constant("variant", "a"), Constant("device", "x"))
    assert (second.source, second.role) == ("Table II", "both")
    titles = [table.title for table in tables_of(topic_page("published", result).section().parts)]
    assert titles == [
        "Table I (variant a, device x)", "Table II: both (variant a, network wlan, device x)",
    ]  # fmt: skip


def test_a_missing_file_is_named_and_an_empty_one_is_an_error(tmp_path) -> None:
    missing = result_of(tmp_path / "missing", "", blocks=1)
    assert missing == Published(missing_file="published.csv")
    (part,) = topic_page("published", missing).section().parts
    assert (part.tone, part.value) == ("warning", "published.csv")
    with pytest.raises(UsageError, match="no rows"):
        result_of(tmp_path / "empty", "table,language\n", blocks=1)


def test_tables_that_the_study_requests_are_not_listed_again(tmp_path) -> None:
    table = {
        "title": "T",
        "rows": "language",
        "published": ["9"],
        "values": [{"response": "cpu", "published": "cpu_percent"}],
    }
    more = ROWS + f"8,client,service,{FAST},1,0.05,1,1,1,1,Table 8\n"
    result = result_of(tmp_path, more, blocks=1, study={"table": [table]})
    assert [table.source for table in result.tables] == ["Table 8"]
    alone = result_of(tmp_path / "alone", blocks=1, study={"table": [table]})
    assert alone == Published() and topic_page("published", alone).section() is None
