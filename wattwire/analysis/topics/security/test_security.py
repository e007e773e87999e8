"""Test the topic on security: holes, controls, runs that prove nothing, and the words."""

from dataclasses import replace
from types import SimpleNamespace

import polars as pl
import pytest

from wattwire.analysis.topics.security.numbers import COLUMNS, Proved, Security, security
from wattwire.report.parts import Table
from wattwire.report.topic_page import topic_page

SECURED = Proved("b02-p001", "on", "on", "TLSv1.3", "AES", 6, 0, 0, 0, 0, 385)
OPEN = Proved("b02-p002", "off", "off", "", "", 2, 1, 40, 100, 209, 794)


def result_of(*runs, **others):
    return Security(len(runs), tuple(run.compared(runs) for run in runs), **others)


def text_of(*runs, **others):
    return " ".join(topic_page("security", result_of(*runs, **others)).texts)


def test_a_secured_treatment_without_a_hole_is_proved_against_an_open_one():
    assert not result_of(SECURED, OPEN).holes
    words = text_of(SECURED, OPEN)
    assert "none of 6 uninvited nodes was admitted in 1 control run" in words
    assert "none of 385 frames had a piece of the payload" in words
    assert "proves nothing" not in words
    assert "no control" not in words


@pytest.mark.parametrize("name", COLUMNS)
def test_each_number_above_zero_is_a_hole_of_a_secured_treatment_only(name):
    leaky = replace(SECURED, **{name: 3})
    assert result_of(leaky).holes == (leaky,)
    assert "Security has holes: on (b02-p001)" in text_of(leaky)
    assert not result_of(replace(OPEN, **{name: 3})).holes


def test_uninvited_nodes_that_match_each_other_are_no_hole():
    ready = replace(SECURED, ready=2)
    assert not result_of(ready, OPEN).holes
    words = text_of(ready, OPEN)
    assert "Security has holes" not in words
    assert "2 uninvited nodes in secured treatments found a counterpart" in words


@pytest.mark.parametrize("name", COLUMNS)
def test_a_number_that_is_0_in_the_open_treatment_too_proves_nothing(name):
    page = topic_page("security", result_of(SECURED, replace(OPEN, **{name: 0})))
    claim = f"“{COLUMNS[name]}” proves nothing for on: it is 0 in the open treatment, too."
    assert any(claim in text for text in page.texts)
    assert any(claim in text for _, text in page.terminal_lines)


def test_only_the_open_treatment_that_differs_in_nothing_else_is_a_control():
    assert "There was no control for on" in text_of(SECURED)
    assert "There was no control for on" in text_of(SECURED, replace(OPEN, pair="another cell"))
    unknown = result_of(SECURED, replace(OPEN, frames=None))
    assert not unknown.blind


def test_a_missing_number_is_no_hole_and_its_reason_is_printed():
    unsearched = replace(SECURED, frames=None, frames_searched=0, absent="no link emulator")
    assert not result_of(unsearched).holes
    assert "not searched: no link emulator" in text_of(unsearched)


def test_a_full_capture_and_nodes_that_never_tried_are_named():
    end = "uninvited-open-publisher ended with code 1"
    words = text_of(replace(SECURED, frames_unsearched=5000, untried=(end,)), OPEN)
    assert f"1 uninvited node never tried, and do not count: b02-p001: {end}" in words
    assert "b02-p001: 5\u202f000 frames were not kept" in words


def test_runs_that_proved_nothing_and_runs_to_come_are_named():
    words = text_of(SECURED, unproved=("b02-p003: died",), not_run=2)
    assert "1 control run proved nothing: b02-p003: died" in words
    assert "2 control runs are not run yet" in words


def test_the_numbers_that_show_a_hole_follow_the_treatment_so_that_a_page_shows_them():
    page = topic_page("security", result_of(SECURED, OPEN))
    (table,) = [part for _, part in page.parts if isinstance(part, Table)]
    keys = [column.key for column in table.columns]
    holes = ["uninvited_received", "uninvited_delivered", "fill_on_link"]
    assert keys[:5] == ["treatment", "security", *holes]
    assert keys[-2:] == ["protocol", "cipher"]


def test_a_campaign_without_such_runs_has_no_section():
    assert not topic_page("security", Security()).parts


LEVELS = {"cell": "mqtt/python", "settings.security": "on"}
ROW = {
    "run": "b02-p001", "attempt": 1, "outcome": "completed", "received_unique": 50,
    "uninvited_received": 0, "uninvited_delivered": 0, "fill_on_link": 0,
}  # fmt: skip
NODE = {"process": "uninvited-open-publisher", "tried": True, "ready": False, "end": "x"}


def read(levels=LEVELS, planned=1, uninvited=(NODE,), **columns):
    """Return the result of a campaign with one run."""
    document = {
        "treatment": levels, "cells": {"publisher": "mqtt/python"}, "nodes": [],
        "proof": {"uninvited": uninvited, "frames_searched": 9}, "outcome_detail": "",
    }  # fmt: skip
    reader = SimpleNamespace(
        machine={"setting_purposes": {"mqtt": {"security": "security"}}},
        run=lambda _name: document,
    )
    evidence = SimpleNamespace(
        plan=[{"control": "proof"}] * planned, imported=False, reader=reader, varied=[],
        groups={}, factors={}, proofs=pl.DataFrame([{**ROW, **columns}]),
        title_of_key=lambda _key: "",
    )  # fmt: skip
    return security(evidence)


def test_a_run_that_carried_messages_to_its_end_is_proved():
    (run,) = read().proved
    assert (run.level, run.uninvited, run.treatment) == ("on", 1, "all runs")
    assert run.pair == read({**LEVELS, "settings.security": "off"}).proved[0].pair
    assert run.pair != read({**LEVELS, "cell": "mqtt/rust"}).proved[0].pair


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"received_unique": 0}, "its own nodes received no message"),
        ({"outcome": "died"}, "the run died"),
        ({"levels": {}}, "the level of its security is not known"),
        ({"uninvited_received": None}, "what uninvited nodes received is not known"),
        (
            {"uninvited_received": None, "uninvited": [{**NODE, "tried": False, "end": "fell"}]},
            "uninvited-open-publisher fell",
        ),
    ],
)
def test_a_run_that_failed_or_carried_nothing_proves_nothing(changes, reason):
    result = read(**changes)
    assert not result.proved
    assert result.unproved == (f"b02-p001: {reason}",)


def test_a_hole_counts_in_a_run_that_failed_too():
    assert read(outcome="died", uninvited_received=3).holes


def test_planned_runs_without_results_are_not_run_yet():
    assert read(planned=3).not_run == 2
