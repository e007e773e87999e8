"""Tests of the topic on the sources of imported values."""

from __future__ import annotations

from types import SimpleNamespace

import polars as pl
import pytest

from wattwire.analysis.topics.sources.numbers import Exclusion, Sources, sources
from wattwire.imports import SetAside
from wattwire.imports.tests.test_writing import tiny, written_with
from wattwire.report.parts import Fold
from wattwire.report.topic_page import topic_page


def result_of(path, **parts) -> Sources:
    return sources(SimpleNamespace(reader=written_with(path, **parts)))


def test_values_and_exclusions_are_summed(tmp_path) -> None:
    excluded = (SetAside("a", 0, "empty"), SetAside("b", 0, "empty"), SetAside("c", 7, "late"))
    result = result_of(tmp_path, set_aside=excluded)
    (row,) = result.provenance
    assert (row.values, row.files, row.used, row.left, row.how) == (2, 2, 15, 2, "sum")
    assert result.excluded == (Exclusion("empty", 2, None), Exclusion("late", 1, 7))
    assert (result.values, result.recipe, result.ways) == (2, "right", ())


def test_rows_of_one_file_are_one_place(tmp_path) -> None:
    excluded = (SetAside("a, line 3", 1, "late"), SetAside("a, lines 5 to 8", 4, "late"))
    assert result_of(tmp_path, set_aside=excluded).excluded == (Exclusion("late", 1, 5),)


@pytest.mark.parametrize(("how", "ways"), [("mean of {} files", 10), ("watts, line {}", 1)])
def test_many_derivations_are_listed_below_one_row(tmp_path, how: str, ways: int) -> None:
    provenance = pl.concat([tiny().provenance] * 5).with_columns(
        how=pl.format(how, pl.int_range(pl.len()))
    )
    result = result_of(tmp_path, provenance=provenance)
    (row,) = result.provenance
    folds = [
        part for part in topic_page("sources", result).section().parts if isinstance(part, Fold)
    ]
    if ways == 1:
        assert row.how == "watts, its own line" and not folds and not result.ways
        return
    assert row.how is None and (len(row.ways), row.first) == (10, "mean of 0 files")
    assert [way.how for way in result.ways] == [how.format(n) for n in range(10)]
    assert len(folds[0].parts[0].rows) == 10


def test_a_measured_campaign_has_no_sources() -> None:
    result = sources(SimpleNamespace(reader=object()))
    assert result == Sources() and topic_page("sources", result).section() is None
