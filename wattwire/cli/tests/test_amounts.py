"""Tests of the parsers of sizes and durations."""

import pytest

from wattwire.cli.quantities import duration_s, size_bytes, size_words
from wattwire.model.errors import UsageError


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("64", 64), ("64k", 64_000), ("64K", 64_000), ("64kB", 64_000), ("1m", 1_000_000),
     ("64Ki", 65_536), ("1MiB", 1_048_576), ("1.5k", 1500), ("2g", 2_000_000_000), (" 8 B", 8)],
)  # fmt: skip
def test_sizes_are_decimal_unless_an_i_says_binary(text, size):
    assert size_bytes(text, "--payload") == size


@pytest.mark.parametrize("text", ["", "k", "-1", "64q", "64 k k", "0.3", "1.0001k", "1e3", "0x40"])
def test_what_is_no_size_is_refused_with_what_is_allowed(text):
    with pytest.raises(UsageError, match="--payload: found"):
        size_bytes(text, "--payload")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10s", 10.0), ("10", 10.0), ("500ms", 0.5), ("2m", 120.0), ("1.5min", 90.0), ("1h", 3600.0),
     ("50us", 5e-5), ("50µs", 5e-5)],
)  # fmt: skip
def test_durations_have_units_and_a_bare_number_is_seconds(text, seconds):
    assert duration_s(text, "--for") == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "0s", "-1s", "10x", "s", "1 0s", "inf"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(UsageError, match="--for: found"):
        duration_s(text, "--for")


def test_sizes_are_told_in_the_unit_that_fits():
    assert [size_words(s) for s in (0, 999, 1500, 2_000_000, 3e9)] == [
        "0 B", "999 B", "1.5 kB", "2 MB", "3 GB",
    ]  # fmt: skip
