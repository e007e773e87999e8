"""Tests of the section on papers' tests, on campaigns with known effects."""

from __future__ import annotations

import pytest

from wattwire.analysis.dataset import gather
from wattwire.report.parts import Fold, tables_of
from wattwire.report.sections import paper_path
from wattwire.report.tests.synthetic import FAST, SLOW, Shape, write_campaign
from wattwire.store import Campaign


def told(folder, **study):
    """Return the section, its tables by id, and its text."""
    shape = Shape(blocks=4, duration_s=4.0, patterns=("topic", "service"), study=study)
    evidence = gather(Campaign(write_campaign(folder / "campaign", shape)))
    part = paper_path.section(evidence)
    return part, {table.id: table for table in tables_of(part.parts)}


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory):
    walks = [
        {"response": "cpu", "by": ["language", "interval_s"], "where": {"pattern": "topic"}},
        {"response": "cpu", "by": ["clients"], "where": {"language": SLOW, "pattern": ["topic"]}},
        {"response": "cpu", "by": ["language"]},
        {"response": "memory", "by": ["clients", "middleware"]},  # a fixed factor
    ]
    return told(tmp_path_factory.mktemp("paper"), paper_path=walks)


def words_of(part) -> str:
    def flat(parts):
        for one in parts:
            if isinstance(one, Fold):
                yield one.title
                yield from flat(one.parts)
            elif one.shape == "text":
                yield one.words

    return " ".join(flat(part.parts))


def test_all_of_it_is_folded_away_under_its_own_heading(ordinary) -> None:
    part, _ = ordinary
    assert part.title == "Tests used in published papers"
    assert [one.shape for one in part.parts] == ["text", "fold"]


def test_each_answers_response_is_walked_by_each_of_its_factors_and_what_the_study_adds(ordinary):
    _, tables = ordinary
    rows = {(row["response"], row["by"]): row for row in tables["paper-path"].rows}
    asked = [("CPU time per message", "language"), ("median latency", "clients")]
    added = [
        ("CPU time per message", "language and interval (only topic)"),
        ("CPU time per message", "clients (only Python; topic)"),
    ]
    assert set(asked + added) <= set(rows)
    assert rows[added[0]]["groups"] == 4 and rows[added[0]]["runs"] == 4 * 4 * 2
    assert rows[added[1]]["groups"] == 2 and rows[added[1]]["runs"] == 2 * 4 * 2
    assert rows[("memory per node", "clients and middleware")]["groups"] == 2
    # The third requested analysis equals one of the first, so it is computed once.
    assert len(tables["paper-path"].rows) == len(rows) == 8


def test_a_planted_difference_is_found_and_its_steps_stand_there(ordinary) -> None:
    _, tables = ordinary
    (row,) = [
        row
        for row in tables["paper-path"].rows
        if row["response"] == "CPU time per message" and row["by"] == "language"
    ]
    assert row["p"] < 1e-10
    steps = tables["paper-path-1-steps"].rows
    assert {step["step"] for step in steps} >= {"Shapiro–Wilk", "IQR outliers", "Brown–Forsythe"}
    assert {step["group"] for step in steps if step["step"] == "Shapiro–Wilk"} == {
        "Swift",
        "Python",
    }


def test_error_rates_and_what_blocks_would_explain_stand_beside(ordinary) -> None:
    part, tables = ordinary
    assert "ignore" in words_of(part) and "unpaired" in words_of(part)
    rates = tables["paper-path-rates"]
    assert {row["groups"] for row in rates.rows} == {2, 3, 5} - {3}
    assert "simulated campaigns" in rates.note and len({row["model"] for row in rates.rows}) == 5
    by_language = tables["paper-path"].rows[0]["blocks"]
    # The simulated campaign drifts by 10 % per block, so blocks explain most residual variance.
    assert int(by_language.split()[0].rstrip("%").strip()) > 30


def test_pooled_factors_are_named(ordinary) -> None:
    part, _ = ordinary
    assert "Each group pools all levels of pattern, interval and clients" in words_of(part)


def test_questions_over_several_factors_get_their_interactions_by_aligned_ranks(ordinary) -> None:
    _, tables = ordinary
    table = tables["paper-path-aligned"]
    of_latency = {r["effect"]: r["p"] for r in table.rows if r["response"] == "median latency"}
    assert len(of_latency) == 7 and "language × interval × clients" in of_latency
    assert of_latency["language"] < 1e-10
    added = {r["effect"] for r in table.rows if r["by"] == "language and interval (only topic)"}
    assert added == {"language", "interval", "language × interval"}
    assert "not a test of ratios" in table.note


def test_percentiles_of_too_few_messages_are_not_tested(tmp_path) -> None:
    shape = Shape(blocks=3, duration_s=1.0, patterns=("topic",), intervals_s=(0.2,), clients=(1,))
    part = paper_path.section(gather(Campaign(write_campaign(tmp_path / "campaign", shape))))
    (table,) = [table for table in tables_of(part.parts) if table.id == "paper-path"]
    assert not any("latency" in row["response"] for row in table.rows)
    assert "Median latency: without 6 of 6 runs, because there are only 5 " in words_of(part)


def test_energy_that_nobody_measured_is_refused(ordinary) -> None:
    part, tables = ordinary
    assert "Energy per message: not available, because no meter measured energy." in words_of(part)
    assert all("energy" not in row["response"] for row in tables["paper-path"].rows)


def test_three_runs_a_group_say_that_ranks_cannot_reject(tmp_path) -> None:
    shape = Shape(blocks=3, duration_s=2.0, patterns=("topic",), intervals_s=(0.2,), clients=(1,))
    evidence = gather(Campaign(write_campaign(tmp_path / "campaign", shape)))
    evidence.usable = evidence.usable.with_columns(
        # No power transform makes two equal values and an outlier normal.
        cpu_us_per_message=(evidence.usable["block"] == 3).cast(float) * 50.0
        + (evidence.usable["factor.language"] == FAST).cast(float)
        + 1.0
    )
    (table,) = [
        one for one in tables_of(paper_path.section(evidence).parts) if one.id == "paper-path"
    ]
    row = next(row for row in table.rows if row["response"] == "CPU time per message")
    assert row["test"].startswith("Kruskal–Wallis,") and row["pairs"].startswith("cannot reject")


def test_both_results_stand_in_the_table_wherever_outliers_were_removed(tmp_path) -> None:
    shape = Shape(blocks=12, duration_s=8.0, patterns=("topic",), intervals_s=(0.2,), clients=(1,))
    evidence = gather(Campaign(write_campaign(tmp_path / "campaign", shape)))
    block, fast = evidence.usable["block"], evidence.usable["factor.language"] == FAST
    evidence.usable = evidence.usable.with_columns(
        cpu_us_per_message=100.0 + block + 500.0 * ((block == 12) & fast),
        # One run of 24 differs. Without it, all values are equal.
        latency_p50_us=100.0 + ((block == 12) & fast).cast(float),
    )
    part = paper_path.section(evidence)
    tables = {table.id: table for table in tables_of(part.parts)}
    rows = {row["response"]: row for row in tables["paper-path"].rows}
    row = rows["CPU time per message"]
    assert row["removed"].startswith("1 (") and 0 < row["p"] < 1
    steps = tables[f"paper-path-{list(rows).index('CPU time per message') + 1}-steps"].rows
    after = [one for one in steps if one["runs"] == "outliers removed" and one["number"]][-1]
    assert row["p_kept"] == after["p"] != row["p"]
    for one in tables["paper-path"].rows:
        assert (one.get("p_kept") is not None) == (one["removed"] != "none"), one
        assert set(one) <= {column.key for column in tables["paper-path"].columns} | {"test_kept"}
    told = words_of(part)
    assert "removing outliers leaves too few values to test" in told and "reverses the" not in told


def test_a_campaign_without_a_usable_run_has_no_such_part(tmp_path) -> None:
    shape = Shape(blocks=1, duration_s=2.0, patterns=("topic",), intervals_s=(0.2,), clients=(1,),
                  unknown_runs=(0, 1))  # fmt: skip
    evidence = gather(Campaign(write_campaign(tmp_path / "campaign", shape)))
    assert paper_path.section(evidence) is None
