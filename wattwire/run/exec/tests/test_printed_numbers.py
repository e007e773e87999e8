"""Test which printed texts are numbers, and which are refused instead of guessed."""

import pytest

from wattwire.model.errors import UsageError
from wattwire.run.exec.output import MessageCounter, ValueReader, parse_number


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
    reader = ValueReader(["p50_ms", "p99_ms"])
    reader.line(f"p50_ms=3 p99_ms=9; {line}")
    assert reader.values == {"p99_ms": 9.0}
    assert list(reader.problems) == ["p50_ms"] and "matched" in reader.problems["p50_ms"]
    reader.line("p50_ms=4")
    assert reader.values == {"p50_ms": 4.0, "p99_ms": 9.0} and not reader.problems


def test_a_word_that_begins_like_infinity_is_no_number() -> None:
    assert read("p50_ms=information") == {}


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        ("p50_ms=median ([0-9.]+) ms", {"p50_ms": 4.5}),
        (r"p50_ms=([\d.]+)", {"p50_ms": 7.0}),
        (r"p50_ms=\s*(\S+)", {"p50_ms": 7.0}),
        (r"p50_ms=(?i)MEDIAN ([\d.]+)", {"p50_ms": 4.5}),
        (r"median=? (?P<low_ms>[\d.]+) ms (?:or|to) (?P<high_ms>[\d.]+)",
         {"low_ms": 4.5, "high_ms": 6.0}),
    ],
)  # fmt: skip
def test_an_expression_names_its_figures_by_groups_or_in_front(expression, values) -> None:
    reader = ValueReader([expression])
    for line in ("median 3.0 ms or 5", "median 4.5 ms to 6 ms, p50_ms=7", "12 of 12 done"):
        reader.line(line)
    assert reader.names == list(values) and reader.values == values


@pytest.mark.parametrize(
    ("expression", "line", "value"),
    [
        (r"p50=([\d.]+) ms", "min=1.0 ms p50=4.5 ms max=99.0 ms", 4.5),
        (r"p50_ms=(\d+\.\d{3})", "p50_ms=4.500 p99_ms=88.512", 4.5),
        (r"p50=\s*(\d+) ms", "p50=  4 ms p99=9 ms", 4.0),
        (r"p50=(?:\s|\t)?(\d+) ms", "p50=4 ms p99=9 ms", 4.0),
        (r"p50=[ :]*x?(\d+)", "p50=4 9", 4.0),
        (r"p50=\$(\d+)", "p50=$4 p99=$9", 4.0),
        (r"p50=(\d+)", "p50=4 max_p50=9", 4.0),
        (r"p50=(?:half|median): (\d+)", "half: 4, all: 9", 4.0),
        (r"p50=(?<=median )(\d+)", "median 4, all 9", 4.0),
        (r"p50=[Mm]edian (\d+)", "Median 4, all 9", 4.0),
    ],
)  # fmt: skip
def test_without_a_word_before_the_number_the_name_is_part_of_the_text(
    expression, line, value
) -> None:
    reader = ValueReader([expression])
    reader.line(line)
    assert list(reader.values.values()) == [value]


@pytest.mark.parametrize(
    ("expressions", "words"),
    [
        (["p50_ms=("], '"p50_ms=(" is not a regular expression: missing )'),
        (["(?P<a>x"], "is not a regular expression"),
        (["median ([0-9]+)"], "it names no figure; allowed: a name, such as p50_ms; NAME=REGEX"),
        (["p50_ms=[0-9]+"], "it has 0 groups"),
        (["p50_ms="], "it has 0 groups"),
        (["p50_ms=(a|b) ([0-9]+)"], "it has 2 groups"),
        (["p50_ms", "p50_ms=median (.+)"], "name each figure once"),
        (["2x=(.+)"], "it names no figure"),
    ],
)
def test_an_expression_that_names_no_figure_is_refused(expressions, words) -> None:
    with pytest.raises(UsageError) as refusal:
        ValueReader(expressions)
    assert words in str(refusal.value)


def test_messages_are_counted_until_a_total_is_no_number() -> None:
    counter = MessageCounter(r"sent (?P<n>\S+)")
    for line in ("sent 5", "sent many", "sent 7"):
        counter.line(line)
    assert counter.count is None and "matched 'many'" in counter.problem
