"""Test the selection of rows by levels, for columns of every type that the store can hold."""

import polars as pl
import pytest

from wattwire.analysis.dataset import rows_at, same_level

COLUMNS = {
    "integers": pl.Series([1, None, 2, 1], dtype=pl.Int64),
    "fractions": pl.Series([0.5, None, 2.0, 0.5], dtype=pl.Float64),
    "texts": pl.Series(["1.1", None, "1.10", "1"], dtype=pl.String),
    "switches": pl.Series([True, None, False, True], dtype=pl.Boolean),
    "mixed": pl.Series([1, None, "fixed", True], dtype=pl.Object),
    "lists": pl.Series([[1, 2], None, [2, 1], [1, 2]], dtype=pl.List(pl.Int64)),
}
LEVELS = [1, 2, 0.5, "1", "1.1", "1.10", "fixed", True, False, None, [1, 2]]


@pytest.mark.parametrize("name", COLUMNS)
def test_each_row_is_compared_as_one_level_is(name: str) -> None:
    frame = pl.DataFrame({f"factor.{name}": COLUMNS[name]})
    for level in LEVELS:
        expected = [same_level(row, level) for row in COLUMNS[name].to_list()]
        assert rows_at(frame, {name: level}).tolist() == expected, level


def test_a_factor_without_a_column_has_no_level_but_none() -> None:
    frame = pl.DataFrame({"run": ["a", "b"]})
    assert not rows_at(frame, {"rate_hz": 100}).any()
    assert rows_at(frame, {"rate_hz": None}).all()


def test_all_levels_must_match() -> None:
    frame = pl.DataFrame({"factor.cell": ["a", "a", "b"], "factor.rate_hz": [1, 2, 1]})
    assert rows_at(frame, {"cell": "a", "rate_hz": 1}).tolist() == [True, False, False]
    assert rows_at(frame, {}).all()
