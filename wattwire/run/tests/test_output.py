"""Test the message count in a command's output, and the rate from running totals."""

from __future__ import annotations

import pytest

from wattwire.model.errors import UsageError
from wattwire.run.exec.output import MessageCounter

EVERY_S = 0.1


def test_a_rate_by_totals_does_not_fall_by_what_comes_after_the_last():
    """Totals are printed once per second; 99.6 messages per second are sent."""
    counter = MessageCounter(r"sent (?P<n>\d+)")
    for second in range(1, 5):
        counter.line(f"sent {round(99.6 * second)}", 7.0 + second + 0.05)
    totals = counter.totals(EVERY_S)
    assert counter.count == 398, "over a window of 5 s that would be 80 a second"
    assert totals is not None and totals.readings == 4
    assert totals.per_s == pytest.approx(99.6, rel=0.01)
    assert totals.resolution_share == pytest.approx(EVERY_S / 3.0)


@pytest.mark.parametrize("times", [[1.0], [1.0, 1.0], [1.0, 1.15]])
def test_totals_that_are_too_close_give_no_rate(times):
    counter = MessageCounter(r"(?P<n>\d+)")
    for at, time_s in enumerate(times):
        counter.line(f"{10 * at}", time_s)
    totals = counter.totals(EVERY_S)
    assert totals is not None and totals.per_s is None and totals.resolution_share is None


@pytest.mark.parametrize("expression", [r"(?P<add>\d+)", "sent"])
def test_amounts_and_matches_are_no_totals(expression):
    counter = MessageCounter(expression)
    counter.line("sent 5", 1.0)
    assert counter.totals(EVERY_S) is None


def test_an_expression_is_shown_as_it_was_typed():
    with pytest.raises(UsageError) as caught:
        MessageCounter(r"\d+(")
    assert r'"\d+(" is not a regular expression' in str(caught.value)
