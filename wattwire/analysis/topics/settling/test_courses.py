"""Tests of the steady state: classes, consensus, and latency with and without warm-up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from wattwire import stats
from wattwire.analysis.dataset import all_levels, gather
from wattwire.analysis.latency import Series, all_series
from wattwire.analysis.topics.settling.numbers import (
    FewActive,
    Rule,
    Settling,
    TreatmentCourses,
    few_active,
    settling,
)
from wattwire.report.parts import Fold
from wattwire.report.tests.synthetic import Shape, write_campaign
from wattwire.report.topic_page import Sentences, topic_page
from wattwire.store import Campaign

SENTENCES = Sentences("settling")


@pytest.fixture(scope="module")
def evidence(tmp_path_factory):
    shape = Shape(blocks=4, duration_s=6.0, patterns=("topic",), clients=(1,), intervals_s=(0.05,))
    return gather(Campaign(write_campaign(tmp_path_factory.mktemp("runs") / "c", shape)))


def test_steady_runs_are_flat_and_warming_ones_are_said_to_warm_up(evidence) -> None:
    series = all_series(evidence)
    assert {row.consensus for row in settling(evidence, series).treatments} == {"flat"}
    rng = np.random.default_rng(1)
    for run in evidence.usable["run"].to_list():
        values = rng.normal(100.0, 1.0, 120)
        values[:30] += 20.0
        series[run] = Series(np.concatenate([values, [np.inf, np.inf]]), 2)
    for row in settling(evidence, series).treatments:
        assert (row.consensus, row.classes) == ("warm-up", (("warm-up", row.runs),))
        assert row.settled_percent == pytest.approx(25.0, abs=2.0)


def with_plan(evidence, **plan):
    """Return the evidence with these values in the study's plan."""
    study = evidence.study
    return replace(evidence, study=replace(study, plan=replace(study.plan, **plan)))


def test_latency_stands_with_and_without_the_cut_where_there_is_one(evidence) -> None:
    series = all_series(evidence)
    result = settling(evidence, series)
    assert not result.has_warm_up and result.treatments[0].with_us is None
    result = settling(with_plan(evidence, warmup_s=1.0), series)
    row = result.treatments[0]
    assert result.has_warm_up and isinstance(row.without_us, stats.Interval)
    assert row.with_us.estimate == pytest.approx(row.without_us.estimate, rel=0.2)


def test_a_closed_loop_that_still_moves_after_its_warm_up_is_named(evidence, monkeypatch) -> None:
    rng = np.random.default_rng(2)
    steady = {run: rng.normal(100.0, 1.0, 120) for run in evidence.usable["run"].to_list()}
    moving = {run: values + 20.0 * (np.arange(120) < 40) for run, values in steady.items()}
    steady, moving = (
        {run: Series(values, 0) for run, values in side.items()} for side in (steady, moving)
    )
    # No treatment is named in open loop or for a study without a warm-up.
    assert settling(evidence, moving).unsettled == ()
    documents = [*evidence.runs.values(), *evidence.plan]
    for one in documents:
        monkeypatch.setitem(one, "levels", {**(one.get("levels") or {}), "loop": "closed"})
    assert settling(evidence, moving).unsettled == ()
    evidence = with_plan(evidence, warmup_calls=500)
    assert settling(evidence, steady).unsettled == ()
    result = settling(evidence, moving)
    named = {evidence.treatment_title(all_levels(one)) for one in documents}
    assert (set(result.unsettled), result.warmup_calls) == (named, 500)
    # Varying machine speed shifts all windows, but in both directions.
    blocks = dict(evidence.usable[["run", "block"]].rows())
    either = {
        run: Series(one.values_us[:: 1 if blocks[run] % 2 else -1].copy(), 0)
        for run, one in moving.items()
    }
    assert settling(evidence, either).unsettled == ()
    # Settling runs of a cell can also show that it is not in steady state.
    cells = [{"cell": "grpc/java", "calls": 500, "settled": False, "known": True}]
    monkeypatch.setattr(evidence, "warm_up", {"calls": 500, "cells": cells})
    assert settling(evidence, steady).unsettled == ("grpc/java",)


def test_no_latency_no_courses(evidence) -> None:
    result = settling(evidence, {})
    assert result.treatments == ()
    assert topic_page("settling", result).parts == ()


@pytest.mark.parametrize("has_warm_up", [False, True])
def test_the_table_has_latencies_with_and_without_the_warm_up_if_there_is_one(has_warm_up) -> None:
    few = stats.TooFew(2, 3, "runs")
    row = TreatmentCourses((), 3, (("flat", 2), ("warm-up", 1)), "flat", 25.0, few, few)
    ((_, fold),) = topic_page("settling", Settling((row,), has_warm_up=has_warm_up)).parts
    assert isinstance(fold, Fold)
    (table,) = fold.parts
    expected = {"runs": 3, "classes": "flat 2, warm-up 1", "consensus": "flat", "settled": 25.0}
    assert table.rows == [{**expected, **({"cut": few, "whole": few} if has_warm_up else {})}]


def test_unsettled_treatments_are_named_with_the_warm_up() -> None:
    assert SENTENCES.unsettled(Settling()) == ""
    one = SENTENCES.unsettled(Settling(unsettled=("",)))
    assert "warm-up (stated as a time): the only treatment. The" in one
    many = SENTENCES.unsettled(Settling(unsettled=tuple("abcdefgh"), warmup_calls=500))
    assert "warm-up (500 calls): a, b, c, d, e, f and 2 more. The" in many


def test_the_rule_of_settling_runs_states_the_warm_up_of_all_treatments() -> None:
    text = SENTENCES.rule(Rule(2, 500))
    assert "(2 cells, " in text and "these numbers, 500 calls of each client" in text


def test_treatments_whose_clients_did_not_work_together_are_named(evidence, monkeypatch) -> None:
    many = evidence.usable.with_columns(pl.lit(1.1).alias("clients_active_mean"))
    monkeypatch.setattr(evidence, "usable", many)
    for document in evidence.runs.values():
        monkeypatch.setitem(document, "levels", {**(document.get("levels") or {}), "clients": 4})
        monkeypatch.setitem(document, "treatment", {**document["treatment"], "clients": 4})
    named = settling(evidence, {}).few_active
    assert named and {(of.clients, of.active) for of in named} == {(4, 1.1)}
    page = topic_page("settling", Settling(unsettled=("a",), few_active=(FewActive("", 1.1, 4),)))
    (_, unsettled), (place, few) = page.terminal_lines
    assert place == (0,) and "specifies: the only treatment (1.1 of 4). Some" in few
    assert unsettled == SENTENCES.unsettled(Settling(unsettled=("a",)))
    together = many.with_columns(pl.lit(3.9).alias("clients_active_mean"))
    monkeypatch.setattr(evidence, "usable", together)
    assert list(few_active(evidence)) == []
    assert SENTENCES.few_active(()) == ""


@pytest.mark.parametrize("calls", [None, 500])
def test_the_methods_state_the_rule_only_if_settling_runs_determined_the_warm_up(
    evidence, calls
) -> None:
    cells = [{"cell": "made/up", "calls": calls, "settled": True, "known": True}]
    warm_up = {"calls": calls, "cells": cells, "words": ""} if calls else None
    result = settling(replace(evidence, warm_up=warm_up), {})
    assert result.rule == (Rule(1, calls) if calls else None)
    texts = [part for _, (_, part) in topic_page("settling", result).elsewhere]
    assert [(text.key, text.value) for text in texts] == [("settling.calls", "500")] * bool(calls)
