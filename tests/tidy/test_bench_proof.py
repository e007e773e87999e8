"""Test the planted holes of the bench on security."""

from __future__ import annotations

import pytest

from bench.rigs.proof import COLUMNS, HOLES, is_found, is_reported, last_attempts, plant
from wattwire.catalog import Catalog


@pytest.mark.parametrize("hole", HOLES, ids=lambda hole: f"{hole.cell}: {hole.name}")
def test_each_hole_can_be_planted_into_the_middleware_of_today(hole, tmp_path):
    plant(hole, tmp_path)
    (copied,) = Catalog([tmp_path]).middleware.values()
    original = Catalog().cell(hole.cell).middleware.folder
    for file, find, _ in hole.changes:
        assert find in (original / file).read_text()
        assert find not in (copied.folder / file).read_text()


def test_a_hole_that_is_nowhere_is_named(tmp_path):
    hole = HOLES[0]._replace(changes=(("middleware.toml", "no such text", ""),))
    with pytest.raises(ValueError, match="found 'no such text' 0 times"):
        plant(hole, tmp_path)


@pytest.mark.parametrize("name", COLUMNS)
def test_any_number_above_zero_is_a_report(name):
    row = dict.fromkeys(COLUMNS, 0)
    assert not is_reported(row)
    assert is_reported({**row, name: 1})


@pytest.mark.parametrize("hole", HOLES, ids=lambda hole: f"{hole.cell}: {hole.name}")
def test_a_hole_is_found_only_by_all_columns_that_must_report_it(hole):
    row = {name: int(name in hole.columns) for name in COLUMNS}
    assert is_found(row, hole)
    assert not any(is_found({**row, name: 0}, hole) for name in hole.columns)
    assert hole.columns


def test_a_repeated_run_counts_once_by_its_last_attempt():
    rows = [{"run": "b01-p001", "attempt": 2, "n": 1}, {"run": "b01-p001", "attempt": 1, "n": 0},
            {"run": "b01-p002", "attempt": 1, "n": 2}]  # fmt: skip
    assert sorted(row["n"] for row in last_attempts(rows)) == [1, 2]
