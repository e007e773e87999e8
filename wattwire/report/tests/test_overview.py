"""Tests of means by two factors, which pool only combinations that every cell contains."""

from __future__ import annotations

from typing import Any

from wattwire.analysis.dataset import Evidence, gather
from wattwire.analysis.responses import LATENCY_P50
from wattwire.report.figures.overview import _matched, _points, drawn, layout_of
from wattwire.report.tests.synthetic import Shape, write_campaign
from wattwire.store import Campaign

KINDS = dict.fromkeys(("box", "violin", "interaction", "heat", "scatter", "order"), "Says.")


def matched(evidence: Evidence) -> tuple[list[dict[str, Any]], list[dict[str, Any]], str]:
    layout = layout_of(evidence)
    points = _points(evidence, layout, LATENCY_P50, None)
    kept, note = _matched(evidence, layout, points)
    return points, kept, note


def test_a_combination_that_one_cell_lacks_is_in_no_mean(tmp_path: Any) -> None:
    """A missing combination, such as MQTT without C++, is also omitted from the other cells."""
    shape = Shape(
        blocks=2, patterns=("topic",), intervals_s=(0.05, 0.2, 0.5), clients=(1, 2), duration_s=4.0,
        skip={"interval_s": 0.5, "clients": 2},
    )  # fmt: skip
    evidence = gather(Campaign(write_campaign(tmp_path / "c", shape)))
    layout = layout_of(evidence)
    assert layout.panel is not None
    points = _points(evidence, layout, LATENCY_P50, None)
    for point in points:
        point["panel"] = ""
    kept, note = _matched(evidence, layout.__class__(layout.tone, layout.across, None), points)
    other = "clients" if layout.across == "interval_s" else "interval_s"
    levels = {run["run"]: run["treatment"][other] for run in evidence.designed if run["run"]}
    gone = {levels[point["run"]] for point in points if point not in kept}
    assert gone == {2 if other == "clients" else 0.5}
    assert f"; {len(points) - len(kept)} other runs omitted." in note


def test_a_whole_factorial_loses_no_run(tmp_path: Any) -> None:
    shape = Shape(blocks=2, patterns=("topic",), clients=(1, 2), duration_s=4.0)
    evidence = gather(Campaign(write_campaign(tmp_path / "c", shape)))
    points, kept, note = matched(evidence)
    assert kept == points and "omitted" not in note
    assert {figure.id.split("-")[0] for figure in drawn(evidence, (LATENCY_P50,), KINDS)} >= {
        "interaction", "heat",
    }  # fmt: skip


def test_each_treatment_has_a_row_of_its_own(tmp_path: Any) -> None:
    """The colour shows one of four factors, the panels another, and the row names the others."""
    shape = Shape(
        blocks=2, patterns=("topic", "service"), intervals_s=(0.05, 0.2), clients=(1, 2),
        duration_s=4.0,
    )  # fmt: skip
    evidence = gather(Campaign(write_campaign(tmp_path / "c", shape)))
    chart = next(f for f in drawn(evidence, (LATENCY_P50,), KINDS) if f.id.startswith("box"))
    points = chart.spec["datasets"]["points"]
    of_row: dict[tuple[str, str], set[str]] = {}
    for point in points:
        of_row.setdefault((point["panel"], point["row"]), set()).add(point["treatment"])
    assert all(len(treatments) == 1 for treatments in of_row.values())
    assert len(of_row) == len({point["treatment"] for point in points}) > 4
    rows = chart.spec["spec"]["layer"][0]["encoding"]["y"]["sort"]
    assert {row for _, row in of_row} == set(rows)
    assert rows[0].split(", ")[1:] == rows[1].split(", ")[1:], "colours are next to each other"
