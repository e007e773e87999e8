"""Tests of the detector of waits in ticks on planted loops and on similar data without loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from wattwire.analysis.topics.findings.level_titles import SharedLevels
from wattwire.analysis.topics.findings.tests.made_up import (
    MESSAGES,
    NULLS,
    campaign,
    narrow,
    waiting,
    working,
)
from wattwire.analysis.topics.findings.ticks.numbers import (
    BLOCKS,
    FACTOR,
    OTHERWISE,
    TickingTreatment,
    Ticks,
    TickWaits,
    ticks,
)
from wattwire.model.derived import FloatArray
from wattwire.report.parts import Column, Table, Text
from wattwire.report.topic_page import Sentences, topic_page

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


def looked(draw: Any, **more: Any) -> Ticks:
    more = {"middleware": "looping", "factors": LOOKS, **more}
    return ticks(campaign(np.random.default_rng(5), draw, **more))


def waits_of(draw: Any, **more: Any) -> TickWaits:
    (waits,) = looked(draw, **more).found
    return waits


@pytest.mark.parametrize("period_ms", [2.0, 10.0, 50.0])
def test_a_loop_is_shown_where_the_study_varies_the_wait(period_ms: float) -> None:
    waits = waits_of(looped(1000 * period_ms))
    assert waits.is_shown
    assert waits.periods_ms == (period_ms,)
    assert (len(waits.rows), waits.treatments, waits.runs) == (3, 6, 9)
    assert waits.inside == waits.messages == 9 * MESSAGES
    assert waits.share == waits.first_share == 1
    (contrast,) = waits.contrasts
    assert (contrast.waiting, contrast.other) == ("loop", "callback")
    assert (contrast.fell, contrast.pairs) == (9, 9)
    assert (contrast.with_it, contrast.without_it) == (1, 0)
    assert waits.common == (SharedLevels(("loop",), 2),)


def test_a_loop_that_the_study_does_not_vary_is_suspected() -> None:
    waits = waits_of(looped(10_000.0), factors={"payload_bytes": PAYLOADS})
    assert not waits.is_shown
    assert (waits.confirm, waits.factors) == (FACTOR, ("settings.looks",))


def test_few_pairs_ask_for_more_blocks() -> None:
    waits = waits_of(looped(10_000.0), blocks=1)
    assert not waits.is_shown
    assert waits.confirm == BLOCKS


def test_a_wait_that_remains_without_the_loop_is_not_shown() -> None:
    def draw(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
        slow = np.where(rng.random(MESSAGES) < 0.5, 13_000.0, narrow(rng, levels, scale))
        other = {**levels, "settings.looks": "loop"}
        in_loop = levels["settings.looks"] == "loop"
        return looped(10_000.0)(rng, other, scale) if in_loop else slow

    waits = waits_of(draw)
    assert not waits.is_shown
    (contrast,) = waits.contrasts
    assert contrast.fell == contrast.pairs == 9


def several(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
    """Draw latencies of short messages at one period, and of long ones at four periods."""
    work_us = 300.0 if levels["payload_bytes"] < 65_536 else 36_000.0
    return at_looks(np.full(MESSAGES, work_us), 10_000.0, rng)


def test_several_multiples_need_no_setting() -> None:
    waits = waits_of(several, middleware="made_up", factors={"payload_bytes": PAYLOADS})
    assert not waits.is_shown
    assert waits.confirm == OTHERWISE
    assert waits.first_share == pytest.approx(2 / 3)
    assert [row.counts for row in waits.rows] == [((1, 180),), ((1, 180),), ((4, 180),)]


def test_lost_messages_and_a_few_late_looks_do_not_hide_the_loop() -> None:
    def draw(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
        values = looped(10_000.0)(rng, levels, scale)
        values[rng.choice(MESSAGES, 3, replace=False)] = np.inf
        values[rng.choice(MESSAGES, 3, replace=False)] += 4_000.0
        return values

    assert looked(draw).found


def test_runs_over_several_hosts_are_not_searched() -> None:
    searched = campaign(
        np.random.default_rng(5), looped(10_000.0), middleware="looping", factors=LOOKS
    )
    nodes = [{"cell": "looping/one", "host": host} for host in "ab"]
    far = [replace(run, nodes=nodes) for run in searched.runs]
    assert ticks(searched).found and not ticks(replace(searched, runs=far)).found


def test_waits_for_acknowledgements_are_no_ticks() -> None:
    assert not looked(waiting).found


def test_work_of_one_period_is_no_tick_without_such_a_setting() -> None:
    assert not looked(working, middleware="made_up").found


@pytest.mark.parametrize("shape", sorted(set(NULLS) - {"working"}))
@pytest.mark.parametrize("middleware", ["made_up", "looping"])
def test_a_campaign_without_a_loop_has_no_ticks(shape: str, middleware: str) -> None:
    alarms = 0
    for seed in range(CAMPAIGNS):
        searched = campaign(np.random.default_rng([seed, 11]), NULLS[shape], middleware=middleware)
        alarms += len(ticks(searched).found)
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

        alarms += len(ticks(campaign(np.random.default_rng([seed, 17]), draw)).found)
    assert alarms <= 0.05 * CAMPAIGNS


def test_the_page_has_the_contrast_and_a_row_per_treatment() -> None:
    waits = waits_of(looped(50_000.0 / 3))
    factors = [Column(name, name, factor=name) for name in LOOKS]
    *texts, table = (part for _, part in topic_page("findings/ticks", waits, factors).parts)
    assert [(text.key, text.value) for text in texts if isinstance(text, Text)] == [
        ("ticks.treatments", "3"), ("ticks.contrast", "settings.looks"),
    ]  # fmt: skip
    assert isinstance(table, Table) and table.id == "finding-waits-in-ticks"
    assert table.rows[0] == {
        "payload_bytes": "64", "settings.looks": "loop", "runs": 3, "messages": 180, "inside": 180,
        "share": 100.0, "period": pytest.approx(50 / 3), "multiples": "1 (180)",
    }  # fmt: skip
    assert Sentences("findings/ticks").title(waits).endswith(" 16.67 ms")


def test_the_page_states_what_would_confirm_a_suspected_cause() -> None:
    row = TickingTreatment((), 2, 100, 90, 10.0, ((1, 60), (2, 30)))
    for confirm in (BLOCKS, FACTOR, OTHERWISE):
        waits = TickWaits(1, (row,), confirm=confirm, factors=("settings.looks",))
        _, confirmation, table = (part for _, part in topic_page("findings/ticks", waits).parts)
        assert (confirmation.key, confirmation.value) == ("ticks.confirm", confirm)
        assert ("settings.looks" in confirmation.words) == (confirm == FACTOR)
    assert [row["multiples"] for row in table.rows] == ["1 (60), 2 (30)"]
