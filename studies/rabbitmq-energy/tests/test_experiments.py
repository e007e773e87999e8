"""Test what `wattwire import rabbitmq-energy DIR` reads in experiments with planted powers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wattwire.cli.main import main
from wattwire.imports import Match
from wattwire.imports.loading import load
from wattwire.model.errors import UsageError

FOLDER = Path(__file__).resolve().parents[1]
CHECKOUT = "WATTWIRE_RABBITMQ_ENERGY"
"""Variable with the path of the authors' repository at commit 72e87cd."""
BROKER = "/opt/erlang/lib/erlang/bin/beam.smp - beam"
TIMES = ("2024-12-17 10:00:00", "2024-12-17 10:00:15")


@pytest.fixture(scope="module")
def study():
    return load(FOLDER)


def write(folder: Path, name: str, broker: str, powers: list[list[str]], counters="10.0 W") -> Path:
    """Write an experiment with these powers of the broker and of another process."""
    path = folder / "data" / "Normal" / name
    path.mkdir(parents=True)
    tables = {
        "Power_Consumption_Cmdline.csv": (["Time", "other", broker], powers),
        "Scaph_Domain_Power.csv": (["Time", "core", "dram"], [[counters, "5.0 W"]] * len(powers)),
        "Scaph_Process_Cpu.csv": (["Time", "erl_erlang", "sh"], [["2 %", "50 %"], ["", "1 %"]]),
    }
    for file, (titles, rows) in tables.items():
        lines = [",".join(f'"{title}"' for title in titles)]
        lines += [",".join([at, *row]) for at, row in zip(TIMES, rows, strict=False)]
        (path / file).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def refused(study, folder: Path) -> str:
    with pytest.raises(UsageError) as caught:
        study.read(folder, "default")
    return str(caught.value)


def test_an_experiment_has_its_levels_and_the_means_of_its_readings(study, tmp_path):
    write(tmp_path, "300_1_Fanout_3_500", BROKER, [["1.0 W", "500 mW"], ["", "1.5 W"]])
    (row,) = study.read(tmp_path, "default").runs.iter_rows(named=True)
    levels = {name: row[f"factor.{name}"] for name in ("exchange", "rate_hz", "queues")}
    assert levels == {"exchange": "fanout", "rate_hz": 300, "queues": 500}
    assert row["factor.routing_keys"] == 3
    assert row["broker_power_w"] == pytest.approx(1.0)
    assert row["processes_power_w"] == pytest.approx(1.5)
    assert row["counters_power_w"] == pytest.approx(15.0)
    assert row["broker_cpu_percent"] == pytest.approx(1.0)


def test_an_experiment_without_the_broker_is_not_valid(study, tmp_path):
    write(tmp_path, "100_1_Topic_3_3", "/bin/bash", [["1 W", "1 W"]])
    imported = study.read(tmp_path, "default")
    (row,) = imported.runs.iter_rows(named=True)
    assert row["verdict"] == "invalid" and row["broker_power_w"] is None
    assert imported.reasons == {"100_1_Topic_3_3": "no power of RabbitMQ's process"}
    assert imported.set_aside[0].why == "no column of RabbitMQ's process"


@pytest.mark.parametrize(
    ("direct_w", "match"),
    [("1.312", Match.BY_SEARCH), ("1.449", Match.EXACT), ("1.1", Match.DIFFERS)],
)
def test_the_percentage_of_the_abstract_is_a_reduction_or_found_by_search(
    study, tmp_path, direct_w, match
):
    for exchange, power in (("Direct", direct_w), ("Fanout", "1")):
        write(tmp_path, f"100_1_{exchange}_3_100", BROKER, [["0 W", f"{power} W"]])
    (check,) = study.read(tmp_path, "default").checks
    assert (check.published, check.match) == ("31", match)


def test_printed_means_are_compared_with_those_of_the_readings(study, tmp_path):
    write(tmp_path, "100_1_Topic_3_3", BROKER, [["0 W", "1.234 W"]])
    (tmp_path / "output").mkdir()
    table = tmp_path / "output" / "avg_power_consumption_results.csv"
    head = "Experiment,Average Power Consumption (mW),Error\n"
    for printed, match in (("1234.0", Match.EXACT), ("1300.0", Match.DIFFERS)):
        table.write_text(f"{head}100_1_Topic_3_3,{printed},\n")
        (check,) = study.read(tmp_path, "default").checks
        assert check.match is match and check.value == pytest.approx(1234.0)


@pytest.mark.parametrize(("counters", "is_said"), [("1.0 W", True), ("100.0 W", False)])
def test_a_power_above_that_of_the_counters_is_a_remark(study, tmp_path, counters, is_said):
    write(tmp_path, "100_1_Topic_3_3", BROKER, [["4 W", "8 W"]], counters)
    titles = {remark.title: remark for remark in study.read(tmp_path, "default").remarks}
    assert ("Attributed power above the power of the counters" in titles) is is_said
    assert "topic: 2024-12-17" in titles["One run of each treatment"].text


def test_values_that_are_no_powers_are_refused_with_their_line(study, tmp_path):
    path = write(tmp_path, "100_1_Topic_3_3", BROKER, [["0 W", "1 W"], ["0 W", "2 MW"]])
    message = refused(study, tmp_path)
    assert f"{path}/Power_Consumption_Cmdline.csv: line 3: found '2 MW'; allowed: " in message


def test_incomplete_experiments_are_refused(study, tmp_path):
    assert "found no experiment; allowed: a checkout of" in refused(study, tmp_path)
    path = write(tmp_path, "100_1_Topic_3_3", BROKER, [["0 W", "1 W"]])
    table = path / "Power_Consumption_Cmdline.csv"
    whole = table.read_text()
    table.write_text(f"{whole}2024-12-17 10:00:30,0 W\n")
    assert "line 3: found 2 values; allowed: 3, as in the first line" in refused(study, tmp_path)
    table.write_text("")
    assert "found no readings" in refused(study, tmp_path)
    table.write_text(whole)
    (path / "Scaph_Domain_Power.csv").unlink()
    assert "Scaph_Domain_Power.csv: this file does not exist" in refused(study, tmp_path)
    write(tmp_path / "copy", "100_1_Topic_3_3", BROKER, [["0 W", "1 W"]])
    assert "found the experiment 100_1_Topic_3_3 twice" in refused(study, tmp_path)


def test_the_import_writes_a_page(tmp_path, capsys):
    for exchange in ("Direct", "Fanout"):
        write(tmp_path, f"100_1_{exchange}_3_100", BROKER, [["0 W", "1 W"]])
    source, folder = str(tmp_path), str(tmp_path / "c")
    assert main(["import", "rabbitmq-energy", source, "--campaign", folder]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "2 of 2 runs are valid" in printed and "there is no interval" in printed


@pytest.mark.skipif(
    not os.environ.get(CHECKOUT),
    reason=f"needs {CHECKOUT}: a checkout of the authors' repository at commit 72e87cd",
)
def test_the_tables_of_the_authors_come_out(study):
    imported = study.read(Path(os.environ[CHECKOUT]), "default")
    assert imported.runs.height == 40
    matches = [check.match for check in imported.checks]
    assert matches.count(Match.EXACT) == 79 and matches.count(Match.BY_SEARCH) == 1
    assert matches.count(Match.NOT_COMPUTABLE) == 1 and len(matches) == 81
