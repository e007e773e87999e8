"""Tests of the page's rows with questions, runs and costs per cell on a simulated campaign."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wattwire.report.page import build_report
from wattwire.report.tests.synthetic import (
    FAST,
    MEMORY_KIB,
    RUN_S,
    SLOW,
    WAITED_S,
    Shape,
    write_campaign,
)
from wattwire.report.tests.test_page import built, table
from wattwire.store import Campaign

SMALL: dict[str, Any] = {"blocks": 2, "patterns": ("topic",), "clients": (1,)}
BY_INTERVAL = {
    "plan": {"blocks": 2, "seed": 7, "primary": "interval_s", "duration_s": 20.0},
    "fixed": {"middleware": "loopback", "payload_bytes": 1024, "rate_hz": 50.0},
}


def facts_of(page) -> dict[str, str]:
    return {row["what"]: row["value"] for row in table(page, "what-was-run")}


def of_roles(rows):
    """Return the rows of a table of costs without the sums over all roles."""
    return [row for row in rows if row["role"] != "all"]


def test_costs_have_a_row_for_each_cell_and_role_whatever_the_primary_factor_is(tmp_path):
    _, page = built(tmp_path / "campaign", Shape(**SMALL, study=BY_INTERVAL))
    for name in ("costs-by-role", "energy-estimate"):
        rows = [(r["level"], r["cell"], r["role"]) for r in of_roles(table(page, name))]
        assert rows == [
            (f"{interval} s", f"loopback/{language}", role)
            for interval in ("0.05", "0.2")
            for language in (SLOW, FAST)
            for role in ("publisher", "subscriber")
        ]
    for row in of_roles(table(page, "costs-by-role")):
        assert row["runs"] == "2"
        assert float(row["memory_kib"]) == pytest.approx(MEMORY_KIB[row["cell"].split("/")[1]])


def test_a_primary_factor_that_the_cell_says_has_no_column_beside_it(tmp_path):
    _, page = built(tmp_path / "campaign", Shape(**SMALL))
    rows = of_roles(table(page, "costs-by-role"))
    assert "level" not in rows[0]
    assert list(dict.fromkeys((r["cell"], r["role"]) for r in rows)) == [
        (f"loopback/{language}", role)
        for language in (FAST, SLOW)
        for role in ("publisher", "subscriber")
    ]


def test_time_waited_and_time_by_the_wall_clock_stand_beside_the_time_measured(tmp_path):
    _, page = built(tmp_path / "campaign", Shape(**SMALL))
    facts = facts_of(page)
    runs = 8
    measured_s = runs * (0.4 + 20.0 + 0.3)
    wall_s = runs * (RUN_S + WAITED_S)
    assert facts["measured time, sum of all attempts"] == _minutes(measured_s)
    assert facts["additional time spent waiting for a quiet machine"] == f"{runs * WAITED_S:.1f} s"
    assert facts[
        "wall-clock time from first to last run, including waiting and pauses"
    ] == _minutes(wall_s)


def _minutes(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def test_runs_of_the_design_control_runs_and_unusable_ones_are_counted_apart(tmp_path):
    shape = Shape(**SMALL, b_over_a=1.0, unknown_runs=(1,), drop_runs=(7,))
    words, page = built(tmp_path / "campaign", shape)
    told = "8 runs in the design: 6 valid, 1 excluded, 1 not tried yet; "
    assert told + "6 control runs: 6 valid, 0 not valid." in words.text
    facts = facts_of(page)
    assert facts["measured runs of the design"] == ("8: 6 valid, 1 excluded, 1 not tried yet")
    assert facts["control runs"] == "6: 6 valid, 0 not valid"
    assert words.heading.startswith("Incomplete: the campaign has 7 of 8 runs of the design")


def test_control_runs_are_in_no_count_of_runs_set_aside(tmp_path):
    words, _ = built(tmp_path / "campaign", Shape(**SMALL, b_over_a=1.0, unknown_runs=(1,)))
    assert "Excluded: 1 of 8 runs. By language: " in words.text
    tallies = words.text.split("By language: ")[1].split(" (")[0]
    assert sorted(part.split(" of ")[1] for part in tallies.split("; ")) == ["4", "4"]


def test_payloads_carry_their_unit_and_what_all_runs_share_is_said(tmp_path):
    _, page = built(tmp_path / "campaign", Shape(**SMALL, study=BY_INTERVAL))
    facts = facts_of(page)
    assert facts["in all runs"] == "loopback, 1024 B, 50 Hz"
    assert facts["interval"] == "0.05 s, 0.2 s"
    varied = {"factors": {"language": [FAST, SLOW], "payload_bytes": [64, 1024]}}
    _, page = built(tmp_path / "varied", Shape(**SMALL, study=varied))
    assert facts_of(page)["payload"] == "64 B, 1024 B"


def part_of_made_up(folder, **study):
    """Return text and path of the page of a campaign that was restricted to the slow language."""
    shape = Shape(**SMALL, skip={"language": FAST}, study=study)
    campaign = write_campaign(folder, shape)
    kept = [row for row in json.loads((campaign / "plan.json").read_text()) if row["run"]]
    (campaign / "plan.json").write_text(json.dumps(kept))
    document = json.loads((campaign / "study.json").read_text())
    document["only"] = {"said": f"language={SLOW}", "unasked": 2}
    (campaign / "study.json").write_text(json.dumps(document))
    page = build_report(Campaign(campaign))
    return page.read_text("utf-8"), page


def test_the_part_of_the_design_that_nobody_asked_for_is_named_once_and_listed_nowhere(tmp_path):
    text, page = part_of_made_up(tmp_path / "c")
    facts = facts_of(page)
    told = f"language={SLOW}; 2 treatments of the design not requested"
    assert facts["part of the design"] == told
    assert facts["language"] == "Python" and facts["treatments skipped"] == "0"
    assert text.count("covers a part of the study") == 1
    assert "no valid run" not in text and "Swift" not in text
    tables = page.parent / "tables"
    assert [path.name for path in tables.glob("*.csv") if "Swift" in path.read_text()] == []


def test_a_limit_of_a_part_that_nobody_asked_for_is_not_checked(tmp_path):
    limits = [
        {"response": "cpu_us_per_message", "max": 1e9, "where": {"language": language}}
        for language in (FAST, SLOW)
    ]
    _, page = part_of_made_up(tmp_path / "c", limit=limits)
    assert len(table(page, "limits")) == 2  # for the slow language, at two intervals
