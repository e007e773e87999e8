"""Test the agreement of computed numbers with printed numbers."""

from __future__ import annotations

import math

import pytest

from wattwire.imports.agreement import agrees, close, cut, number


@pytest.mark.parametrize(
    ("printed", "value", "expected"),
    [
        ("48.82", 48.8181, True),
        ("48.82", 48.8249999, True),
        ("48.82", 48.8151, True),
        ("48.82", 48.8149, False),
        ("48.82", 48.8299, True),  # truncated
        ("48.82", 48.8301, False),
        ("40,993", 40993.885, True),
        ("6.53e-60", 6.536e-60, True),
        ("6.53e-60", 6.5401e-60, False),
        ("1.9e-60", 1.9005e-60, True),
        ("-1.5", -1.54, True),
        ("-1.5", -1.59, True),
        ("-1.5", -1.44, False),
        ("0", 0.4, True),
        ("1", math.nan, False),
        ("1", math.inf, False),
        ("1", None, False),
    ],
)
def test_digits_agree_by_rounding_or_by_cutting(printed, value, expected) -> None:
    assert agrees(printed, value) is expected


def test_a_column_s_decimals_hold_where_zeros_were_dropped() -> None:
    assert agrees("11.1", 11.14) and not agrees("11.1", 11.14, decimals=2)
    assert agrees("11.1", 11.1037, decimals=2)


def test_cut_is_told_from_rounded() -> None:
    assert cut("0.13", 0.1355) and not cut("0.13", 0.1349) and not cut("0.13", 0.15)


def test_within_a_hundredth() -> None:
    assert close("100", 101) and close("100", 99) and not close("100", 101.1)
    assert not close("100", None) and not close("0", 0.001)


def test_what_is_no_number_is_named() -> None:
    with pytest.raises(ValueError, match="'n/a' is not a number"):
        number("n/a")
