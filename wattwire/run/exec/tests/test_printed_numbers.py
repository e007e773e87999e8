"""Test which printed texts are numbers, and which are refused instead of guessed."""

import pytest

from wattwire.model.errors import UsageError
from wattwire.run.exec.output import ValueReader, parse_number


def read(line: str) -> dict[str, float]:
    reader = ValueReader(["p50_ms"])
    reader.line(line)
    return reader.values


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("p50_ms=4.56", 4.56),
        ('{"p50_ms": 1, "p99_ms": 5}', 1.0),
        ('{"p50_ms":1,"p99_ms":5}', 1.0),
        ("p50_ms = 14,013", 14_013.0),
        ("p50_ms: 1,234,567.5", 1_234_567.5),
        ("p50_ms=1_000", 1000.0),
        ("p50_ms=2e-3, done.", 0.002),
        ("p50_ms=-.5", -0.5),
        ("p50_ms=12.", 12.0),
    ],
)
def test_a_figure_is_read_as_it_is_printed(line: str, value: float) -> None:
    assert read(line) == {"p50_ms": value}


@pytest.mark.parametrize(
    "text", ["1,5", "1.234,5", "1,23,456", "0,001,5", "nan", "inf", "1.2.3", ""]
)
def test_a_number_that_would_have_to_be_guessed_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--value-from"):
        parse_number(text, "--value-from: the group p50_ms")


@pytest.mark.parametrize(
    "line", ["p50_ms=1,5", "p50_ms=1.234,5", "p50_ms=NaN", '{"p50_ms": Infinity}']
)
def test_no_part_of_a_refused_number_is_read(line: str) -> None:
    with pytest.raises(UsageError):
        read(line)


def test_a_word_that_begins_like_infinity_is_no_number() -> None:
    assert read("p50_ms=information") == {}
