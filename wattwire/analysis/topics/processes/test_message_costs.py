"""Test the costs of a message of a command, and the rate of its messages."""

from __future__ import annotations

import polars as pl
import pytest

from wattwire.analysis.topics.processes.executed import executed
from wattwire.analysis.topics.processes.message_costs import Messages, Rate, Without, messages
from wattwire.model.deployment import Request
from wattwire.report.topic_page import Sentences
from wattwire.stats import Band, BelowResolution

WORDS = Sentences("processes")
COUNTED = Request(command=("x",), count_from="sent")


def test_repeats_without_a_count_are_named_and_in_no_rate() -> None:
    rows = [
        {"verdict": "valid", "block": block, "messages": count, "window_s": seconds,
         "cpu_us_per_message": 5.0}
        for block, count, seconds in ((3, 100.0, 1.0), (1, 200.0, 1.0), (2, None, 10.0))
    ]  # fmt: skip
    result = messages(executed(COUNTED, pl.DataFrame(rows), pl.DataFrame()))
    assert (result.count, result.is_whole) == (150.0, True)
    assert result.uncounted == Without((2,), 3) and result.rate == Rate(150.0)
    assert "in repeat 2 of 3, so " in WORDS.uncounted(result)
    silent = pl.DataFrame([{**rows[2], "block": block} for block in (1, 2)])
    result = messages(executed(COUNTED, silent, pl.DataFrame()))
    assert result == Messages(uncounted=Without((1, 2), 2))
    assert "in any repeat" in WORDS.uncounted(result)


def rate(totals: int, uncounted_s: float) -> Rate:
    """Return the rate of a command that sent 100 messages per second for 10 s."""
    row = {
        "verdict": "valid", "messages": 1000.0, "messages_per_s": 100.0, "window_s": 60.0,
        "messages_per_s_resolution_share": 0.01, "messages_span_s": 10.0,
        "messages_uncounted_s": uncounted_s, "messages_totals": totals,
    }  # fmt: skip
    result = messages(executed(Request(command=("x",)), pl.DataFrame([row]), pl.DataFrame())).rate
    assert result is not None
    return result


def test_messages_after_the_last_total_are_those_of_one_period_at_most() -> None:
    # One total per second; 50 s without a total are not 5,000 messages.
    ended = rate(11, 50.0)
    assert (ended.per_s, ended.percent, ended.span_s) == (100.0, 1.0, 10.0)
    assert ended.after is not None and ended.after.has_ended
    assert (ended.after.messages, ended.after.percent) == (100, pytest.approx(10.0))
    assert "probably ended" in WORDS.rate(ended)
    sending = rate(11, 0.4)
    assert sending.after is not None and not sending.after.has_ended
    assert sending.after.messages == 40 and "probably ended" not in WORDS.rate(sending)
    assert rate(11, 0.05).after is None


def test_modelled_energy_is_stated_only_on_request_and_measured_energy_always() -> None:
    modelled = Messages(1000.5, cpu_us=5.0, estimate_mj=Band(1.0, 2.0))
    assert "mJ" not in WORDS.per_message(modelled, False)
    assert "1.00 … 2.00 mJ (estimate)." in WORDS.per_message(modelled, True)
    measured = Messages(1000.0, cpu_us=5.0, energy_mj=3.0, estimate_mj=Band(1.0, 2.0))
    assert WORDS.per_message(measured, True).endswith("CPU time, 3.00 mJ.")


def test_energy_per_message_is_in_millijoules_or_a_reason() -> None:
    rows = [
        {"verdict": "valid", "block": block, "messages": 100.0, "window_s": 1.0,
         "energy_j_per_message": 0.002}
        for block in (1, 2)
    ]  # fmt: skip
    needed = {"power_window_w": 5.0, "power_machine_w": 4.0}
    frame = pl.DataFrame([row | needed for row in rows])
    assert messages(executed(COUNTED, frame, pl.DataFrame())).energy_mj == pytest.approx(2.0)
    noisy = [
        row | needed | {"power_machine_w": 4.0 + 2 * (n % 2)} for n, row in enumerate(2 * rows)
    ]
    result = messages(executed(COUNTED, pl.DataFrame(noisy), pl.DataFrame())).energy_mj
    assert isinstance(result, BelowResolution)
