"""Test the charts, the measured energy and the tables of costs."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from wattwire.analysis.charts import ALL_RUNS, Chart
from wattwire.analysis.dataset import gather
from wattwire.analysis.responses import CPU
from wattwire.analysis.topics.costs.by_host import ByHost, HostCosts
from wattwire.analysis.topics.costs.by_role import Estimate, RoleCosts
from wattwire.analysis.topics.costs.numbers import (
    AbsentMeter,
    Costs,
    OtherSource,
    Power,
    RunsChart,
    costs,
    runs_chart,
)
from wattwire.model.verdict import Outcome
from wattwire.report.parts import Column, Figure, Fold, Table
from wattwire.report.tests.synthetic import Shape, write_campaign
from wattwire.report.topic_page import topic_page
from wattwire.stats import Band, BelowResolution, Interval
from wattwire.store import Campaign

FACTORS = (Column("clients", "clients"),)


@pytest.fixture(scope="module")
def evidence(tmp_path_factory):
    shape = Shape(blocks=2, patterns=("service",), clients=(1, 8), intervals_s=(0.5,))
    return gather(Campaign(write_campaign(tmp_path_factory.mktemp("costs") / "c", shape)))


def test_runs_without_a_factor_have_a_colour_and_a_name(evidence):
    chart = runs_chart(replace(evidence, primary=""), CPU).chart
    assert {point["colour"] for point in chart.points} == {ALL_RUNS}
    assert chart.colours == [ALL_RUNS]


def test_each_valid_run_is_a_point_of_each_chart(evidence):
    result = costs(evidence)
    assert [runs.id for runs in result.charts] == ["cpu-us-per-message", "memory-kib-per-node"]
    for runs in result.charts:
        points = {point["run"] for point in runs.chart.points}
        assert points == set(evidence.usable["run"])
    assert result.powers == () and not result.is_energy_measured and result.estimates


def test_no_table_of_costs_has_a_run_above_the_capacity(tmp_path):
    shape = Shape(blocks=3, patterns=("service",), clients=(1, 8), intervals_s=(0.5,),
                  measured_energy=True)  # fmt: skip
    evidence = gather(Campaign(write_campaign(tmp_path / "c", shape)))
    usable = evidence.usable.with_columns(pl.lit(3.0).alias("cpu_us_per_message.on.edge"))
    for document in evidence.runs.values():
        document["hosts"] = {"robot": {}, "edge": {}}
        document["deployment"]["hosts"] = ["robot", "edge"]
        for process in document["deployment"]["processes"]:
            process["host"] = "edge"
    is_saturated = (pl.col("factor.clients") == 8) & (pl.col("block") == 1)
    outcome = pl.when(is_saturated).then(pl.lit(Outcome.SATURATED.value)).otherwise("outcome")
    result = costs(replace(evidence, usable=usable.with_columns(outcome=outcome)))
    for rows in (result.hosts.rows, result.powers):
        clients = evidence.varied.index("clients")
        assert {(row.treatment[clients], row.runs) for row in rows} == {("1", 3), ("8", 2)}
    assert result.is_energy_measured


def test_an_absent_meter_without_a_rank_is_no_reason_for_missing_energy(evidence):
    assert costs(evidence).absent_meters == (AbsentMeter("wall_meter", "no device at /dev/wall0"),)


def test_the_section_names_absent_meters_where_no_meter_measured_energy():
    absent = (AbsentMeter("a", "no right"), AbsentMeter("b", "no sensor"))
    chart = Chart((), ("x",), "letter")
    result = Costs(True, 2, (RunsChart("cpu", "CPU time", "µs", chart),), absent_meters=absent)
    section = topic_page("costs", result).section()
    assert section is not None and section.id == "costs"
    figure, of_roles, energy = section.parts
    assert isinstance(figure, Figure) and figure.id == "runs-cpu"
    assert figure.title.startswith("CPU time, ")
    assert isinstance(of_roles, Table) and of_roles.rows == []
    assert (energy.key, energy.value) == ("costs.absent_meters", "2")
    assert energy.words.endswith("Absent: a: no right; b: no sensor.")


def test_the_tables_have_roles_hosts_measured_and_estimated_energy():
    client = RoleCosts("service", "", "8 clients", "a/b", "client", 2, (1, 8), 5.0, Band(4.0, 6.0))
    every = RoleCosts("service", "", "8 clients", "a/b", None, 2, cpu_us=7.0)
    host = HostCosts(("8",), "robot", ("client", "broker"), 2, power_window_w=3.0)
    below = BelowResolution(0.5, 0.95, 3)
    sent = Interval(1.0, 0.5, 1.5, 0.95, 3, "t")
    power = Power(("8",), 2, 1.0, 2.0, 3.0, None, 5.0, 6.0, sent, below)
    estimate = Estimate("service", "", "8 clients", "a/b", "client", 2, Band(1.0, 2.0))
    result = Costs(
        True, 2, has_others=True, pooled=("interval",), roles=(client, every),
        hosts=ByHost(("power_window_w",), (host,)), is_energy_measured=True, powers=(power,),
        estimates=(estimate,),
    )  # fmt: skip
    section = topic_page("costs", result, FACTORS).section()
    assert section is not None
    of_roles, hosts, energy, modelled = section.parts
    keys = [column.key for column in of_roles.columns]
    assert keys == [
        "pattern", "others", "cell", "role", "runs", "processes", "cpu_us", "cpu_us_range",
    ]  # fmt: skip
    assert [(row["role"], row["processes"]) for row in of_roles.rows] == [
        ("client", "1 to 8"), ("all", None),
    ]  # fmt: skip
    assert "row, which pool interval, without" in of_roles.note
    assert isinstance(hosts, Fold) and isinstance(modelled, Fold)
    assert hosts.parts[0].rows == [
        {"clients": "8", "host": "robot", "processes": "client, broker", "runs": 2,
         "power_window_w": 3.0}
    ]  # fmt: skip
    (row,) = energy.rows
    assert (row["energy_standing_j"], row["j_per_sent"], row["j_per_delivered"]) == (
        None, sent, below,
    )  # fmt: skip
    _, estimated = modelled.parts
    assert [column.key for column in estimated.columns][-1] == "energy_j"


def test_without_a_valid_run_there_is_no_cost_and_imported_data_have_no_section():
    section = topic_page("costs", Costs(is_measured=True)).section()
    assert section is not None and section.has_no_data
    assert topic_page("costs", Costs()).section() is None


def test_runs_of_another_source_and_meters_of_too_short_windows_are_named(tmp_path):
    shape = Shape(blocks=3, measured_energy=True)
    evidence = gather(Campaign(write_campaign(tmp_path / "c", shape)))
    is_first = pl.arange(pl.len()) == 0
    usable = evidence.usable.with_columns(
        pl.when(is_first).then(pl.lit("b/power")).otherwise(pl.lit("a/power"))
        .alias("energy_source"),
        pl.when(is_first).then(None).otherwise("power_window_w").alias("power_window_w"),
        pl.lit("c/power: too short for this meter").alias("energy_too_short"),
    )  # fmt: skip
    result = costs(replace(evidence, usable=usable))
    assert result.other_sources == (OtherSource("b/power", 1),)
    assert result.too_short == ("c/power: too short for this meter",)
    shown = Costs(True, 2, other_sources=result.other_sources, too_short=result.too_short)
    texts = topic_page("costs", shown).texts
    assert any("1 run that only b/power covers" in text for text in texts)
    assert any("not used: c/power: too short for this meter." in text for text in texts)
