"""Test that the warm-up calls are flagged, and that one time ends the warm-up of all clients."""

import polars as pl
import pytest

from wattwire.model.sample_codes import FLAG_TIMEOUT, FLAG_WARM_UP
from wattwire.run.results import uncounted_calls
from wattwire.run.tests.test_counting import messages, node

NODES = [node(0, "server"), node(1, "client"), node(2, "client")]


def calls(sender, count, each_ns, kind="call", **more):
    return [
        {
            "node": sender, "sender": sender, "counter": c, "kind": kind, "begin_ns": c * each_ns,
            "end_ns": (c + 1) * each_ns, **more,
        }
        for c in range(count)
    ]  # fmt: skip


def flag_calls(frame: pl.DataFrame, nodes, calls: int, end_ns: int | None = None) -> pl.DataFrame:
    """Flag calls in all records at once and in parts of two; assert that both results are equal."""
    of_all = uncounted_calls.counted_calls(lambda: [frame], nodes, calls, end_ns)
    flagged = uncounted_calls.flag_calls(frame, of_all)
    pieces = [frame[place : place + 2] for place in range(0, len(frame), 2)]
    counted = uncounted_calls.counted_calls(lambda: pieces, nodes, calls, end_ns)
    assert pl.concat([uncounted_calls.flag_calls(one, counted) for one in pieces]).equals(flagged)
    return flagged


def counted(frame: pl.DataFrame, node_: int) -> list[int]:
    own = frame.filter((pl.col("node") == node_) & (pl.col("flags") & FLAG_WARM_UP == 0))
    return own["counter"].to_list()


def test_of_one_client_exactly_the_first_calls_are_warm_up():
    frame = flag_calls(messages(calls(1, 10, 100)), NODES[:2], 4)
    assert counted(frame, 1) == [4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("kind", ["call", "goal"])
def test_a_faster_clients_calls_are_warm_up_until_the_last_client_has_made_its_own(kind):
    rows = calls(1, 12, 100, kind) + calls(2, 12, 150, kind)
    frame = flag_calls(messages(rows), NODES, 4)
    # At 600 ns, client 2 begins call 4 and client 1 begins call 6.
    assert counted(frame, 2) == list(range(4, 12))
    assert counted(frame, 1) == list(range(6, 12))
    assert uncounted_calls.first_counted_ns([frame[:9], frame[9:]], NODES) == 600


def test_a_client_that_ended_before_the_last_one_passed_has_no_call_that_counts():
    frame = flag_calls(messages(calls(1, 6, 100) + calls(2, 6, 300)), NODES, 4)
    assert counted(frame, 1) == []
    assert counted(frame, 2) == [4, 5]


@pytest.mark.parametrize(("end_ns", "last"), [(900, 8), (901, 9), (999, 9), (1000, 9), (1001, 10)])
def test_what_began_after_the_end_of_what_counts_is_left_out(end_ns, last):
    frame = flag_calls(messages(calls(1, 12, 100)), NODES[:2], 0, end_ns)
    assert counted(frame, 1) == list(range(last + 1))


def test_a_long_call_that_is_open_at_the_end_counts():
    rows = calls(1, 12, 100) + calls(2, 2, 900)
    frame = flag_calls(messages(rows), NODES, 0, 1000)
    # Client 2's second call lasts from 900 to 1800; without it, the longest call is missing.
    assert counted(frame, 2) == [0, 1]


def test_both_ends_part_the_run_for_all_clients():
    rows = calls(1, 20, 100) + calls(2, 12, 150)
    frame = flag_calls(messages(rows), NODES, 4, 1510)
    assert counted(frame, 2) == list(range(4, 11))
    assert counted(frame, 1) == list(range(6, 16))


def test_a_client_that_called_nobody_before_the_end_has_no_call_that_counts():
    rows = calls(1, 3, 100) + [{**one, "begin_ns": 900 + one["begin_ns"]} for one in calls(2, 3, 9)]
    assert counted(flag_calls(messages(rows), NODES, 0, 500), 2) == []
    assert counted(flag_calls(messages(rows), NODES, 0, 500), 1) == [0, 1, 2]


def test_everything_is_warm_up_where_a_client_never_got_through_it():
    frame = flag_calls(messages(calls(1, 10, 100) + calls(2, 3, 100)), NODES, 4)
    assert counted(frame, 1) == counted(frame, 2) == []
    assert uncounted_calls.first_counted_ns([frame], NODES) is None
    silent = flag_calls(messages(calls(1, 10, 100)), NODES, 4)
    assert counted(silent, 1) == []


def test_records_at_the_server_and_results_carry_the_flag_of_their_call():
    rows = calls(1, 6, 100, "goal") + calls(1, 6, 100, "result")
    rows += [{"node": 0, "sender": 1, "counter": c, "kind": "goal"} for c in range(6)]
    frame = flag_calls(messages(rows), NODES[:2], 4)
    assert counted(frame, 0) == [4, 5]
    assert sorted(counted(frame, 1)) == [4, 4, 5, 5]


def test_other_flags_and_the_order_stay():
    frame = messages(calls(1, 4, 100, flags=FLAG_TIMEOUT))
    flagged = flag_calls(frame, NODES[:2], 2)
    assert flagged["flags"].to_list() == [FLAG_TIMEOUT | FLAG_WARM_UP] * 2 + [FLAG_TIMEOUT] * 2
    assert flagged.schema == frame.schema
    assert flagged["counter"].to_list() == frame["counter"].to_list()
