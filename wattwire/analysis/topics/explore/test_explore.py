"""Tests of the table of runs that a reader explores, and of the section that shows it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wattwire.analysis.carried import too_few
from wattwire.analysis.dataset import Evidence, all_levels, by_treatment, gather
from wattwire.analysis.responses import LATENCY_P50
from wattwire.analysis.topics.audit.numbers import Audit, audit
from wattwire.analysis.topics.explore import numbers
from wattwire.analysis.topics.explore.numbers import Explore, explore
from wattwire.analysis.topics.explore.run_table import RunTable
from wattwire.report.html.explorer import Explorer
from wattwire.report.parts import Figure, Fold
from wattwire.report.tests.synthetic import FAST, SLOW, Shape, write_campaign
from wattwire.report.topic_page import topic_page
from wattwire.store import Campaign


@pytest.fixture(scope="module")
def evidence(tmp_path_factory) -> Evidence:
    shape = Shape(
        blocks=3, duration_s=1.0, unknown_runs=(4,), b_over_a=1.0, loss_share=0.3, died_runs=(7,)
    )
    return gather(Campaign(write_campaign(tmp_path_factory.mktemp("e") / "campaign", shape)))


def table_of(evidence: Evidence) -> RunTable:
    table = explore(evidence, Audit()).table
    assert table is not None
    return table


def test_every_run_of_the_design_is_there_once_with_its_levels_and_numbers(evidence) -> None:
    table = table_of(evidence)
    runs = evidence.usable.height + evidence.excluded.height
    assert len(table.run) == len(set(table.run)) == runs == 72
    assert list(table.order) == sorted(table.order)
    assert table.used.count("excluded") == 1 == table.excluded
    assert table.factors[0].name == "language" and set(table.levels[0]) == {FAST, SLOW}
    assert {entry.level for entry in table.factors[0].levels} == {FAST, SLOW}
    row_of = {run: row for row, run in enumerate(evidence.attempts["run"].to_list())}
    is_any_too_few = False
    for response, values in zip(table.responses, table.values, strict=True):
        expected = evidence.attempts[response.column].to_list()
        few = too_few(evidence.attempts, response.column)
        is_any_too_few |= bool(few.any())
        for run, value in zip(table.run, values, strict=True):
            known = expected[row_of[run]]
            if known is None or not np.isfinite(known) or few[row_of[run]]:
                assert value is None
            else:
                assert value == pytest.approx(known, rel=1e-4)
    assert is_any_too_few


def test_a_treatment_has_the_same_title_by_its_levels_and_by_their_words(evidence) -> None:
    for key, frame in by_treatment(evidence, evidence.usable).items():
        title = evidence.title_of_key(key)
        assert title == evidence.treatment_title(all_levels(evidence.runs[frame["run"][0]]))
        assert " client" in title


def test_requested_responses_come_first_and_unmeasured_ones_are_left_out(evidence) -> None:
    responses = table_of(evidence).responses
    assert [response.column for response in responses[:3]] == [
        "cpu_us_per_message", "memory_kib_per_node", "latency_p50_us",
    ]  # fmt: skip
    assert not any(response.energy for response in responses), "no meter measured energy"


def test_a_table_of_too_many_runs_keeps_each_treatments_share(evidence, monkeypatch) -> None:
    monkeypatch.setattr(numbers, "RUNS_MAX", 24)
    table = table_of(evidence)
    assert len(table.run) == 24 and list(table.order) == sorted(table.order)
    assert {table.treatment.count(title) for title in table.treatment} == {1}


def test_the_page_has_the_chart_of_runs_and_print_ready_figures(evidence) -> None:
    result = explore(evidence, audit(evidence))
    section = topic_page("explore", result).section()
    assert section is not None and section.id == "explore"
    _, chart, fold = section.parts
    assert isinstance(chart, Explorer) and isinstance(fold, Fold)
    assert [kind.name for kind in chart.kinds] == [
        "box", "violin", "ecdf", "interaction", "scatter", "heat", "order",
    ]  # fmt: skip
    assert chart.data["begin"] == {"tone": 0, "across": 2, "panel": 1}
    names = [part.id for part in fold.parts if isinstance(part, Figure)]
    # 12 runs per group are too few for violins. The audit trail already has the run order.
    assert names == [f"{kind}-cpu-us-per-message" for kind in ("box", "interaction", "heat")] + [
        "scatter-cpu-us-per-message"
    ]
    # One run died without costs. A note reports the missing run.
    assert result.overview is not None and result.overview.missing == 1
    assert "Without this value: 1 valid run." in fold.parts[0].caption
    shared = [part.spec["datasets"]["points"] for part in fold.parts]
    assert len(shared[0]) == evidence.usable.height - 1
    assert shared[1] is shared[2], "the page stores the points of two charts once"


def test_a_response_that_the_audit_trail_does_not_draw_is_drawn_in_run_order(evidence) -> None:
    # The audit trail draws CPU time, because it was measured.
    of_latency = replace(evidence.study.questions[0], responses=(LATENCY_P50.column,))
    asked = replace(evidence, study=replace(evidence.study, questions=(of_latency,)))
    _, _, fold = topic_page("explore", explore(asked, audit(asked))).section().parts
    assert "order-latency-p50-us" in [part.id for part in fold.parts]


def test_the_page_states_that_the_chart_has_not_all_runs(evidence) -> None:
    table = table_of(evidence)
    (_, _, (_, text)) = topic_page("explore", Explore(table, 72, runs_max=24)).parts
    assert (text.tone, text.key, text.value) == ("note", "explore.runs", "72")
    assert "about 24 of 72 runs" in text.words
    (_, *others) = topic_page("explore", Explore(table, 72, runs_max=72)).parts
    assert len(others) == 1


def test_without_varied_factors_there_is_no_section(tmp_path) -> None:
    campaign = Campaign(write_campaign(tmp_path / "c", Shape(blocks=1, duration_s=1.0)))
    alone = replace(gather(campaign), factors={"language": (FAST,)})
    assert explore(alone, Audit()) == Explore()
    assert topic_page("explore", Explore()).section() is None
