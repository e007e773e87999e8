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
    return delayed_ack.find(evidence, runs, delayed_ack.hits_of(evidence, runs))


def test_a_mode_at_40_ms_is_suspected_and_names_the_setting() -> None:
    found = acknowledged(effective=effective_of)
    assert isinstance(found, Finding)
    assert found.standing == "suspected"
    assert '"settings.at_once" = [false, true]' in found.settles
    assert "18 of 24 treatments: 3 240 of 3 240 messages (100 %)" in found.evidence[0].replace(
        "\u202f", " "
    )
    assert "64 B, 1024 B and 16384 B (of 4)" in found.evidence[0]
    assert "at once off" in found.evidence[1]


def test_the_levels_that_would_prove_it_are_those_of_the_manifest(monkeypatch: Any) -> None:
    monkeypatch.setitem(Reader.machine, "switches", {"made_up": ["at_once"]})
    found = acknowledged(effective=effective_of)
    assert isinstance(found, Finding)
    assert '"settings.at_once" = ["default", "on"]' in found.settles


def test_it_is_shown_where_the_study_switches_it_off() -> None:
    found = acknowledged(factors=SWITCHED, effective=effective_of)
    assert isinstance(found, Finding)
    assert found.standing == "shown by this study"
    assert found.settles == ""
    assert "12 of 12 pairs of runs, from 100 % to 0 %" in " ".join(found.evidence)


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
    assert found.standing == "shown by this study"
    assert "12 of 12 pairs of runs, from 100 % to 0 %" in " ".join(found.evidence)


def test_a_call_of_some_milliseconds_does_not_hide_the_wait() -> None:
    """As JAX-WS has it: what it does by itself comes on top of the wait."""

    def slow(rng: np.random.Generator, levels: Any, scale: float) -> Any:
        return waiting(rng, levels, scale) + rng.uniform(5_000, 12_000, MESSAGES)

    found = acknowledged(slow, factors=SWITCHED, effective=effective_of)
    assert isinstance(found, Finding)
    assert found.standing == "shown by this study"


def test_few_pairs_ask_for_more_blocks() -> None:
    found = acknowledged(factors=SWITCHED, effective=effective_of, blocks=1)
    assert isinstance(found, Finding)
    assert found.standing == "suspected"
    assert "plan.blocks" in found.settles


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
    assert found.standing == "suspected"
    assert "At 10 Hz".lower() in found.evidence[0].lower()
    assert "idle driver made_up" in found.evidence[1]
    assert 'loop = ["open", "closed"]' in found.settles


def test_no_smaller_effect_than_two_identical_labels_is_found() -> None:
    evidence, runs = campaign(np.random.default_rng(5), awake, blocks=5, run_sd=0.03)
    assert isinstance(idle.find(evidence, runs, {"latency_p50_us": 2.0}), Silence)


def test_one_rate_and_few_blocks_are_said() -> None:
    factors = {name: levels for name, levels in FACTORS.items() if name != "rate_hz"}
    evidence, runs = campaign(np.random.default_rng(5), narrow, factors=factors)
    silent = idle.find(evidence, runs, {})
    assert isinstance(silent, Silence) and "one rate" in silent.words
    evidence, runs = campaign(np.random.default_rng(5), narrow, blocks=2)
    silent = idle.find(evidence, runs, {})
    assert isinstance(silent, Silence) and "2 blocks, 3 needed" in silent.words
    _, unstepped = sizes.find(evidence, runs, [])
    assert unstepped is not None and "3 needed" in unstepped.words


def fragmented(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
    """Three times the latency from the second packet on."""
    values = narrow(rng, levels, scale)
    return values * (3.0 if levels["payload_bytes"] > 1472 else 1.0)


def test_a_step_names_what_lies_between_the_sizes() -> None:
    evidence, runs = campaign(np.random.default_rng(9), fragmented, blocks=6)
    found, silent = sizes.find(evidence, runs, [])
    assert silent is None
    (step,) = found
    assert step.title == "Latency rises in a step between 1\u202f024 and 16\u202f384 B"
    assert "1,472 B" in found[0].cause and "65,483" not in found[0].cause
    assert "payload_bytes = [1448, 1449, 1472, 1473]" in found[0].settles
    assert '"settings.room" = [2048, 32768]' in found[0].settles
    assert "4 of 6 groups" in found[0].evidence[0]


def test_lost_messages_make_a_step_and_a_granted_buffer_is_a_candidate() -> None:
    def overrun(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
        values = narrow(rng, levels, scale)
        if levels["payload_bytes"] > 100_000:
            values[rng.random(MESSAGES) < 0.4] = np.inf
        return values

    evidence, runs = campaign(
        np.random.default_rng(9), overrun, effective=lambda _: {"room": 212_992}
    )
    found, _ = sizes.find(evidence, runs, [])
    assert len(found) == 1
    assert found[0].title == "Loss rises in a step between 16\u202f384 and 131\u202f072 B"
    assert "the socket's receive buffer (212\u202f992 B granted)" in found[0].cause


def test_a_step_of_the_40_ms_mode_points_to_it_and_moves_with_its_setting() -> None:
    evidence, runs = campaign(
        np.random.default_rng(3), waiting, factors=SWITCHED, effective=effective_of, blocks=4
    )
    hits = delayed_ack.hits_of(evidence, runs)
    found, _ = sizes.find(evidence, runs, hits)
    (step,) = found
    assert step.title == "Latency falls in a step between 1\u202f024 and 131\u202f072 B"
    assert "acknowledgement" in found[0].cause
    assert found[0].standing == "shown by this study"
    assert "no step in 2 of 2 groups" in " ".join(found[0].evidence)


def test_a_mode_in_excluded_runs_is_found_and_marked_as_excluded() -> None:
    evidence, runs = campaign(np.random.default_rng(3), waiting, effective=effective_of)
    slow = [replace(run, excluded=True) for run in runs if run.levels["language"] == "one"]
    others = [run for run in runs if run.levels["language"] != "one"]
    every = [*others, *slow]
    found = delayed_ack.find(evidence, every, delayed_ack.hits_of(evidence, every))
    assert isinstance(found, Finding)
    (marked,) = [one for one in found.evidence if "excluded from the answers" in one]
    assert marked.startswith("27 of these 54 runs are excluded"), marked
    assert "Without any other run: one, 64 B, 10 Hz" in marked and "5 more" in marked
    rows = found.parts[0].rows
    assert {row["excluded"] for row in rows if row["language"] == "one"} == {3}
    assert {row["excluded"] for row in rows if row["language"] == "other"} == {0}


def test_excluded_runs_prove_nothing() -> None:
    evidence, runs = campaign(
        np.random.default_rng(3), waiting, factors=SWITCHED, effective=effective_of
    )
    every = [replace(run, excluded=True) for run in runs]
    found = delayed_ack.find(evidence, every, delayed_ack.hits_of(evidence, every))
    assert isinstance(found, Finding) and found.standing == "suspected"
