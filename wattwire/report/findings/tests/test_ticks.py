"""Tests of the detector of waits in ticks on planted loops and on similar data without loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from wattwire.model.derived import FloatArray
from wattwire.report.findings import ticks
from wattwire.report.findings.finding import Finding, Silence
from wattwire.report.findings.tests.made_up import (
    MESSAGES,
    NULLS,
    campaign,
    narrow,
    waiting,
    working,
)
from wattwire.report.tests.phrase_search import only

PAYLOADS = (64, 1024, 131_072)
LOOKS: dict[str, tuple[Any, ...]] = {
    "payload_bytes": PAYLOADS,
    "settings.looks": ("callback", "loop"),
}
CAMPAIGNS = 20


def at_looks(work_us: FloatArray, period_us: float, rng: np.random.Generator) -> FloatArray:
    """Return latencies of messages that arrive after `work_us` and wait for the next look."""
    looks = np.ceil(work_us / period_us) * period_us
    return looks + rng.uniform(20.0, 0.06 * period_us, work_us.size)


def looped(period_us: float) -> Any:
    def draw(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
        values = narrow(rng, levels, scale)
        if levels.get("settings.looks", "loop") != "loop":
            return values
        return at_looks(values, period_us, rng)

    return draw


def looked(draw: Any, **more: Any) -> Finding | Silence:
    more = {"middleware": "looping", "factors": LOOKS, **more}
    evidence, runs = campaign(np.random.default_rng(5), draw, **more)
    return ticks.find(evidence, runs)


@pytest.mark.parametrize("period_ms", [2.0, 10.0, 50.0])
def test_a_loop_is_shown_where_the_study_varies_the_wait(period_ms: float) -> None:
    found = looked(looped(1000 * period_ms))
    assert isinstance(found, Finding)
    assert found.shown and found.settles == ""
    assert [period.values["period"] for period in found.title.values["periods"]] == [period_ms]
    summary = only(found.evidence, "ticks.summary").values
    assert (summary["hits"], summary["treatments"], summary["runs"]) == (3, 6, 9)
    assert summary["inside"] == summary["messages"] == 9 * MESSAGES
    assert summary["first"] == 1
    contrast = only(found.evidence, "ticks.contrast").values
    assert (contrast["waiting"], contrast["other"]) == ("loop", "callback")
    assert (contrast["fell"], contrast["pairs"]) == (9, 9)
    assert (contrast["with_it"], contrast["without_it"]) == (1, 0)
    common = only(found.evidence, "ticks.common").values["levels"]
    assert common == "loop"


def test_a_loop_that_the_study_does_not_vary_is_suspected() -> None:
    found = looked(looped(10_000.0), factors={"payload_bytes": PAYLOADS})
    assert isinstance(found, Finding) and not found.shown
    assert found.settles.key == "ticks.confirm_with_factor"
    assert found.settles.values["names"] == ["settings.looks"]


def test_few_pairs_ask_for_more_blocks() -> None:
    found = looked(looped(10_000.0), blocks=1)
    assert isinstance(found, Finding) and not found.shown
    assert found.settles.key == "ticks.confirm_with_blocks"


def test_a_wait_that_remains_without_the_loop_is_not_shown() -> None:
    def draw(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
        slow = np.where(rng.random(MESSAGES) < 0.5, 13_000.0, narrow(rng, levels, scale))
        other = {**levels, "settings.looks": "loop"}
        in_loop = levels["settings.looks"] == "loop"
        return looped(10_000.0)(rng, other, scale) if in_loop else slow

    found = looked(draw)
    assert isinstance(found, Finding) and not found.shown
    contrast = only(found.evidence, "ticks.contrast").values
    assert contrast["fell"] == contrast["pairs"] == 9


def several(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
    """Draw latencies of short messages at one period, and of long ones at four periods."""
    work_us = 300.0 if levels["payload_bytes"] < 65_536 else 36_000.0
    return at_looks(np.full(MESSAGES, work_us), 10_000.0, rng)


def test_several_multiples_need_no_setting() -> None:
    found = looked(several, middleware="made_up", factors={"payload_bytes": PAYLOADS})
    assert isinstance(found, Finding) and not found.shown
    assert found.settles.key == "ticks.confirm_otherwise"
    summary = only(found.evidence, "ticks.summary").values
    assert summary["first"] == pytest.approx(2 / 3)
    rows = found.parts[0].rows
    assert [row["multiples"] for row in rows] == ["1 (180)", "1 (180)", "4 (180)"]


def test_lost_messages_and_a_few_late_looks_do_not_hide_the_loop() -> None:
    def draw(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
        values = looped(10_000.0)(rng, levels, scale)
        values[rng.choice(MESSAGES, 3, replace=False)] = np.inf
        values[rng.choice(MESSAGES, 3, replace=False)] += 4_000.0
        return values

    assert isinstance(looked(draw), Finding)


def test_runs_over_several_hosts_are_not_searched() -> None:
    evidence, runs = campaign(
        np.random.default_rng(5), looped(10_000.0), middleware="looping", factors=LOOKS
    )
    far = [replace(run, nodes=[{"cell": "looping/one", "host": h} for h in "ab"]) for run in runs]
    assert isinstance(ticks.find(evidence, far), Silence)


def test_waits_for_acknowledgements_are_no_ticks() -> None:
    assert isinstance(looked(waiting), Silence)


def test_work_of_one_period_is_no_tick_without_such_a_setting() -> None:
    assert isinstance(looked(working, middleware="made_up"), Silence)


@pytest.mark.parametrize("shape", sorted(set(NULLS) - {"working"}))
@pytest.mark.parametrize("middleware", ["made_up", "looping"])
def test_a_campaign_without_a_loop_has_no_ticks(shape: str, middleware: str) -> None:
    alarms = 0
    for seed in range(CAMPAIGNS):
        evidence, runs = campaign(
            np.random.default_rng([seed, 11]), NULLS[shape], middleware=middleware
        )
        alarms += isinstance(ticks.find(evidence, runs), Finding)
    print(f"{shape}, {middleware}: {alarms} of {CAMPAIGNS}")
    assert alarms == 0


def test_narrow_latencies_of_any_length_raise_no_alarm() -> None:
    """Each payload has its own length between 0.5 and 150 ms, as work of any kind may have."""
    alarms = 0
    for seed in range(CAMPAIGNS):
        lengths = np.random.default_rng([seed, 13]).uniform(np.log(500), np.log(150_000), 4)

        def draw(
            rng: np.random.Generator, levels: Mapping[str, Any], scale: float, at: Any = lengths
        ) -> FloatArray:
            place = (64, 1024, 16_384, 131_072).index(levels["payload_bytes"])
            return np.exp(at[place] + rng.normal(0, 0.02, MESSAGES))

        evidence, runs = campaign(np.random.default_rng([seed, 17]), draw)
        alarms += isinstance(ticks.find(evidence, runs), Finding)
    assert alarms <= 0.05 * CAMPAIGNS
