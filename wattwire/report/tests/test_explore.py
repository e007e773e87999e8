"""Tests of runs, levels, responses and chart templates in the interactive section's data."""

from __future__ import annotations

import json
import re
from importlib import resources

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattwire.analysis.carried import too_few
from wattwire.analysis.dataset import Evidence, all_levels, by_treatment, gather
from wattwire.report.figures import finish, overview
from wattwire.report.html.columnar_json import packed, packed_charts, script_json
from wattwire.report.parts import Column, Figure, Fold, Table
from wattwire.report.sections import explore
from wattwire.report.tests.synthetic import FAST, SLOW, Shape, unpacked, write_campaign
from wattwire.store import Campaign

SCRIPT = (resources.files("wattwire.report.html") / "templates" / "explore.js").read_text("utf-8")


@pytest.fixture(scope="module")
def evidence(tmp_path_factory) -> Evidence:
    shape = Shape(
        blocks=3, duration_s=1.0, unknown_runs=(4,), b_over_a=1.0, loss_share=0.3, died_runs=(7,)
    )
    return gather(Campaign(write_campaign(tmp_path_factory.mktemp("e") / "campaign", shape)))


def explorer(evidence: Evidence) -> explore.Explorer:
    section = explore.section(evidence)
    assert section is not None
    (found,) = [part for part in section.parts if isinstance(part, explore.Explorer)]
    return found


def test_every_run_of_the_design_stands_there_once_with_its_levels_and_numbers(evidence) -> None:
    made = explorer(evidence)
    rows = unpacked(json.loads(made.json)["runs"])
    counting = evidence.usable.height + evidence.excluded.height
    assert len(rows) == len({row["run"] for row in rows}) == counting == 72
    assert [row["order"] for row in rows] == sorted(row["order"] for row in rows)
    assert sum(row["used"] == "excluded" for row in rows) == 1 == made.excluded
    assert {row["f0"] for row in rows} == {FAST, SLOW}
    summary = {row["run"]: row for row in evidence.attempts.iter_rows(named=True)}
    names = evidence.attempts["run"].to_list()
    few = {
        each.column: dict(zip(names, too_few(evidence.attempts, each.column), strict=True))
        for each in made.responses
    }
    assert any(any(runs.values()) for runs in few.values())
    for row in rows:
        for at, column in enumerate(few):
            expected = summary[row["run"]][column]
            if expected is None or not np.isfinite(expected) or few[column][row["run"]]:
                assert row[f"r{at}"] is None
            else:
                assert row[f"r{at}"] == pytest.approx(expected, rel=1e-4)


def test_a_treatment_has_the_same_title_by_its_levels_and_by_their_words(evidence) -> None:
    for key, frame in by_treatment(evidence, evidence.usable).items():
        title = evidence.treatment_title(dict(zip(evidence.varied, key, strict=True)))
        assert title == evidence.treatment_title(all_levels(evidence.runs[frame["run"][0]]))
        assert " client" in title


def test_responses_asked_for_come_first_and_carry_their_unit(evidence) -> None:
    made = explorer(evidence)
    assert [each.column for each in made.responses[:3]] == [
        "cpu_us_per_message", "memory_kib_per_node", "latency_p50_us",
    ]  # fmt: skip
    assert made.data["responses"][0]["title"] == "CPU time per message (µs)"
    assert not any(each.energy for each in made.responses), "no meter measured energy"


def test_every_word_of_a_pattern_is_one_that_the_page_fills_in(evidence) -> None:
    known = set(re.findall(r'"(@[a-z]+)":', SCRIPT))
    patterns = json.dumps(explorer(evidence).data["kinds"])
    used = set(re.findall(r"@[a-z]+", patterns))
    assert used and used <= known
    assert "datasets" not in patterns and '"config"' not in patterns


def test_a_name_of_a_level_cannot_end_the_script_it_stands_in(tmp_path) -> None:
    study = {"titles": {"language": {FAST: "</script><b>x"}}}
    shape = Shape(blocks=1, duration_s=1.0, patterns=("topic",), study=study)
    found = explorer(gather(Campaign(write_campaign(tmp_path / "campaign", shape))))
    assert "</script" not in found.json and "\\u003c/script" in found.json


def test_figures_to_print_follow_from_the_design(evidence) -> None:
    section = explore.section(evidence)
    assert section is not None
    (fold,) = [part for part in section.parts if isinstance(part, Fold)]
    names = [part.id for part in fold.parts if isinstance(part, Figure)]
    # 12 runs per group are too few for violins. The audit trail already has the run order.
    assert names == [f"{kind}-cpu-us-per-message" for kind in ("box", "interaction", "heat")] + [
        "scatter-cpu-us-per-message"
    ]
    layout = overview.layout_of(evidence)
    assert (layout.tone, layout.across, layout.panel) == ("language", "interval_s", "pattern")
    assert explorer(evidence).data["begin"] == {"tone": 0, "across": 2, "panel": 1}
    # One run died without costs. A note reports the missing run.
    assert "Without this value: 1 valid run." in fold.parts[0].caption
    points = fold.parts[0].spec["datasets"]["points"]
    assert len(points) == evidence.usable.height - 1


def test_rows_of_tables_say_their_levels(evidence) -> None:
    column = Column("interval_s", "interval", factor="interval_s")
    made = Table("t", "T", [column, Column("n", "n", "measured")], [])
    assert json.loads(made.levels({"interval_s": "0.05", "n": 3})) == {"interval_s": "0.05"}
    assert made.levels({"interval_s": None, "n": 3}) == ""


def test_a_chart_without_points_stays_a_pattern() -> None:
    assert "datasets" not in finish({"mark": {"type": "point"}}, None)
    assert finish({"mark": {"type": "point"}}, [])["datasets"] == {"points": []}


@given(
    st.lists(
        st.fixed_dictionaries(
            {"a": st.sampled_from(["x", "y", "</script>"]), "b": st.none() | st.floats(0, 9)},
            optional={"c": st.integers(0, 3), "d": st.text(max_size=2) | st.booleans()},
        ),
        max_size=12,
    )
)
def test_rows_come_back_from_their_packing(rows) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    whole = [{name: row.get(name) for name in names} for row in rows]
    assert unpacked(json.loads(script_json(packed(rows)))) == whole


def test_points_that_charts_share_stand_on_the_page_once() -> None:
    shared, other = [{"a": 1}], [{"a": 2}]
    specs = {"p": {"datasets": {"points": shared}}, "q": {"datasets": {"points": shared}},
             "r": {"datasets": {"points": other}}}  # fmt: skip
    held = packed_charts(specs)
    assert [held["charts"][name]["datasets"]["points"] for name in "pqr"] == [0, 0, 1]
    assert [unpacked(points) for points in held["points"]] == [shared, other]
