"""Tests of the digits of printed numbers and of ours."""

from __future__ import annotations

import pytest

from wattwire.papers.digits import as_printed, with_more_digits


@pytest.mark.parametrize(
    ("value", "printed", "shown"),
    [
        (41093.883, "41,093", "41093.88"),
        (1.2345e-7, "0.00", "1.2345·10⁻⁷"),
        (0.000238, "0.00024", "0.0002380"),
        (None, "1", "–"),
        (0.0, "0.00", "0.0000"),
    ],
)
def test_our_number_has_two_digits_more_than_the_printed_one(value, printed, shown) -> None:
    assert with_more_digits(value, printed) == shown


def test_a_printed_number_keeps_its_digits_in_the_notation_of_the_page() -> None:
    assert as_printed("6.53e-60") == "6.53·10⁻⁶⁰"
    assert as_printed("105.80") == "105.80"
