"""Test the observed duration of a run in addition to its plan, and of a call in a closed loop."""

from __future__ import annotations

import pytest

from wattwire.design import expand, make_plan
from wattwire.model.study import parse_study
from wattwire.run.observing import observed_run, reached_hz


def planned(**fixed):
    document = {
        "factors": {"cell": ["loopback/python"]},
        "fixed": {"pattern": "pingpong", "rate_hz": 10.0, **fixed},
        "plan": {"duration_s": 4.0, "baseline_s": 1.0, "quiet_ms": 500, "blocks": 1,
                 "controls": False},
    }  # fmt: skip
    study = parse_study("t", document, "test")
    return study, make_plan([t for t, _ in expand(study)], study.plan)[0]


def test_an_open_loop_s_window_is_stated_and_the_rest_is_overhead():
    found = observed_run(*planned(), (2, 40), 4.05, 4.0 + 2.0 + 0.5 + 3.0)
    assert (found.nodes, found.call_s) == (2, None)
    assert found.overhead_s == pytest.approx(3.0)


def test_a_closed_loop_s_window_is_its_calls_that_were_made():
    study, run = planned(loop="closed", count=200)
    found = observed_run(study, run, (2, 250), 5.0, 5.0 + 2.0 + 0.5 + 9.0)
    assert found.call_s == pytest.approx(0.02), "calls of a warm-up count too"
    assert found.overhead_s == pytest.approx(9.0)


def test_a_run_that_took_less_than_it_states_has_no_overhead():
    assert observed_run(*planned(), (2, 40), 4.0, 1.0).overhead_s == 0.0


def test_a_rate_counts_as_not_reached_only_if_every_sender_sent_too_little():
    slow = {"sent": 1001, "scheduled": 10_000, "begin_ns": 0, "end_ns": 1_000_000_000}
    slower = slow | {"sent": 501}
    assert reached_hz([slow, slower]) == 1000.0
    assert reached_hz([slow, slow | {"sent": 9_900}]) is None
    assert reached_hz([slow | {"sent": 0, "begin_ns": None, "end_ns": None}]) is None
    assert reached_hz([]) is None
