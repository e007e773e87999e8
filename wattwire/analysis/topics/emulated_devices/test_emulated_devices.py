"""Test that no comparison contains the times and costs of emulated devices."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wattwire.analysis.answering.block_models import usable_fit
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import Evidence, gather, levels_of
from wattwire.analysis.emulated import is_emulated
from wattwire.analysis.latency import all_series
from wattwire.analysis.topics.emulated_devices.numbers import (
    Device,
    EmulatedDevices,
    RoundTrips,
    emulated_devices,
)
from wattwire.analysis.topics.paper_tests.walks import walked, walks_of
from wattwire.analysis.topics.ranking.order import choices
from wattwire.analysis.topics.unanswered.cautions import Emulated
from wattwire.analysis.topics.unanswered.numbers import unanswered
from wattwire.model.derived import column
from wattwire.report.tests.answered import page_headline as headline
from wattwire.report.tests.synthetic import FAST, SLOW, Shape, write_campaign
from wattwire.report.topic_page import Sentences, topic_page
from wattwire.stats import Band
from wattwire.store import Campaign

BOARD = {"device": "Board", "clock_hz": 25e6, "cycles_per_instruction": [0.5, 3.0]}


def evidence_with(
    folder: Path,
    emulated: tuple[str, ...] = (FAST,),
    instructions: float = 0.0,
    board: Mapping[str, Any] = BOARD,
) -> Evidence:
    """Return a campaign in which the runs of these languages have an emulated device."""
    study = {"answers": {"best_of": ["language"], "baseline": {"language": SLOW}}}
    path = write_campaign(folder / "campaign", Shape(blocks=4, study=study))
    for run in sorted((path / "runs").iterdir()):
        row = json.loads((run / "summary.json").read_text())
        if row["factor.language"] not in emulated:
            continue
        row["emulated_device"] = board["device"]
        if instructions:
            row["instructions_per_block"] = instructions
        (run / "summary.json").write_text(json.dumps(row))
        document = json.loads((run / "run.json").read_text())
        document["nodes"][0]["emulated"] = dict(board)
        (run / "run.json").write_text(json.dumps(document))
    return gather(Campaign(path))


def test_answers_rankings_and_tests_lack_emulated_devices_and_say_why(tmp_path):
    evidence = evidence_with(tmp_path)
    answers = answer_all(evidence)
    of_language = [item for item in answers.items if item.factor == "language"]
    assert of_language
    for item in of_language:
        if not item.response.energy:
            assert "Swift: the device is emulated" in str(item.result)
    for choice in choices(evidence, answers):
        assert not choice.placed
        assert list(choice.without) == ["Swift"]
    walks, _ = walks_of(evidence)
    assert walks
    for walk in walks:
        groups = walked(evidence, walk).path.counts
        assert not [title for title in groups if "Swift" in title]
    result = unanswered(evidence, answers).emulated
    assert result == Emulated(evidence.emulated.height, ("Board",))
    assert Sentences("unanswered").emulated(result) in headline(evidence, answers)


def test_other_factors_are_answered_without_the_emulated_runs(tmp_path):
    evidence = evidence_with(tmp_path)
    whole = gather(Campaign(write_campaign(tmp_path / "whole", Shape(blocks=4))))
    (answer,) = (
        item
        for item in answer_all(evidence).items
        if (item.factor, item.response.column) == ("clients", "latency_p50_us")
    )
    (of_all,) = (
        item
        for item in answer_all(whole).items
        if (item.factor, item.response.column) == ("clients", "latency_p50_us")
    )
    assert answer.result.interval.degrees < of_all.result.interval.degrees
    fit, fit_of_all = (usable_fit(e, answer.response) for e in (evidence, whole))
    assert len(fit.residuals) == len(fit_of_all.residuals) // 2


def test_counts_and_round_trips_with_the_emulator_remain(tmp_path):
    evidence = evidence_with(tmp_path)
    is_board = np.array([level == FAST for level in levels_of(evidence.usable, "language")])
    assert is_board.any() and not is_board.all()
    latency_us = column(evidence.usable, "latency_p50_us")
    assert np.isnan(latency_us[is_board]).all() and not np.isnan(latency_us[~is_board]).any()
    assert not np.isnan(column(evidence.usable, "sent")).any()
    boards = set(evidence.emulated["run"].to_list())
    assert not boards & set(all_series(evidence))
    result = emulated_devices(evidence)
    assert sum(row.runs for row in result.round_trips) == len(boards)
    assert all(row.latency_us > 0 and row.device == "Board" for row in result.round_trips)
    assert result.devices == ()


def test_counted_instructions_give_the_bounds_of_the_time(tmp_path):
    evidence = evidence_with(tmp_path, instructions=800.0)
    is_board = is_emulated(evidence.usable)
    assert (column(evidence.usable, "instructions_per_block")[is_board] == 800.0).all()
    (device,) = emulated_devices(evidence).devices
    assert (device.device, device.runs) == ("Board", int(is_board.sum()))
    assert (device.instructions, device.deviation, device.clock_mhz) == (800.0, 0.0, 25.0)
    assert device.time_us is not None
    assert (device.time_us.low, device.time_us.high) == pytest.approx((16.0, 96.0))


def test_a_device_without_a_clock_has_instructions_and_no_estimate(tmp_path):
    evidence = evidence_with(tmp_path, instructions=800.0, board={"device": "Machine"})
    (device,) = emulated_devices(evidence).devices
    assert (device.device, device.instructions) == ("Machine", 800.0)
    assert (device.clock_mhz, device.time_us) == (None, None)


def test_a_campaign_without_emulated_devices_says_nothing_of_them(tmp_path):
    evidence = evidence_with(tmp_path, ())
    assert emulated_devices(evidence) == EmulatedDevices()
    assert "emulated" not in headline(evidence, answer_all(evidence))


BOARDS = (RoundTrips((), "Board", 4, 120.0),)


def test_the_section_has_instructions_and_calls_the_time_an_estimate():
    device = Device("Board", 4, 800.0, 0.5, 25.0, Band(16.0, 96.0))
    section = topic_page("emulated_devices", EmulatedDevices((device,), BOARDS)).section()
    assert section is not None and section.id == "emulated-devices"
    _, table, fold = section.parts
    assert table.rows == [
        {"device": "Board", "runs": 4, "instructions": 800.0, "deviation": 0.5, "clock": 25.0,
         "time_us": Band(16.0, 96.0)},
    ]  # fmt: skip
    columns = {column.key: column for column in table.columns}
    assert columns["instructions"].kind == "measured" and columns["instructions"].digits == 4
    assert columns["time_us"].kind == "estimate"
    assert [row["latency_us"] for row in fold.parts[0].rows] == [120.0]


def test_without_counted_instructions_the_section_says_so():
    assert topic_page("emulated_devices", EmulatedDevices()).section() is None
    section = topic_page("emulated_devices", EmulatedDevices((), BOARDS)).section()
    assert section is not None
    assert section.parts[1].key == "emulated_devices.devices"
