"""What is planted is found, with what would prove it; what only looks like it is not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from wattwire.model.derived import FloatArray
from wattwire.report.findings import delayed_ack, idle, sizes
from wattwire.report.findings.finding import Finding, Silence
from wattwire.report.findings.tests.made_up import (
    FACTORS,
    MESSAGES,
    Reader,
    campaign,
    grown,
    narrow,
)
from wattwire.report.tests.phrase_search import keys_in, only

SWITCHED: dict[str, tuple[Any, ...]] = {
    "language": ("one", "other"),
    "payload_bytes": (64, 1024, 131_072),
    "settings.at_once": (False, True),
}


def waiting(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
    """Short payloads wait for an acknowledgement unless they are sent at once."""
    values = narrow(rng, levels, scale)
    held = not levels.get("settings.at_once", False) and levels["payload_bytes"] < 65_536
    return values + 40_000.0 * held * np.exp(rng.normal(0.03, 0.02, MESSAGES))


def effective_of(levels: Mapping[str, Any]) -> dict[str, Any]:
    return {"at_once": levels.get("settings.at_once", False)}


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
    """As JAX-WS has it: what it does by itself comes on top of the wait."""

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


def test_one_stall_is_no_mode() -> None:
    def stalled(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
        values = narrow(rng, levels, scale)
        values[20:26] = 42_000.0
        return values

    assert isinstance(acknowledged(stalled), Silence)


def awake(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
    """A message pays for waking up: 60 µs at 10 Hz, a tenth of that at 1 kHz."""
    values = scale * grown(levels, 80.0) * np.exp(rng.normal(0, 0.2, MESSAGES))
    return values + 60.0 * (10.0 / float(levels["rate_hz"])) ** 0.5


def test_latency_that_falls_with_the_rate_is_found() -> None:
    evidence, runs = campaign(np.random.default_rng(5), awake, blocks=5, run_sd=0.03)
    found = idle.find(evidence, runs, {})
    assert isinstance(found, Finding)
    assert not found.shown
    assert only(found.evidence, "idle.summary").values["slow"] == "10 Hz"
    assert "idle driver made_up" in only(found.evidence, "idle.facts").values["facts"]
    assert found.settles.key == "idle.confirm"


def test_no_smaller_effect_than_two_identical_labels_is_found() -> None:
    evidence, runs = campaign(np.random.default_rng(5), awake, blocks=5, run_sd=0.03)
    assert isinstance(idle.find(evidence, runs, {"latency_p50_us": 2.0}), Silence)


def test_one_rate_and_few_blocks_are_said() -> None:
    factors = {name: levels for name, levels in FACTORS.items() if name != "rate_hz"}
    evidence, runs = campaign(np.random.default_rng(5), narrow, factors=factors)
    silent = idle.find(evidence, runs, {})
    assert isinstance(silent, Silence) and silent.words.key == "idle.one_rate"
    evidence, runs = campaign(np.random.default_rng(5), narrow, blocks=2)
    silent = idle.find(evidence, runs, {})
    assert only(silent, "idle.few_blocks").values == {"blocks": 2, "needed": 3}
    (unstepped,) = sizes.find(evidence, runs)
    assert only(unstepped, "sizes.few_blocks").values == {"blocks": 2, "needed": 3}


def fragmented(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
    """Three times the latency from the second packet on."""
    values = narrow(rng, levels, scale)
    return values * (3.0 if levels["payload_bytes"] > 1472 else 1.0)


def test_a_step_names_what_lies_between_the_sizes() -> None:
    evidence, runs = campaign(np.random.default_rng(9), fragmented, blocks=6)
    (step,) = sizes.find(evidence, runs)
    assert only(step.title, "sizes.rise_title").values == {"low": 1024, "high": 16_384}
    causes = only(step.cause, "sizes.known_change").values["causes"]
    assert keys_in(causes) == ["sizes.tcp_frame", "sizes.udp_frame", "sizes.jumbo_frame"]
    assert only(step.settles, "sizes.confirm_with_buffers").values == {
        "sizes": "payload_bytes = [1448, 1449, 1472, 1473]",
        "buffers": '"settings.room" = [2048, 32768]',
    }
    summary = only(step.evidence, "sizes.summary").values
    assert (summary["steps"], summary["groups"]) == (4, 6)


def test_lost_messages_make_a_step_and_a_granted_buffer_is_a_candidate() -> None:
    def overrun(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
        values = narrow(rng, levels, scale)
        if levels["payload_bytes"] > 100_000:
            values[rng.random(MESSAGES) < 0.4] = np.inf
        return values

    evidence, runs = campaign(
        np.random.default_rng(9), overrun, effective=lambda _: {"room": 212_992}
    )
    (step,) = sizes.find(evidence, runs)
    assert only(step.title, "sizes.loss_title").values == {"low": 16_384, "high": 131_072}
    assert only(step.cause, "sizes.receive_buffer").values == {"granted": 212_992}


def test_a_step_of_the_40_ms_mode_points_to_it_and_moves_with_its_setting() -> None:
    evidence, runs = campaign(
        np.random.default_rng(3), waiting, factors=SWITCHED, effective=effective_of, blocks=4
    )
    (step,) = sizes.find(evidence, runs)
    assert only(step.title, "sizes.fall_title").values == {"low": 1024, "high": 131_072}
    assert step.cause.key == "sizes.waits"
    assert step.shown
    setting = only(step.evidence, "sizes.setting").values
    assert (setting["compared"], setting["groups"]) == (2, 2)


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
