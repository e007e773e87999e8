"""Tests of the steady-state table with classes, consensus, and latency with and without warm-up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from wattwire import stats
from wattwire.analysis.dataset import gather
from wattwire.analysis.latency import Series, all_series
from wattwire.report.parts import tables_of
from wattwire.report.tables import steady_state
from wattwire.report.tests.phrase_search import phrases_in
from wattwire.report.tests.synthetic import Shape, write_campaign
from wattwire.report.words import concurrency
from wattwire.store import Campaign


@pytest.fixture(scope="module")
def evidence(tmp_path_factory):
    shape = Shape(blocks=4, duration_s=6.0, patterns=("topic",), clients=(1,), intervals_s=(0.05,))
    return gather(Campaign(write_campaign(tmp_path_factory.mktemp("runs") / "c", shape)))


def rows_of(evidence, series):
    fold = steady_state.fold(evidence, series)
    assert fold is not None
    return list(tables_of([fold])[0].rows)


def test_steady_runs_are_flat_and_warming_ones_are_said_to_warm_up(evidence) -> None:
    series = all_series(evidence)
    assert {row["consensus"] for row in rows_of(evidence, series)} == {"flat"}
    rng = np.random.default_rng(1)
    for run in evidence.usable["run"].to_list():
        values = rng.normal(100.0, 1.0, 120)
        values[:30] += 20.0
        series[run] = Series(np.concatenate([values, [np.inf, np.inf]]), 2)
    for row in rows_of(evidence, series):
        assert row["consensus"] == "warm-up"
        assert row["settled"] == pytest.approx(25.0, abs=2.0)


def with_plan(evidence, **plan):
    """Return the evidence with these values in the study's plan."""
    study = evidence.study
    return replace(evidence, study=replace(study, plan=replace(study.plan, **plan)))


def test_latency_stands_with_and_without_the_cut_where_there_is_one(evidence) -> None:
    series = all_series(evidence)
    assert "whole" not in rows_of(evidence, series)[0]
    row = rows_of(with_plan(evidence, warmup_s=1.0), series)[0]
    assert isinstance(row["cut"], stats.Interval)
    assert row["whole"].estimate == pytest.approx(row["cut"].estimate, rel=0.2)


def test_a_closed_loop_that_still_moves_after_its_warm_up_is_named(evidence, monkeypatch) -> None:
    rng = np.random.default_rng(2)
    steady = {run: rng.normal(100.0, 1.0, 120) for run in evidence.usable["run"].to_list()}
    moving = {run: values + 20.0 * (np.arange(120) < 40) for run, values in steady.items()}
    steady, moving = (
        {run: Series(values, 0) for run, values in side.items()} for side in (steady, moving)
    )
    # No treatment is named in open loop or for a study without a warm-up.
    assert steady_state.unsettled_sentence(evidence, moving) == ""
    documents = [*evidence.runs.values(), *evidence.plan]
    for one in documents:
        monkeypatch.setitem(one, "levels", {**(one.get("levels") or {}), "loop": "closed"})
    assert steady_state.unsettled_sentence(evidence, moving) == ""
    evidence = with_plan(evidence, warmup_calls=500)
    assert steady_state.unsettled_sentence(evidence, steady) == ""
    told = steady_state.unsettled_sentence(evidence, moving)
    assert told.startswith("Not in steady state after the warm-up (500 calls): ")
    named = {evidence.treatment_title(steady_state.all_levels(one)) for one in documents}
    assert named
    assert all(title in told for title in named)
    # Varying machine speed shifts all windows, but in both directions.
    blocks = dict(evidence.usable[["run", "block"]].rows())
    either = {
        run: Series(one.values_us[:: 1 if blocks[run] % 2 else -1].copy(), 0)
        for run, one in moving.items()
    }
    assert steady_state.unsettled_sentence(evidence, either) == ""
    # Settling runs of a cell can also show that it is not in steady state.
    cells = [{"cell": "grpc/java", "calls": 500, "settled": False, "known": True}]
    monkeypatch.setattr(evidence, "warm_up", {"calls": 500, "cells": cells})
    assert "grpc/java" in steady_state.unsettled_sentence(evidence, steady)


def test_no_latency_no_courses(evidence) -> None:
    assert steady_state.fold(evidence, {}) is None


def test_treatments_whose_clients_did_not_work_together_are_named(evidence, monkeypatch) -> None:
    many = evidence.usable.with_columns(pl.lit(1.1).alias("clients_active_mean"))
    monkeypatch.setattr(evidence, "usable", many)
    for document in evidence.runs.values():
        monkeypatch.setitem(document, "levels", {**(document.get("levels") or {}), "clients": 4})
        monkeypatch.setitem(document, "treatment", {**document["treatment"], "clients": 4})
    sentence = concurrency.sentence(evidence)
    assert sentence.key == "concurrency.too_few_active"
    for treatment in phrases_in(sentence, "concurrency.treatment"):
        assert treatment.values["clients"] == 4 and treatment.values["active"] == pytest.approx(1.1)
    together = many.with_columns(pl.lit(3.9).alias("clients_active_mean"))
    monkeypatch.setattr(evidence, "usable", together)
    assert concurrency.sentence(evidence) == ""
