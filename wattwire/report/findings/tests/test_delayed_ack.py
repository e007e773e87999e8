"""Tests of the detector of delayed ACKs on planted waits and on similar data without waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from wattwire.model.derived import FloatArray
from wattwire.report.findings import delayed_ack
from wattwire.report.findings.finding import Finding, Silence
from wattwire.report.findings.tests.made_up import (
    MESSAGES,
    SWITCHED,
    Reader,
    campaign,
    effective_of,
    narrow,
    waiting,
)
from wattwire.report.tests.phrase_search import only


def acknowledged(draw: Any = waiting, **more: Any) -> Finding | Silence:
    evidence, runs = campaign(np.random.default_rng(3), draw, **more)
    return delayed_ack.find(evidence, runs)


def test_a_mode_at_40_ms_is_suspected_and_names_the_setting() -> None:
    found = acknowledged(effective=effective_of)
    assert isinstance(found, Finding)
    assert not found.shown
    assert found.settles.key == "delayed_ack.confirm_with_factor"
    assert '"settings.at_once" = [false, true]' in found.settles.values["keys"]
    summary = only(found.evidence, "delayed_ack.summary").values
    assert (summary["hits"], summary["treatments"]) == (18, 24)
    assert summary["inside"] == summary["messages"] == 3240 and summary["share"] == 1
    common = only(found.evidence, "delayed_ack.common").values["levels"]
    assert common == "64 B, 1024 B and 16384 B (of 4)"
    settings = only(found.evidence, "delayed_ack.settings")
    assert settings.values == {"setting": "at once", "values": ["off"]}


def test_the_levels_that_would_prove_it_are_those_of_the_manifest(monkeypatch: Any) -> None:
    monkeypatch.setitem(Reader.machine, "switches", {"made_up": ["at_once"]})
    found = acknowledged(effective=effective_of)
    assert isinstance(found, Finding)
    assert '"settings.at_once" = ["default", "on"]' in found.settles.values["keys"]


def assert_gone_in_all_pairs(found: Finding) -> None:
    contrast = only(found.evidence, "delayed_ack.contrast").values
    assert (contrast["fell"], contrast["pairs"]) == (12, 12)
    assert (contrast["with_it"], contrast["without_it"]) == (1, 0)


def test_it_is_shown_where_the_study_switches_it_off() -> None:
    found = acknowledged(factors=SWITCHED, effective=effective_of)
    assert isinstance(found, Finding)
    assert found.shown
    assert found.settles == ""
    assert_gone_in_all_pairs(found)


def test_a_switch_that_is_left_to_the_library_is_compared_with_on() -> None:
    levels: tuple[Any, ...] = ("default", "on")

    def held(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
        return waiting(rng, {**levels, "settings.at_once": switched(levels)}, scale)

    def switched(levels: Mapping[str, Any]) -> bool:
        return levels.get("settings.at_once", "default") == "on"

    found = acknowledged(
        held,
        factors={**SWITCHED, "settings.at_once": levels},
        effective=lambda levels: {"at_once": switched(levels)},
    )
    assert isinstance(found, Finding)
    assert found.shown
    assert_gone_in_all_pairs(found)


def test_a_call_of_some_milliseconds_does_not_hide_the_wait() -> None:
    """The latency of the call is added to the wait, as in JAX-WS."""

    def slow(rng: np.random.Generator, levels: Any, scale: float) -> Any:
        return waiting(rng, levels, scale) + rng.uniform(5_000, 12_000, MESSAGES)

    found = acknowledged(slow, factors=SWITCHED, effective=effective_of)
    assert isinstance(found, Finding)
    assert found.shown


def test_few_pairs_ask_for_more_blocks() -> None:
    found = acknowledged(factors=SWITCHED, effective=effective_of, blocks=1)
    assert isinstance(found, Finding)
    assert not found.shown
    assert found.settles.key == "delayed_ack.confirm_with_blocks"


def test_a_share_of_the_messages_is_enough() -> None:
    def some(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
        values = narrow(rng, levels, scale)
        return np.where(rng.random(MESSAGES) < 0.15, values + 41_000.0, values)

    assert isinstance(acknowledged(some), Finding)


def test_it_is_silent_where_nodes_say_that_it_cannot_be() -> None:
    assert isinstance(acknowledged(effective=lambda _: {"at_once": True}), Silence)
    assert isinstance(acknowledged(effective=lambda _: {"ack_now": True}), Silence)
    assert isinstance(acknowledged(effective=lambda _: {"transport": "udp/ipv4"}), Silence)


def test_it_is_silent_without_any_evidence_of_tcp(monkeypatch: Any) -> None:
    unreported = {"transport": None}
    assert isinstance(acknowledged(effective=lambda _: unreported), Finding), "settings of TCP"
    monkeypatch.setitem(Reader.machine, "setting_purposes", {})
    assert isinstance(acknowledged(effective=lambda _: unreported), Silence)
    assert isinstance(acknowledged(effective=lambda _: {"transport": "tcp"}), Finding)


def test_one_stall_is_no_mode() -> None:
    def stalled(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
        values = narrow(rng, levels, scale)
        values[20:26] = 42_000.0
        return values

    assert isinstance(acknowledged(stalled), Silence)


def test_a_mode_in_excluded_runs_is_found_and_marked_as_excluded() -> None:
    evidence, runs = campaign(np.random.default_rng(3), waiting, effective=effective_of)
    slow = [replace(run, excluded=True) for run in runs if run.levels["language"] == "one"]
    others = [run for run in runs if run.levels["language"] != "one"]
    every = [*others, *slow]
    found = delayed_ack.find(evidence, every)
    assert isinstance(found, Finding)
    marked = only(found.evidence, "delayed_ack.excluded").values
    assert marked == {"excluded": 27, "runs": 54}
    treatments = only(found.evidence, "delayed_ack.only_excluded").values["treatments"]
    assert treatments[0] == "one, 64 B, 10 Hz"
    assert treatments[-1].values == {"more": 5}
    rows = found.parts[0].rows
    assert {row["excluded"] for row in rows if row["language"] == "one"} == {3}
    assert {row["excluded"] for row in rows if row["language"] == "other"} == {0}


def test_excluded_runs_prove_nothing() -> None:
    evidence, runs = campaign(
        np.random.default_rng(3), waiting, factors=SWITCHED, effective=effective_of
    )
    every = [replace(run, excluded=True) for run in runs]
    found = delayed_ack.find(evidence, every)
    assert isinstance(found, Finding) and not found.shown


def test_delayed_acknowledgements_are_compared_with_immediate_ones() -> None:
    """A setting of three levels has the wait at `off`, not necessarily at `default`."""

    def held(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
        is_off = levels["settings.ack_now"] == "off"
        return waiting(rng, {**levels, "settings.at_once": not is_off}, scale)

    factors = {"payload_bytes": (64, 1024), "settings.ack_now": ("default", "off", "on")}
    found = acknowledged(
        held, factors=factors, effective=lambda levels: {"ack_now": levels["settings.ack_now"]}
    )
    assert isinstance(found, Finding) and found.shown
    contrast = only(found.evidence, "delayed_ack.contrast").values
    assert (contrast["on"], contrast["off"]) == ("on", "off")
    assert (contrast["fell"], contrast["pairs"]) == (6, 6)


def test_immediate_acknowledgements_of_a_setting_with_three_levels_exclude_the_cause() -> None:
    assert isinstance(acknowledged(effective=lambda _: {"ack_now": "on"}), Silence)
    assert isinstance(acknowledged(effective=lambda _: {"ack_now": "off"}), Finding)
