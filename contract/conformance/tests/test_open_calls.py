"""Test the number of open calls that the suite derives from a client's records (C-12)."""

from __future__ import annotations

import pytest

from contract.conformance.samples import TIMEOUT, UNKNOWN_NS, Record
from contract.conformance.window import MILLISECOND_NS, _most_open

TIMEOUT_NS = 100 * MILLISECOND_NS
RESUME_NS = 550 * MILLISECOND_NS


def timed_out(*begins_ms: int) -> list[Record]:
    """Return calls without an end that began at these times."""
    return [
        Record(number, at * MILLISECOND_NS, at * MILLISECOND_NS, UNKNOWN_NS, 64, 1, 1, TIMEOUT)
        for number, at in enumerate(begins_ms)
    ]


@pytest.mark.parametrize(
    ("begins_ms", "open_max"),
    [
        ((300, 400, 500), 1),
        ((300, 380, 500), 2),  # open simultaneously for 20 ms during the pause
        ((500, 551), 1),  # the resumed server ended the first call early
        ((500, 530), 2),
        ((551, 600), 2),  # both began after the pause
    ],
)
def test_a_call_without_an_end_is_open_until_its_timeout_or_the_server_resumes(
    begins_ms: tuple[int, ...], open_max: int
) -> None:
    calls = timed_out(*begins_ms)
    assert _most_open(calls, TIMEOUT_NS, 10 * MILLISECOND_NS, RESUME_NS) == open_max
