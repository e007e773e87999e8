"""Tests of the detector of steps at a payload size, and of the known changes that it names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from wattwire.analysis.charts import Chart
from wattwire.analysis.topics.findings.detector import Searched
from wattwire.analysis.topics.findings.sizes.numbers import (
    Change,
    Sizes,
    SizeStep,
    StepGroup,
    sizes,
)
from wattwire.analysis.topics.findings.tests.made_up import (
    FACTORS,
    MESSAGES,
    SWITCHED,
    campaign,
    effective_of,
    narrow,
    waiting,
)
from wattwire.model.derived import FloatArray
from wattwire.model.setting_purposes import FRAGMENT_BYTES, RECEIVE_BUFFER_BYTES, SEND_BUFFER_BYTES
from wattwire.report.parts import Column, Figure, Table, Text
from wattwire.report.topic_page import Sentences, topic_page
from wattwire.stats import Interval

WORDS = Sentences("findings/sizes")


def step_of(searched: Searched) -> SizeStep:
    (step,) = sizes(searched).found
    return step


def fragmented(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
    """Draw latencies that are three times higher for payloads of two or more packets."""
    values = narrow(rng, levels, scale)
    return values * (3.0 if levels["payload_bytes"] > 1472 else 1.0)


def test_a_step_names_what_lies_between_the_sizes() -> None:
    step = step_of(campaign(np.random.default_rng(9), fragmented, blocks=6))
    assert (step.kind, step.low_bytes, step.high_bytes) == ("rise", 1024, 16_384)
    assert step.changes == tuple(map(Change, ("tcp_frame", "udp_frame", "jumbo_frame")))
    assert step.payload_key == "payload_bytes = [1448, 1449, 1472, 1473]"
    assert step.buffer_keys == ('"settings.room" = [2048, 32768]',)
    assert (len(step.rows), step.groups, step.pairs) == (4, 6, 24)
    assert not step.is_shown and not step.is_wait
    assert 1.5 < step.jump_min < step.jump_max < 4


def test_the_first_step_has_the_median_of_each_group_and_size() -> None:
    step = step_of(campaign(np.random.default_rng(9), fragmented, blocks=6))
    assert step.chart is not None
    assert step.chart.colours == ("one", "other")
    assert step.chart.panels == ("10 Hz", "100 Hz", "1000 Hz")
    sizes_of_one = [point["bytes"] for point in step.chart.points if point["panel"] == "10 Hz"]
    assert sizes_of_one == 2 * list(FACTORS["payload_bytes"])


def test_lost_messages_make_a_step_and_a_granted_buffer_is_a_candidate() -> None:
    def overrun(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
        values = narrow(rng, levels, scale)
        if levels["payload_bytes"] > 100_000:
            values[rng.random(MESSAGES) < 0.4] = np.inf
        return values

    step = step_of(
        campaign(np.random.default_rng(9), overrun, effective=lambda _: {"room": 212_992})
    )
    assert (step.kind, step.low_bytes, step.high_bytes) == ("loss", 16_384, 131_072)
    assert Change(RECEIVE_BUFFER_BYTES, 212_992) in step.changes
    assert 0.3 < step.jump_max < 0.5, "a share, not a ratio"


def test_a_size_at_which_most_messages_are_lost_has_no_point_in_the_chart() -> None:
    def lost(rng: np.random.Generator, levels: Mapping[str, Any], scale: float) -> FloatArray:
        values = narrow(rng, levels, scale)
        if levels["payload_bytes"] > 100_000:
            values[: MESSAGES * 2 // 3] = np.inf
        return values

    step = step_of(campaign(np.random.default_rng(9), lost))
    assert step.kind == "loss" and step.chart is not None
    drawn = {point["bytes"] for point in step.chart.points}
    assert drawn == {64, 1024, 16_384} and 131_072 in FACTORS["payload_bytes"]
    columns = [Column(name, name) for name in FACTORS]
    parts = topic_page("findings/sizes", step, columns).parts
    assert any(isinstance(part, Figure) for _, part in parts)


def test_a_step_of_the_40_ms_mode_points_to_it_and_moves_with_its_setting() -> None:
    step = step_of(
        campaign(
            np.random.default_rng(3), waiting, factors=SWITCHED, effective=effective_of, blocks=4
        )
    )
    assert (step.kind, step.low_bytes, step.high_bytes) == ("fall", 1024, 131_072)
    assert step.is_wait and not step.changes
    assert step.is_shown
    (comparison,) = step.comparisons
    assert (comparison.setting, comparison.compared) == ("settings.at_once", 2)


def test_few_blocks_are_named_as_the_reason_for_no_step() -> None:
    result = sizes(campaign(np.random.default_rng(5), narrow, blocks=2))
    assert result == Sizes(sizes=4, blocks=2)
    assert result.has_few_blocks and not result.has_few_sizes
    factors = {**FACTORS, "payload_bytes": (64, 1024)}
    two_sizes = sizes(campaign(np.random.default_rng(5), narrow, factors=factors))
    assert two_sizes == Sizes(sizes=2) and two_sizes.has_few_sizes
    results = (result, two_sizes, Sizes(sizes=4, blocks=3))
    assert len(set(map(WORDS.reason, results))) == 3


JUMP = Interval(2.5, 2.0, 3.1, 0.99, 6, "t")
ROWS = (StepGroup(("one",), 6, 100.0, 250.0, JUMP),)
COLUMNS = [Column(name, name) for name in ("language", "payload_bytes")]


@pytest.mark.parametrize("kind", ["rise", "fall", "loss"])
def test_the_page_has_a_table_of_the_step_without_a_column_of_the_payload(kind: str) -> None:
    step = SizeStep(kind, 1024, 16_384, ROWS, 4, ("language",), payload_key="x = [1, 2]")
    *texts, table = (part for _, part in topic_page("findings/sizes", step, COLUMNS).parts)
    assert [(text.key, text.value) for text in texts if isinstance(text, Text)] == [
        ("sizes.groups", "1"), ("sizes.confirm", ""),
    ]  # fmt: skip
    assert isinstance(table, Table) and table.id == f"finding-step-{kind}-1024-16384"
    assert table.rows == [
        {"language": "one", "blocks": 6, "low": 100.0, "high": 250.0, "jump": JUMP}
    ]
    assert [column.unit for column in table.columns] == ["", "", "µs", "µs", ""]


def test_each_kind_of_step_and_each_change_has_words_of_its_own() -> None:
    steps = [SizeStep(kind, 1, 2, ROWS, 4) for kind in ("rise", "fall", "loss")]
    assert len(set(map(WORDS.title, steps))) == len(set(map(WORDS.jump, steps))) == 3
    kinds = ["tcp_frame", "udp_frame", "jumbo_frame", "loopback_segment", "largest_datagram"]
    kinds += [SEND_BUFFER_BYTES, RECEIVE_BUFFER_BYTES, FRAGMENT_BYTES]
    assert len({WORDS.change(Change(kind, 1)) for kind in kinds}) == len(kinds)


def test_the_page_draws_the_chart_of_a_step_that_has_one() -> None:
    point = {"bytes": 64, "us": 100.0, "colour": "one", "panel": ""}
    step = SizeStep("rise", 1, 2, ROWS, 4, chart=Chart([point], ("one",), panels=("",)))
    *_, figure = (part for _, part in topic_page("findings/sizes", step).parts)
    assert isinstance(figure, Figure) and figure.id == "finding-payload-steps"
