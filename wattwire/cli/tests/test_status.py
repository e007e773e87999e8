"""Tests of `status`, which lists each run that is not valid once, with its reasons."""

from __future__ import annotations

import json

import pytest

from wattwire.cli.main import main
from wattwire.model.deployment import Deployment
from wattwire.store import Campaign

STALL = {"code": "stall", "detail": "the machine stalled for 13 ms; allowed: 10 ms"}


@pytest.fixture
def campaign(tmp_path):
    made = Campaign.create(tmp_path / "c")
    made.journal.write_plan((f"b01-p00{at}", 1, at, f"t{at}") for at in (1, 2, 3, 4))
    yield made
    made.close()


def finish(campaign, run, verdict, outcome="completed", detail="", reasons=()):
    number = campaign.journal.begin(run, "token", "now")
    partial = campaign.open_attempt(run, number)
    document = {
        "run": run, "attempt": number, "cells": {"pong": "udp/cpp", "ping": "udp/cpp"},
        "levels": {}, "nodes": [], "outcome": outcome, "outcome_detail": detail,
        "reasons": list(reasons),
    }  # fmt: skip
    (partial / "run.json").write_text(json.dumps(document))
    (partial / "deployment.json").write_text(json.dumps(Deployment(()).to_json()))
    summary = {"run": run, "attempt": number, "verdict": verdict, "outcome": outcome}
    (partial / "summary.json").write_text(json.dumps(summary))
    name = campaign.commit(run, number, partial)
    campaign.journal.finish(run, number, verdict, outcome, name, "later")


def test_settling_runs_stand_apart_and_are_never_usable(tmp_path, capsys):
    campaign = Campaign.create(tmp_path / "c")
    settling = [(f"s0{at}-p001", 0, at, "t") for at in (1, 2, 3)]
    campaign.journal.write_plan([*settling, ("b01-p001", 1, 1, "t"), ("b02-p001", 2, 1, "t")])
    for run in ("s01-p001", "s02-p001", "b01-p001"):
        finish(campaign, run, "valid")
    assert main(["status", str(campaign.path)]) == 0
    campaign.close()
    assert capsys.readouterr().out.splitlines()[:2] == [
        "Done: 2 of 3 settling runs.",
        "Done: 1 of 2 runs; valid: 1.",
    ]


def test_each_run_that_is_not_valid_stands_once_with_its_reasons(campaign, capsys):
    finish(campaign, "b01-p001", "invalid", reasons=[STALL])
    finish(campaign, "b01-p001", "valid")
    finish(campaign, "b01-p002", "invalid", reasons=[STALL])
    finish(campaign, "b01-p002", "invalid", reasons=[{"code": "steal", "detail": "steal 9 %"}])
    finish(campaign, "b01-p003", "failed", "node_died", "pong.0 was killed by signal 9")
    assert main(["status", str(campaign.path)]) == 0
    told = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "Done: 3 of 4 runs; valid: 1." in told
    assert told[-1].endswith(f"wattwire report {campaign.path}")
    named = [line for line in told if line.startswith("b01-p")]
    assert named == [
        "b01-p002, udp/cpp: invalid, steal 9 % (the last of 2 attempts)",
        "b01-p003, udp/cpp: failed, node died: pong.0 was killed by signal 9",
    ]


def test_runs_that_ended_before_anything_was_sent_are_not_usable_and_a_look_is_called_one(
    campaign, capsys
):
    (campaign.path / "study.json").write_text(json.dumps({
        "name": "t", "factors": {}, "fixed": {}, "plan": {}, "validity": {"look": True},
    }))  # fmt: skip
    for at in (1, 2):
        finish(campaign, f"b01-p00{at}", "valid", "died", "no server")
    assert main(["status", str(campaign.path)]) == 0
    told = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert told[:2] == [
        "Done: 2 of 4 runs; valid: 0.",
        "The state of the machine excludes no run, because validity.look is set.",
    ]
