"""Tests of the threats to validity that no other section shows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import gather
from wattwire.analysis.topics.design.numbers import design
from wattwire.model.deployment import Request
from wattwire.report.tests.phrase_search import only, phrases_in
from wattwire.report.tests.planted import planted
from wattwire.report.tests.synthetic import Shape, write_campaign
from wattwire.report.words.threats import _warm_up, threats
from wattwire.store import Campaign

SHAPE = Shape(blocks=2, patterns=("service",), intervals_s=(0.05,), clients=(1,), duration_s=2.0)
WARM_UP = {"calls": 500, "words": "", "cells": []}


@pytest.mark.parametrize(
    ("lengths_s", "warm_up", "expected"),
    [
        ((0.05, 0.4), WARM_UP, {"shortest_s": 0.05, "median_s": 0.225, "share": 1.0}),
        ((0.5, 1.9), WARM_UP, {"shortest_s": 0.5, "median_s": 1.2, "share": 0.2}),
        ((2.0, 2.5), WARM_UP, None),
        ((0.05, 0.4), None, None),
    ],
)
def test_cpu_time_that_lies_between_two_readings_is_said(
    tmp_path: Path,
    lengths_s: tuple[float, float],
    warm_up: object,
    expected: dict[str, float] | None,
) -> None:
    evidence = gather(Campaign(write_campaign(tmp_path / "c", SHAPE)))
    half = evidence.usable.height // 2
    lengths = pl.Series("cost_window_s", [lengths_s[0]] * half + [lengths_s[1]] * half)
    evidence = replace(evidence, usable=evidence.usable.with_columns(lengths), warm_up=warm_up)
    construct = [
        text for kind, text in threats(evidence, answer_all(evidence)) if kind == "construct"
    ]
    if expected is None:
        assert phrases_in(construct, "threats.interpolated") == []
    else:
        values = only(construct, "threats.interpolated").values
        assert values == pytest.approx({"period_s": 0.1, **expected})


def test_a_link_emulator_without_real_time_priority_is_reported(tmp_path: Path) -> None:
    evidence = gather(Campaign(write_campaign(tmp_path / "c", SHAPE)))
    first, *others = evidence.usable["run"].to_list()
    schedulers = {first: "SCHED_OTHER", **dict.fromkeys(others, "SCHED_FIFO")}
    runs = {
        run: {**document, **({"link_scheduler": schedulers[run]} if run in schedulers else {})}
        for run, document in evidence.runs.items()
    }
    evidence = replace(evidence, runs=runs)
    found = threats(evidence, answer_all(evidence))
    values = only(found, "threats.no_real_time").values
    assert values == {"runs": 1, "scheduler": "SCHED_OTHER"}


def test_only_hosts_without_control_groups_are_reported(tmp_path: Path) -> None:
    folder = write_campaign(tmp_path / "c", SHAPE)
    machine = json.loads((folder / "machine.json").read_text())
    (host, entry), *_ = machine["hosts"].items()
    machine["hosts"]["delegated"] = {**entry, "cgroup": {"rung": "v2", "lost": []}}
    (folder / "machine.json").write_text(json.dumps(machine))
    evidence = gather(Campaign(folder))
    found = threats(evidence, answer_all(evidence))
    assert phrases_in(found, "threats.no_real_time") == []
    assert only(found, "threats.no_cgroups").values == {"host": host}


def test_levels_that_a_variant_changes_and_rates_of_closed_loops_are_not_held(
    tmp_path: Path,
) -> None:
    document = {
        "factors": {"variant": ["plain", "other"], "loop": ["closed", "open"]},
        "fixed": {"middleware": "loopback", "language": "cpp", "pattern": "pingpong",
                  "rate_hz": 50, "payload_bytes": 64},
        "variants": {"plain": {}, "other": {"levels": {"language": "python"}},
                     "unplanned": {"levels": {"pattern": "service"}}},
    }  # fmt: skip
    treatments = [
        {"variant": variant, "loop": loop}
        for variant in ("plain", "other")
        for loop in ("closed", "open")
    ]
    evidence = planted(tmp_path / "c", document, treatments, lambda _: 100.0, 2)
    sentences = threats(evidence, answer_all(evidence))
    held = [phrase.values["factor"] for phrase in phrases_in(sentences, "threats.held_factor")]
    assert held == ["middleware", "pattern", "payload"]
    assert design(evidence).shared == ("loopback", "pingpong", "64 B")


@pytest.mark.parametrize(
    ("request_of_study", "includes_start"),
    [
        (Request(command=("make",)), True),
        (Request(command=("make",), warmup_s=2.0), False),
        (Request(attached=(1,)), False),  # the processes ran before
    ],
)
def test_the_window_includes_the_start_only_of_a_command_without_a_warm_up(
    request_of_study, includes_start
):
    study = SimpleNamespace(request=request_of_study, variants={})
    evidence = SimpleNamespace(warmup_calls=0, study=study)
    sentences = list(_warm_up(evidence))
    assert bool(phrases_in(sentences[0] if sentences else "", "threats.start_included")) == (
        includes_start
    )
