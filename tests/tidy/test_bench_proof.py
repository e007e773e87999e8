"""Test the planted holes of the bench on security."""

from __future__ import annotations

import pytest

from bench.rigs.proof import HOLES, is_reported, plant
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


@pytest.mark.parametrize("name", ["uninvited_received", "uninvited_delivered", "fill_on_link"])
def test_any_number_above_zero_is_a_report(name):
    row = {"uninvited_received": 0, "uninvited_delivered": 0, "fill_on_link": 0}
    assert not is_reported(row)
    assert is_reported({**row, name: 1})
