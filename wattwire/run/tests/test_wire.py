"""Test the bytes on the wire: the bytes that all interfaces send in the window, per message."""

import polars as pl
import pytest

from wattwire.run.results.resources import Readings, wire_costs

S = 10**9


def readings(**interfaces):
    """Return the readings of each interface, given as [(t_s, total bytes sent)]."""
    rows = [
        {"meter": "m", "quantity": "tx_bytes", "subject": name, "scope": "interface",
         "kind": "measured", "t_ns": round(t * S), "value": float(value)}
        for name, points in interfaces.items()
        for t, value in points
    ]  # fmt: skip
    schema = {"meter": pl.String, "quantity": pl.String, "subject": pl.String, "scope": pl.String,
              "kind": pl.String, "t_ns": pl.Int64, "value": pl.Float64}  # fmt: skip
    return Readings(pl.DataFrame(rows, schema=schema))


def test_the_interfaces_add_up_and_what_came_before_the_window_does_not_count():
    found = readings(lo=[(0, 5000), (1, 5000), (3, 6200)], en0=[(0, 7), (1, 7), (3, 307)])
    assert wire_costs(found, (1 * S, 3 * S), 10) == {"wire_bytes_per_message": 150.0}


def test_silence_is_zero_and_what_was_not_read_is_unknown():
    silent = readings(lo=[(0, 5000), (3, 5000)])
    assert wire_costs(silent, (1 * S, 3 * S), 10) == {"wire_bytes_per_message": 0.0}
    for found, sent in ((readings(), 10), (silent, 0), (readings(lo=[(0, 1)]), 10)):
        assert wire_costs(found, (1 * S, 3 * S), sent)["wire_bytes_per_message"] is None


def test_a_part_of_the_interfaces_is_no_total():
    partly = readings(lo=[(0, 0), (3, 900)], en0=[(0, 0)])
    assert wire_costs(partly, (0, 3 * S), 9)["wire_bytes_per_message"] is None
    whole = readings(lo=[(0, 0), (3, 900)], en0=[(0, 0), (3, 0)])
    assert wire_costs(whole, (0, 3 * S), 9)["wire_bytes_per_message"] == pytest.approx(100)
