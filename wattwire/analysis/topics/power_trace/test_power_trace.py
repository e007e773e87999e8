"""Test that a trace with planted power gives the planted energy, and that bad ones are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from wattwire.analysis.dataset import gather
from wattwire.analysis.topics.power_trace.numbers import PowerTrace, power_trace
from wattwire.cli.main import main
from wattwire.model.errors import EXIT_USAGE
from wattwire.model.outside_meters import CHIPS
from wattwire.report.tests.synthetic import SECOND, Shape, write_campaign
from wattwire.report.topic_page import topic_page
from wattwire.stats.series.alignment import chips
from wattwire.store import Campaign
from wattwire.store.campaign import ALIGNMENT

CLASS = ("--trace-class", "0.5 % + 0.1 W")
RATE = 200e-6
PERIOD_S = 0.2


def planted_times(campaign: Campaign) -> tuple[float, float, list[tuple[float, float]]]:
    """Plant the loads of a campaign. Return their begins and the windows, in s on our clock."""
    runs = [row["run"] for row in campaign.plan if row["run"]]
    windows = [campaign.run(run)["window"] for run in runs]
    spans = sorted((w["start_ns"] / SECOND, w["end_ns"] / SECOND) for w in windows)
    begins = (spans[0][0] - 140.0, spans[-1][1] + 10.0)
    loads = []
    for begin in begins:
        boundaries = [round((begin + 2 * k) * SECOND) for k in range(CHIPS + 1)]
        loads.append({"boot_id": "b", "levels": list(chips()), "boundaries_ns": boundaries})
    campaign.write_json(ALIGNMENT, {"loads": loads})
    return *begins, spans


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    shape = Shape(blocks=2, intervals_s=(0.05,), clients=(1,), patterns=("topic",))
    return Campaign(write_campaign(tmp_path / "c", shape))


def rows_of(campaign: Campaign) -> list[tuple[float, float]]:
    """Return the readings (s on another clock, W) of a machine that the loads use."""
    first_s, last_s, spans = planted_times(campaign)
    ours = np.arange(first_s - 20, last_s + 2 * CHIPS + 20, PERIOD_S)
    load = np.zeros(ours.size)
    for begin in (first_s, last_s):
        chip = np.floor((ours - PERIOD_S / 2 - begin) / 2).astype(int)
        inside = (chip >= 0) & (chip < CHIPS)
        load[inside] = np.array(chips())[chip[inside]]
    for begin, end in spans:
        load[(ours > begin) & (ours <= end)] = 0.5
    noise = np.random.default_rng(1).normal(0, 0.3, ours.size)
    powers = np.round(10 + 12 * load + noise, 1)
    return list(zip((ours - ours[0]) * (1 + RATE) + 3.0, powers, strict=True))


def written(path: Path, rows: list[tuple[float, float]], header: str = "time (s), W") -> Path:
    lines = [header, *(f"{t:.4f},{p:.4f}" for t, p in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_trace_gives_the_planted_energy_within_its_bound(
    campaign: Campaign, tmp_path: Path
) -> None:
    milliwatts = [(t, 1000 * p) for t, p in rows_of(campaign)]
    trace = written(tmp_path / "t.csv", milliwatts, "time (s),power (mW)")
    main(["report", str(campaign.path), "--trace", str(trace), *CLASS])
    result = power_trace(gather(Campaign(campaign.path)))
    assert result.file == "t.csv" and result.rate_ppm == pytest.approx(200, abs=150)
    assert result.runs and all(clock.half_width_s <= 0.1 for clock in result.clocks)
    for run in result.runs:
        assert run.joules is not None and run.bound_j is not None, run.reason
        assert abs(run.joules - 16.0 * run.window_s) <= run.bound_j
        assert run.bound_j == pytest.approx(run.edges_j + run.resolution_j + run.class_j)
        assert run.bound_j <= 0.05 * run.joules
    section = topic_page("power_trace", result).section()
    assert section is not None
    assert "put in after the campaign" in section.parts[0].words
    assert section.parts[-1].rows[0]["bound_j"] == result.runs[0].bound_j


def test_a_campaign_without_a_trace_has_no_section(campaign: Campaign) -> None:
    assert power_trace(gather(campaign)) == PowerTrace()
    assert topic_page("power_trace", PowerTrace()).section() is None


def test_a_stored_trace_that_cannot_be_aligned_any_more_has_a_reason_on_the_page(
    campaign: Campaign, tmp_path: Path
) -> None:
    trace = written(tmp_path / "t.csv", rows_of(campaign))
    main(["report", str(campaign.path), "--trace", str(trace), *CLASS])
    first, last = campaign.alignment_loads() or ()
    # A resumed campaign makes another load, which is later than the end of the trace.
    later_ns = [at + 900 * SECOND for at in last["boundaries_ns"]]
    campaign.write_json(ALIGNMENT, {"loads": [first, {**last, "boundaries_ns": later_ns}]})
    result = power_trace(gather(Campaign(campaign.path)))
    assert result.file == "t.csv" and not result.runs and "the trace lasts" in result.reason
    (sentence,) = topic_page("power_trace", result).section().parts
    assert result.reason in sentence.words and "t.csv" in sentence.words


BAD: dict[str, tuple[Callable, str, str]] = {
    "without the load": (lambda rows: [(t, 10 + t % 0.3) for t, _ in rows], "time_s,W", "contain"),
    "without a unit": (lambda rows: [(t, 1e3 * p) for t, p in rows], "time_s,power", "unit"),
    "shorter than the run": (lambda rows: rows[: len(rows) // 2], "time_s,W", "the trace lasts"),
    "backwards": (lambda rows: [*rows[:50], *rows[:50]], "time_s,W", "line 52"),
    "of a few readings": (lambda rows: rows[:5], "time_s,W", "at least 20"),
    "of two channels": (lambda rows: rows, "time_s,time_ms", "two columns of a time"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_trace_is_refused_and_not_stored(
    campaign: Campaign, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    change, header, text = BAD[name]
    trace = written(tmp_path / "t.csv", change(rows_of(campaign)), header)
    assert main(["report", str(campaign.path), "--trace", str(trace), *CLASS]) == EXIT_USAGE
    assert text in capsys.readouterr().err
    assert campaign.trace() is None


def test_a_run_in_a_gap_of_the_trace_has_a_reason_and_no_energy(
    campaign: Campaign, tmp_path: Path
) -> None:
    rows = rows_of(campaign)
    _, _, spans = planted_times(campaign)
    first_s = spans[0][0] - 140.0 - 20
    gap = (spans[0][0] - first_s + 8, spans[0][0] - first_s + 12)
    kept = [(t, p) for t, p in rows if not gap[0] < t < gap[1]]
    trace = written(tmp_path / "t.csv", kept)
    main(["report", str(campaign.path), "--trace", str(trace), *CLASS])
    runs = power_trace(gather(Campaign(campaign.path))).runs
    assert runs and all("a gap of" in run.reason and run.joules is None for run in runs)


@pytest.mark.parametrize("text", ["good", "5", "-1 %"])
def test_a_class_that_is_no_number_is_refused(
    campaign: Campaign, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    trace = written(tmp_path / "t.csv", rows_of(campaign))
    options = ["--trace", str(trace), f"--trace-class={text}"]
    assert main(["report", str(campaign.path), *options]) == EXIT_USAGE
    assert f"--trace-class: found {text!r}" in capsys.readouterr().err


def test_a_campaign_without_loads_cannot_take_a_trace(
    campaign: Campaign, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = written(tmp_path / "t.csv", rows_of(campaign))
    (campaign.path / ALIGNMENT).unlink()
    assert main(["report", str(campaign.path), "--trace", str(trace), *CLASS]) == EXIT_USAGE
    assert "--align" in capsys.readouterr().err
