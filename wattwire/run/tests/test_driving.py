"""Test the columns of a drive with constructed records of commands."""

import polars as pl
import pytest

from wattwire.model.deployment import Flow
from wattwire.model.study.drive import Drive, Leg
from wattwire.run.results import delivery
from wattwire.run.results.driving import DriveTally
from wattwire.store import Messages

MS = 1_000_000
PERIOD_NS = 100 * MS
DRIVE = Drive((Leg(3.0, 1 / 3, 0.0), Leg(3.0, 0.0, 30.0)), repeats=4, watchdog_s=0.5)
FLOW = Flow("", 0, (1,))
DURATION_S = 48.0


UNSENT = "unsent"


def records(delays_ms):
    """Return the records of commands; None is a lost command."""
    rows = []
    for counter, delay_ms in enumerate(delays_ms):
        if delay_ms == UNSENT:
            continue
        due_ns = 7_000 * MS + counter * PERIOD_NS
        sent = {"sender": 0, "counter": counter, "kind": "message", "bytes": 64, "flags": 0,
                "begin_ns": due_ns}  # fmt: skip
        rows.append({**sent, "node": 0, "intended_ns": due_ns, "end_ns": due_ns + 1})
        if delay_ms is not None:
            arrived_ns = due_ns + round(delay_ms * MS)
            rows.append({**sent, "node": 1, "intended_ns": None, "end_ns": arrived_ns})
    return pl.DataFrame(rows)


def tally_of(delays_ms, part_records=1 << 18, band_ns=0):
    tally = DriveTally(DRIVE, FLOW, PERIOD_NS, DURATION_S, band_ns)
    messages = Messages.of(records(delays_ms), part_records)
    delivery.tallied(messages, [FLOW], 2**62, further=[tally])
    return tally


def test_equal_delays_cause_no_drift_and_end_where_the_robot_began():
    row = tally_of([20.0] * 480).summary()
    assert row["drift_max_m"] <= 1e-6 and row["drift_mean_m"] <= row["drift_p95_m"]
    assert (row["drive_end_x_m"], row["drive_end_y_m"]) == pytest.approx((0.0, 0.0), abs=1e-9)
    assert row["drive_end_heading_deg"] == pytest.approx(720.0)
    assert (row["commands_late"], row["commands_lost"], row["watchdog_stops"]) == (0, 0, 0)


def test_a_late_turn_turns_the_end_and_all_that_follows():
    delays_ms = [20.0] * 480
    delays_ms[30] = 70.0  # the first turn begins 50 ms late: 1.5° less
    row = tally_of(delays_ms).summary()
    assert row["drive_end_heading_deg"] == pytest.approx(718.5)
    assert 0.001 < row["drift_mean_m"] < row["drift_p95_m"] <= row["drift_max_m"] < 0.1


def test_late_and_lost_commands_are_counted_and_stop_the_robot():
    delays_ms = [20.0] * 480
    delays_ms[5:11] = [None] * 6  # 700 ms without a command
    delays_ms[100] = 150.0
    tally = tally_of(delays_ms)
    row = tally.summary()
    assert (row["commands_late"], row["commands_lost"], row["watchdog_stops"]) == (1, 6, 1)
    drawn = tally.document()
    assert len(drawn["x_m"]) == len(drawn["y_m"]) == 481 and drawn["step_s"] == 0.1
    # 0.9 s at 1/3 m/s until the watchdog stops the robot, 0.4 s after the fifth command
    assert drawn["x_m"][10] == drawn["x_m"][11] == pytest.approx(0.9 / 3, abs=1e-5)


def test_parts_of_the_records_add_up_to_the_same_path():
    delays_ms = [(7 * n) % 90 for n in range(480)]
    whole, parts = tally_of(delays_ms), tally_of(delays_ms, part_records=100)
    assert whole.summary() == parts.summary() and whole.document() == parts.document()


def test_a_robot_without_commands_has_no_drift():
    row = tally_of([None] * 480).summary()
    assert row == {"commands_late": 0, "commands_lost": 480, "commands_unsent": 0}
    assert tally_of([None] * 480).document() == {}
    without_parts = DriveTally(DRIVE, FLOW, PERIOD_NS, DURATION_S)
    assert without_parts.summary()["commands_unsent"] == 480


def test_lost_first_commands_shorten_the_first_side_alone():
    row = tally_of([None] * 10 + [20.0] * 470).summary()
    # The first side lacks 1 s at 1/3 m/s, and so all that follows: no lap differs afterwards.
    assert row["drive_end_x_m"] == pytest.approx(-1 / 3, abs=1e-6)
    assert row["drive_end_y_m"] == pytest.approx(0.0, abs=1e-6)
    assert row["drive_end_heading_deg"] == pytest.approx(720.0)


def test_a_late_first_command_moves_no_other_command():
    row = tally_of([90.0] + [20.0] * 479).summary()
    assert row["drive_end_x_m"] == pytest.approx(-0.07 / 3, abs=1e-6)
    assert row["drift_max_m"] == pytest.approx(0.07 / 3, abs=0.01 / 3)  # instants of 0.01 s


def test_commands_that_were_not_sent_are_no_drift_of_the_delivery():
    row = tally_of([20.0] * 240 + [UNSENT] * 240).summary()
    assert row == {
        "commands_late": 0, "commands_lost": 0, "commands_unsent": 240, "watchdog_stops": 1
    }  # fmt: skip
    assert tally_of([20.0] * 479 + [UNSENT]).summary()["commands_unsent"] == 1
    assert tally_of([20.0] * 500).summary()["commands_unsent"] == 0


def test_lost_last_commands_stop_the_robot_before_the_end():
    row = tally_of([20.0] * 470 + [None] * 10).summary()
    assert (row["commands_lost"], row["commands_unsent"], row["watchdog_stops"]) == (10, 0, 1)
    assert row["drive_end_heading_deg"] == pytest.approx(720.0 - 0.6 * 30.0)


def test_late_commands_are_unknown_if_the_band_of_the_clocks_exceeds_the_period():
    assert tally_of([150.0] * 480, band_ns=PERIOD_NS).summary()["commands_late"] == 480
    assert tally_of([150.0] * 480, band_ns=PERIOD_NS + 1).summary()["commands_late"] is None
