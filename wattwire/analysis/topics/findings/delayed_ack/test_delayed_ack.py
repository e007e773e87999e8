"""Tests of the detector of delayed ACKs on planted waits and on similar data without waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from wattwire.analysis.topics.findings.delayed_ack.numbers import (
    BLOCKS,
    FACTOR,
    OTHERWISE,
    AckWaits,
    DelayedAck,
    ReportedSetting,
    WaitingTreatment,
    delayed_ack,
)
from wattwire.analysis.topics.findings.detector import Searched
from wattwire.analysis.topics.findings.level_titles import SharedLevels
from wattwire.analysis.topics.findings.tests.made_up import (
    MESSAGES,
    SWITCHED,
    Reader,
    campaign,
    effective_of,
    narrow,
    waiting,
)
from wattwire.model.derived import FloatArray
from wattwire.report.parts import Column, Table, Text
from wattwire.report.topic_page import topic_page


def acknowledged(draw: Any = waiting, **more: Any) -> DelayedAck:
    return delayed_ack(campaign(np.random.default_rng(3), draw, **more))


def waits_of(draw: Any = waiting, **more: Any) -> AckWaits:
    (waits,) = acknowledged(draw, **more).found
    return waits


def test_a_mode_at_40_ms_is_suspected_and_names_the_setting() -> None:
    waits = waits_of(effective=effective_of)
    assert not waits.is_shown
    assert waits.confirm == FACTOR
    assert '"settings.at_once" = [false, true]' in waits.keys
    assert (len(waits.rows), waits.treatments) == (18, 24)
    assert waits.inside == waits.messages == 3240 and waits.share == 1
    assert waits.common == (SharedLevels(("64 B", "1024 B", "16384 B"), 4),)
    assert waits.settings == (ReportedSetting("at once", ("off",)),)


def test_the_levels_that_would_prove_it_are_those_of_the_manifest(monkeypatch: Any) -> None:
    monkeypatch.setitem(Reader.machine, "switches", {"made_up": ["at_once"]})
    assert '"settings.at_once" = ["default", "on"]' in waits_of(effective=effective_of).keys


def assert_gone_in_all_pairs(waits: AckWaits) -> None:
    assert waits.is_shown
    (contrast,) = waits.contrasts
    assert (contrast.fell, contrast.pairs) == (12, 12)
    assert (contrast.with_it, contrast.without_it) == (1, 0)


def test_it_is_shown_where_the_study_switches_it_off() -> None:
    assert_gone_in_all_pairs(waits_of(factors=SWITCHED, effective=effective_of))


def test_a_switch_that_is_left_to_the_library_is_compared_with_on() -> None:
    levels: tuple[Any, ...] = ("default", "on")

    def held(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
        return waiting(rng, {**levels, "settings.at_once": switched(levels)}, scale)

    def switched(levels: Mapping[str, Any]) -> bool:
        return levels.get("settings.at_once", "default") == "on"

    waits = waits_of(
        held,
        factors={**SWITCHED, "settings.at_once": levels},
        effective=lambda levels: {"at_once": switched(levels)},
    )
    assert_gone_in_all_pairs(waits)


def test_a_call_of_some_milliseconds_does_not_hide_the_wait() -> None:
    """The latency of the call is added to the wait, as in JAX-WS."""

    def slow(rng: np.random.Generator, levels: Any, scale: float) -> Any:
        return waiting(rng, levels, scale) + rng.uniform(5_000, 12_000, MESSAGES)

    assert waits_of(slow, factors=SWITCHED, effective=effective_of).is_shown


def test_few_pairs_ask_for_more_blocks() -> None:
    waits = waits_of(factors=SWITCHED, effective=effective_of, blocks=1)
    assert not waits.is_shown
    assert waits.confirm == BLOCKS


def test_a_share_of_the_messages_is_enough() -> None:
    def some(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
        values = narrow(rng, levels, scale)
        return np.where(rng.random(MESSAGES) < 0.15, values + 41_000.0, values)

    assert acknowledged(some).found


def test_it_is_silent_where_nodes_say_that_it_cannot_be() -> None:
    assert not acknowledged(effective=lambda _: {"at_once": True}).found
    assert not acknowledged(effective=lambda _: {"ack_now": True}).found
    assert not acknowledged(effective=lambda _: {"transport": "udp/ipv4"}).found


def test_it_is_silent_without_any_evidence_of_tcp(monkeypatch: Any) -> None:
    unreported = {"transport": None}
    assert acknowledged(effective=lambda _: unreported).found, "settings of TCP"
    monkeypatch.setitem(Reader.machine, "setting_purposes", {})
    assert not acknowledged(effective=lambda _: unreported).found
    assert acknowledged(effective=lambda _: {"transport": "tcp"}).found


def test_one_stall_is_no_mode() -> None:
    def stalled(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
        values = narrow(rng, levels, scale)
        values[20:26] = 42_000.0
        return values

    assert not acknowledged(stalled).found


def test_a_mode_in_excluded_runs_is_found_and_marked_as_excluded() -> None:
    searched = campaign(np.random.default_rng(3), waiting, effective=effective_of)
    slow = [replace(run, excluded=True) for run in searched.runs if run.levels["language"] == "one"]
    others = [run for run in searched.runs if run.levels["language"] != "one"]
    (waits,) = delayed_ack(Searched(searched.evidence, others, slow)).found
    assert (waits.excluded, waits.possible_runs) == (27, 54)
    assert len(waits.only_excluded) == 9
    assert waits.only_excluded[0].title == "one, 64 B, 10 Hz"
    assert {row.excluded for row in waits.rows if row.treatment[0] == "one"} == {3}
    assert {row.excluded for row in waits.rows if row.treatment[0] == "other"} == {0}


def test_excluded_runs_prove_nothing() -> None:
    searched = campaign(np.random.default_rng(3), waiting, factors=SWITCHED, effective=effective_of)
    excluded = [replace(run, excluded=True) for run in searched.runs]
    (waits,) = delayed_ack(Searched(searched.evidence, [], excluded)).found
    assert not waits.is_shown and not waits.contrasts


def test_delayed_acknowledgements_are_compared_with_immediate_ones() -> None:
    """A setting of three levels has the wait at `off`, not necessarily at `default`."""

    def held(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
        is_off = levels["settings.ack_now"] == "off"
        return waiting(rng, {**levels, "settings.at_once": not is_off}, scale)

    factors = {"payload_bytes": (64, 1024), "settings.ack_now": ("default", "off", "on")}
    waits = waits_of(
        held, factors=factors, effective=lambda levels: {"ack_now": levels["settings.ack_now"]}
    )
    assert waits.is_shown
    (contrast,) = waits.contrasts
    assert (contrast.on, contrast.off) == ("on", "off")
    assert (contrast.fell, contrast.pairs) == (6, 6)


def test_immediate_acknowledgements_of_a_setting_with_three_levels_exclude_the_cause() -> None:
    assert not acknowledged(effective=lambda _: {"ack_now": "on"}).found
    assert acknowledged(effective=lambda _: {"ack_now": "off"}).found


ROW = WaitingTreatment(("one",), "Python", 3, 3, 3, 300, 30, 2, 41.2)


def test_the_page_has_a_row_per_treatment_and_the_number_of_excluded_runs() -> None:
    waits = AckWaits(2, (ROW,))
    page = topic_page("findings/delayed_ack", waits, [Column("language", "language")])
    *texts, table = (part for _, part in page.parts)
    assert [(text.key, text.value) for text in texts if isinstance(text, Text)] == [
        ("delayed_ack.treatments", "1"), ("delayed_ack.excluded", "3"),
        ("delayed_ack.setting", "unknown"), ("delayed_ack.confirm", OTHERWISE),
    ]  # fmt: skip
    assert "Python" in texts[1].words
    assert isinstance(table, Table)
    assert table.rows == [
        {"language": "one", "runs": 3, "excluded": 3, "messages": 300, "inside": 30, "share": 10.0,
         "beside": 2, "centre": 41.2},
    ]  # fmt: skip


def test_the_page_names_four_treatments_with_the_mode_in_excluded_runs_alone() -> None:
    rows = tuple(replace(ROW, title=f"T{at}") for at in range(6))
    page = topic_page("findings/delayed_ack", AckWaits(6, rows), [Column("language", "language")])
    assert any("T0, T1, T2, T3 and 2 more" in text for text in page.texts)


def test_the_page_states_the_contrast_of_a_shown_cause_and_the_reported_settings() -> None:
    waits = waits_of(factors=SWITCHED, effective=effective_of)
    columns = [Column(name, name) for name in SWITCHED]
    texts = [part for _, part in topic_page("findings/delayed_ack", waits, columns).parts]
    assert [(text.key, text.value) for text in texts if isinstance(text, Text)] == [
        ("delayed_ack.treatments", "4"), ("delayed_ack.setting", "off"),
        ("delayed_ack.contrast", "settings.at_once"),
    ]  # fmt: skip
