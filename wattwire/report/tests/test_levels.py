"""Tests of levels, which are distinguished by value and formatted with sufficient digits."""

import json

import polars as pl
import pytest

from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import by_treatment, gather, levels_run, same_level
from wattwire.analysis.latency import all_series
from wattwire.analysis.topics.costs.by_role import by_cell_and_role
from wattwire.analysis.topics.findings.numbers import findings
from wattwire.analysis.topics.findings.runs import by_treatment as runs_by_treatment
from wattwire.analysis.topics.findings.runs import runs_of
from wattwire.model import words
from wattwire.report.tests.synthetic import FAST, Shape, put_row, row_of, write_campaign
from wattwire.store import Campaign


def campaign(folder, levels):
    """Return a campaign in which each of the two `levels` applies to half of the runs."""
    shape = Shape(blocks=3, patterns=("topic",), intervals_s=(0.5,), clients=(1,))
    write_campaign(folder, shape)

    def of(treatment):
        return levels[0] if treatment["language"] == FAST else levels[1]

    study = json.loads((folder / "study.json").read_text())
    study["factors"]["size"] = levels
    study["plan"]["primary"] = "size"
    del study["factors"]["language"]
    (folder / "study.json").write_text(json.dumps(study))
    plan = json.loads((folder / "plan.json").read_text())
    for entry in plan:
        entry["treatment"]["size"] = entry["levels"]["size"] = of(entry["treatment"])
    (folder / "plan.json").write_text(json.dumps(plan))
    mixed = len({type(level) for level in levels}) > 1
    for path in folder.glob("runs/*/run.json"):
        document = json.loads(path.read_text())
        level = document["treatment"]["size"] = of(document["treatment"])
        path.write_text(json.dumps(document))
        summary = row_of(path.with_name("summary.json"))
        # The store writes levels of mixed types as text.
        column = pl.lit(str(level) if mixed else level).alias("factor.size")
        summary.with_columns(column).pipe(put_row, path.with_name("summary.json"))
    return gather(Campaign(folder))


ALIKE = ([1234567.0, 1234568.0], [True, "yes"], [12345678901, 12345678902], ["1.1", "1.10"])


@pytest.mark.parametrize("levels", ALIKE, ids=str)
def test_levels_that_look_alike_stay_apart(tmp_path, levels):
    evidence = campaign(tmp_path / "c", levels)
    assert levels_run(evidence, "size") == levels
    groups = by_treatment(evidence, evidence.usable)
    assert [frame.height for frame in groups.values()] == [3, 3]
    assert len({group.level for group in by_cell_and_role(evidence, "cpu_share")}) == 2
    runs = runs_of(evidence, all_series(evidence))
    assert [len(each) for each in runs_by_treatment(evidence, runs).values()] == [3, 3]
    assert findings(evidence, all_series(evidence), answer_all(evidence)).has_latencies
    assert not same_level(*levels)


def test_a_number_is_shown_with_the_digits_that_it_has_and_no_rounding_error():
    assert [words.plain(v) for v in (1234567.0, 0.05, 0.1 + 0.2, 1e-7)] == [
        "1234567", "0.05", "0.3", "1e-07",
    ]  # fmt: skip


def test_a_level_read_from_a_table_is_the_same_number():
    assert same_level(64, "64.0") and same_level(0.1 + 0.2, 0.3) and same_level(True, "True")
    assert not same_level(True, 1) and not same_level("1.1", "1.10")
