"""Tests of the detector of steps at a payload size, and of the known changes that it names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from wattwire.model.derived import FloatArray
from wattwire.report.findings import sizes
from wattwire.report.findings.tests.made_up import (
    MESSAGES,
    SWITCHED,
    campaign,
    effective_of,
    narrow,
    waiting,
)
from wattwire.report.tests.phrase_search import keys_in, only


def fragmented(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
    """Draw latencies that are three times higher for payloads of two or more packets."""
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


def test_few_blocks_are_named_as_the_reason_for_no_step() -> None:
    evidence, runs = campaign(np.random.default_rng(5), narrow, blocks=2)
    (unstepped,) = sizes.find(evidence, runs)
    assert only(unstepped, "sizes.few_blocks").values == {"blocks": 2, "needed": 3}
