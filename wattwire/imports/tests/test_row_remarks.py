"""Test remarks on rows whose columns have names of our own calculations."""

from pathlib import Path

import polars as pl
import pytest

from wattwire.imports.row_checks import ROWS_MAX, many_rows, status_remarks


@pytest.mark.parametrize("name", ["len", "count", "literal", "index", "lib"])
def test_many_rows_of_a_treatment_are_named_whatever_the_columns_are_called(name: str) -> None:
    rows = pl.DataFrame({name: ["a"] * (ROWS_MAX + 1) + ["b"], "block": [1] * (ROWS_MAX + 2)})
    (remark,) = many_rows(rows.columns, rows, [name, "block"])
    assert str(ROWS_MAX + 1) in remark.text
    assert list(many_rows(rows.columns, rows.tail(5), [name, "block"])) == []


@pytest.mark.parametrize("name", ["status", "len", "count"])
def test_a_column_of_results_is_named_with_the_rows_of_each(name: str) -> None:
    rows = pl.DataFrame({name: ["OK", "FAILED", "OK", "OK"]})
    (remark,) = status_remarks(Path("t.csv"), [name], rows, ())
    assert '"OK" in 3 rows' in remark.text and '"FAILED" in 1 row' in remark.text
    assert remark.text.index("OK") < remark.text.index("FAILED")
