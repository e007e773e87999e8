"""Test that every preset of every study in the repository gives a plan."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from wattwire.design import expand, make_plan
from wattwire.model.study import Study, apply_preset, parse_study
from wattwire.model.treatment import EACH
from wattwire.model.warm_up import SETTLING, SETTLING_RUNS

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]

STUDIES = Path(__file__).resolve().parents[2] / "studies"


def load(name: str, preset: str | None = None) -> Study:
    path = STUDIES / name / "study.toml"
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    return parse_study(name, apply_preset(document, preset, str(path)), str(path))


def document_of(name: str) -> dict[str, Any]:
    return tomllib.loads((STUDIES / name / "study.toml").read_text(encoding="utf-8"))


def every_study_and_preset() -> list[tuple[str, str | None]]:
    pairs: list[tuple[str, str | None]] = []
    for path in sorted(STUDIES.glob("*/study.toml")):
        presets = document_of(path.parent.name).get("presets", {})
        pairs += [(path.parent.name, preset) for preset in (None, *presets)]
    return pairs


@pytest.mark.parametrize(("name", "preset"), every_study_and_preset())
def test_a_study_parses_and_has_runs_in_every_preset(name: str, preset: str | None) -> None:
    study = load(name, preset)
    treatments = [t for t, because in expand(study) if because is None]
    assert treatments
    controls = 3 if study.plan.controls else 0
    runs = make_plan(treatments, study.plan)
    timed = [run for run in runs if run.control not in ("syscalls", SETTLING)]
    assert len(timed) == (len(treatments) + controls) * study.plan.blocks
    traced = [run for run in runs if run.control == "syscalls"]
    assert len(traced) == len(treatments) * study.plan.syscall_runs


@pytest.mark.parametrize(("name", "cells"), [("rpc-choice", 27), ("nagle-step", 0)])
def test_settling_runs_of_every_cell_come_first_where_beginnings_are_not_asked_for(name, cells):
    study = load(name)
    treatments = [t for t, because in expand(study) if because is None]
    runs = make_plan(treatments, study.plan)
    first = runs[: SETTLING_RUNS * cells]
    assert all(run.control == SETTLING and run.block == 0 for run in first)
    assert len({run.treatment["cell"] for run in first} if cells else ()) == cells
    assert all(run.control != SETTLING and run.block > 0 for run in runs[len(first) :])


@pytest.mark.parametrize("name", sorted(p.parent.name for p in STUDIES.glob("*/study.toml")))
def test_questions_ask_for_factors_that_the_study_varies(name: str) -> None:
    document = document_of(name)
    for question in document["question"]:
        assert question["responses"]
        asked = set(question.get("factors", []))
        assert asked <= set(document["factors"]), question["id"]
        assert asked or question.get("beside"), question["id"]
    of_rigs = {factor for factor, levels in document["factors"].items() if levels == EACH}
    assert set(document["answers"]["baseline"]) == set(document["factors"]) - of_rigs
    for factor, level in document["answers"]["baseline"].items():
        assert level in document["factors"][factor]


def test_the_paper_design_has_its_ninety_treatments_and_eighteen_hundred_runs() -> None:
    study = load("ros2-energy", "paper")
    treatments = [t for t, because in expand(study) if because is None]
    assert len(treatments) == 90
    assert sum(not run.control for run in make_plan(treatments, study.plan)) == 1800


def test_the_pipelines_of_the_paper_have_its_treatments_and_those_of_the_dds_below_an_rmw() -> None:
    study = load("multi-node-latency", "paper")
    treatments = [t for t, because in expand(study) if because is None]
    without_ros = [t for t in treatments if t["middleware"] != "ros2"]
    assert len(treatments) - len(without_ros) == 3630
    rmws = {
        (t["settings.rmw"], t.get("settings.transports"))
        for t in treatments
        if t["middleware"] == "ros2"
    }
    assert rmws == {
        ("rmw_fastrtps_cpp", "udp"),  # the cells reject this setting for other RMWs
        ("rmw_cyclonedds_cpp", None),
        ("rmw_connextdds", None),
    }
    small = [t for t in treatments if t["payload_bytes"] == 128]
    of_an_rmw = [t for t in small if t.get("settings.rmw") == "rmw_fastrtps_cpp"]
    factors = ("settings.transports", "settings.reliability", "nodes", "rate_hz")
    assert {tuple(t[name] for name in factors) for t in without_ros} == {
        tuple(t[name] for name in factors) for t in of_an_rmw
    }
    assert {t["payload_bytes"] for t in without_ros} == {128}


@pytest.mark.parametrize("preset", [None, "paper", "reliability", "overhead"])
def test_the_published_numbers_of_pipelines_have_a_cell_in_their_table(preset: str | None) -> None:
    study = load("multi-node-latency", preset)
    path = STUDIES / "multi-node-latency" / study.published
    with path.open(newline="", encoding="utf-8") as file:
        rows = {row["table"]: row for row in csv.DictReader(file)}
    assert study.shown.tables
    for table in study.shown.tables:
        (name,) = table.published
        for factor in (*table.rows, table.columns):
            levels = study.factors.get(factor, (study.fixed.get(factor),))
            assert rows[name][factor] in map(str, levels)


@pytest.mark.parametrize("preset", [None, "paper", "quick"])
def test_the_published_rows_of_security_have_a_treatment(preset: str | None) -> None:
    study = load("edge-security", preset)
    with (STUDIES / "edge-security" / study.published).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = ("cell", "network", "payload_bytes", "settings.security")
    treatments = {
        tuple(str(t[name]) for name in names) for t, because in expand(study) if because is None
    }
    assert {tuple(row[name] for name in names) for row in rows} <= treatments
    assert [row["latency_ms"] for row in rows] == ["77.35", "72.11"]


def test_the_quick_pipelines_fit_a_line_and_reach_twenty_three_nodes() -> None:
    study = load("multi-node-latency", "quick")
    treatments = [t for t, because in expand(study) if because is None]
    assert study.plan.blocks == 3
    assert {t["nodes"] for t in treatments if t["middleware"] == "zenoh"} == {3, 7, 11}
    longest = [t for t in treatments if t["nodes"] == 23]
    assert [(t["middleware"], t["language"]) for t in longest] == [
        ("fastdds", "cpp"),
        ("ros2", "cpp"),
    ]


def test_the_demonstration_leaves_out_what_takes_too_long() -> None:
    expanded = expand(load("first-look"))
    run = [t for t, because in expanded if because is None]
    assert len(expanded) == 24
    assert len(run) == 16  # three of them need a C++ cell of mqtt
    assert not [t for t in run if t["middleware"] == "ros2" and t["payload_bytes"] != 64]


def test_published_rows_are_complete_and_fall_on_treatments() -> None:
    with (STUDIES / "ros2-energy/published.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 180
    factors = load("ros2-energy").factors
    seen = set()
    for row in rows:
        assert row["pattern"] in factors["pattern"] and row["language"] in factors["language"]
        assert int(row["clients"]) in factors["clients"]
        assert float(row["interval_s"]) in factors["interval_s"]
        assert all(float(row[key]) > 0 for key in ("cpu_percent", "memory_kib", "energy_j"))
        seen.add((row["node_role"], row["language"], row["clients"], row["interval_s"]))
    assert len(seen) == 180


def test_published_energy_is_power_over_three_minutes_within_rounding() -> None:
    """This detects wrong columns and lost digits. The exceptions are errors in the paper."""
    with (STUDIES / "ros2-energy/published.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    odd = {
        (row["table"], row["language"], row["clients"], row["interval_s"])
        for row in rows
        if abs(float(row["energy_j"]) / 180 - float(row["power_w"]))
        > 0.02 + 0.03 * float(row["energy_j"]) / 180
    }
    assert odd == {
        ("9", "python", "1", "0.05"),
        ("11", "cpp", "1", "0.05"),
        ("11", "python", "3", "0.05"),
    }
