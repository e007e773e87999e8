"""Tests of requested tables, figures and rankings, on campaigns with planted values."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from wattwire.analysis.dataset import column, gather, levels_of, with_derived
from wattwire.analysis.metrics_by_role import values_of
from wattwire.analysis.responses import resolve
from wattwire.report.page import build_report
from wattwire.report.parts import Figure, Marked, Text, figures_of, tables_of
from wattwire.report.sections import requested_tables
from wattwire.report.tests.synthetic import FAST, SLOW, Shape, write_campaign
from wattwire.store import Campaign

PRINTED = (
    "table,node_role,language,clients,energy_j,energy_ratio,time_s,source\n"
    "4,client,python,1,99,3.5,,Table 4 (Old)\n"
    "4,client,swift,1,28.2,,,Table 4 (Old)\n"
    "4,server,python,1,105.80,3.9,,Table 4 (Old)\n"
    "4,both,python,1,,,28,Table 4 (Old)\n"
    "4,both,swift,1,,,3,Table 4 (Old)\n"
    "9,client,python,1,7,,,Table 9 (Old)\n"
)
TABLE = {
    "title": "Energy and time, as in table 4",
    "rows": "language",
    "columns": "clients",
    "best": True,
    "published": ["4"],
    "note": "Of 20,000 calls.",
    "values": [
        {"response": "energy_uj_per_message", "roles": ["client"], "published": "energy_j",
         "ratio": "energy_ratio"},
        {"response": "cpu_us_per_message", "roles": ["client", "server"]},
        {"response": "time_us_per_message", "published": "time_s"},
        {"response": "faults_minor", "roles": ["client"], "divide_by": 1000},
    ],
}  # fmt: skip
FIGURES = [
    {"title": "Boxes", "kind": "box", "response": "energy_uj_per_message", "by": "language",
     "instead": "cpu_us_per_message", "roles": ["client", "server"]},
    {"title": "Both", "kind": "scatter", "response": "energy_uj_per_message", "by": "language",
     "against": "time_us_per_message", "instead": "cpu_us_per_message"},
]  # fmt: skip
RANKING = {
    "title": "Energy times delay",
    "product": ["energy_uj_per_message", "time_us_per_message"],
    "published": "4",
    "published_product": ["energy_j", "time_s"],
}
STUDY = {
    "published": "published.csv",
    "table": [TABLE],
    "figure": FIGURES,
    "ranking": [RANKING],
}


def campaign_of(folder, printed=PRINTED, study=None, **shape):
    made = Shape(
        **{"blocks": 3, "duration_s": 4.0, "patterns": ("service",), "intervals_s": (0.2,),
           "study": {**STUDY, **(study or {})}, **shape}
    )  # fmt: skip
    at = write_campaign(folder / "campaign", made)
    if printed:
        (at / "published.csv").write_text(printed)
    return at


def evidence_of(folder, **shape):
    return gather(Campaign(campaign_of(folder, **shape)))


def tables(part) -> dict:
    return {table.id: table for table in tables_of(part.parts)}


def texts(part) -> str:
    return " ".join(one.words for one in part.parts if isinstance(one, Text))


def plant(evidence, **columns):
    """Set columns of every valid run, and update the derived metrics."""
    frame = evidence.usable.drop("energy_uj_per_message", "energy_idle_subtracted_uj_per_message")
    evidence.usable = with_derived(frame.with_columns(**columns))
    return evidence


def test_each_value_and_role_has_a_table_with_the_printed_numbers_beside(tmp_path) -> None:
    evidence = evidence_of(tmp_path)
    evidence.usable = evidence.usable.with_columns(
        pl.Series("faults_minor.client.0", np.full(evidence.usable.height, 2500.0))
    )
    part = requested_tables.section(evidence)
    found = tables(part)
    assert [found[f"laid-out-1-{at}"].title for at in range(1, 6)] == [
        "Energy per message, client (µJ)",
        "CPU time per message, client (µs)",
        "CPU time per message, server (µs)",
        "Time per message (µs)",
        "Minor page faults, client (thousand)",
    ]
    energy = {row["language"]: row for row in found["laid-out-1-1"].rows}
    assert energy["Python"]["0 4"] == "99" and energy["Python"]["0 4 ratio"] == "3.5"
    assert energy["Swift"]["0 4 ratio"] is None  # the lowest value has no ratio
    assert energy["Python"]["1 4"] is None  # not printed for two clients
    # The columns of two clients, for which nothing was printed, are omitted.
    assert [c.title for c in found["laid-out-1-1"].columns if c.kind == "published"] == [
        "Table 4 (Old)", requested_tables.BEST,
    ]  # fmt: skip
    assert found["laid-out-1-5"].rows[0]["0 here"] == 2.5
    assert "Of 20,000 calls." in texts(part)


def test_energy_that_nothing_measured_says_so_and_is_never_cpu_time(tmp_path) -> None:
    part = requested_tables.section(evidence_of(tmp_path))
    energy = tables(part)["laid-out-1-1"]
    cells = [row[f"{at} here"] for row in energy.rows for at in (0, 1)]
    assert all(isinstance(cell, Marked) and cell.value is None for cell in cells)
    assert {cell.hint for cell in cells} == {"not measured on this machine"}
    assert not any("best" in key for row in energy.rows for key in row)
    told = texts(part)
    assert "Energy per message and minor page faults: not measured on this machine." in told
    assert "it is not energy" in told
    for drawn in figures_of(part.parts):
        assert "CPU time per message" in drawn.title
        assert "Energy per message was not measured on this machine" in drawn.caption
        assert "which is not energy" in drawn.caption


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
    table = tables(requested_tables.section(evidence))["laid-out-1-4"]
    rows = {row["language"]: row for row in table.rows}
    assert rows["Swift"]["0 here"] == pytest.approx(50.0)
    assert (rows["Swift"]["0 best"], rows["Python"]["0 best"]) == pytest.approx((1.0, 4.0))
    assert (rows["Swift"]["1 best"], rows["Python"]["1 best"]) == pytest.approx((3.0, 1.0))


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
    levels = zip(*(levels_of(evidence.usable, name) for name in evidence.varied), strict=True)
    is_here = [dict(zip(evidence.varied, run, strict=True)) == {"language": FAST, "clients": 2}
               for run in levels]  # fmt: skip
    is_saturated = [here and sum(is_here[:at]) < saturated for at, here in enumerate(is_here)]
    plant(
        evidence,
        energy_message_j=column(evidence.usable, "sent") / 1e6 * np.where(is_saturated, 1e6, 1.0),
        outcome=pl.Series(["saturated" if it else "completed" for it in is_saturated]),
    )
    found = tables(requested_tables.section(evidence))
    cpu_time = {row["language"]: row for row in found["laid-out-1-2"].rows}["Swift"]
    assert isinstance(cpu_time["1 here"], Marked) != has_number
    assert ("1 best" in cpu_time) == has_number


def test_energy_by_idle_subtraction_stands_beside_ours_under_its_own_name(tmp_path) -> None:
    both = [{"response": "energy_uj_per_message"},
            {"response": "energy_idle_subtracted_uj_per_message"}]  # fmt: skip
    table = {"title": "Idle", "rows": "language", "values": both}
    evidence = evidence_of(tmp_path, measured_energy=True, study={"table": [table]})
    sent = column(evidence.usable, "sent")
    plant(evidence, energy_message_j=sent * 2e-6, energy_idle_subtracted_j=sent * 7e-6)
    found = tables(requested_tables.section(evidence))
    assert [row["0 here"] for row in found["laid-out-1-1"].rows] == pytest.approx([2.0, 2.0])
    assert [row["0 here"] for row in found["laid-out-1-2"].rows] == pytest.approx([7.0, 7.0])
    assert "idle subtraction" in found["laid-out-1-2"].title


def test_without_the_file_of_published_numbers_there_is_no_column_of_them(tmp_path) -> None:
    unknown = evidence_of(tmp_path / "without", printed="")
    part = requested_tables.section(unknown)
    assert "Copy the file there" in texts(part)
    assert all(c.kind != "published" for c in tables(part)["laid-out-1-1"].columns)


def test_a_study_that_lays_nothing_out_has_no_such_part(tmp_path) -> None:
    plain = {"table": [], "figure": [], "ranking": []}
    assert requested_tables.section(evidence_of(tmp_path, study=plain)) is None


def test_nothing_breaks_on_one_block_or_without_a_usable_run(tmp_path) -> None:
    one = requested_tables.section(evidence_of(tmp_path / "one", blocks=1))
    assert "medians of 1 run per cell" in tables(one)["laid-out-1-2"].note
    none = requested_tables.section(
        evidence_of(tmp_path / "none", blocks=1, unknown_runs=(0, 1, 2, 3))
    )
    assert [one.words for one in none.parts] == ["No tables or figures yet: no run is valid."]
    page = build_report(Campaign(campaign_of(tmp_path / "page", blocks=1))).read_text("utf-8")
    assert "Tables and figures of the study" in page and "Table 4 (Old)" in page


def test_figures_hold_a_point_a_treatment_and_a_run(tmp_path) -> None:
    boxes, scatter = figures_of(requested_tables.section(evidence_of(tmp_path)).parts)
    assert isinstance(boxes, Figure) and isinstance(scatter, Figure)
    points = [drawn.spec["datasets"]["points"] for drawn in (boxes, scatter)]
    assert len(points[0]) == 2 * 4  # two roles × four treatments
    assert {point["panel"] for point in points[0]} == {"client", "server"}
    assert len(points[1]) == 3 * 4  # all runs
