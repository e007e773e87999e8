"""Join both ends of messages, part their latency and follow them, on planted events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from wattwire.model.layers import LAYERS, POINTS
from wattwire.run.layers.deliveries import deliveries
from wattwire.run.layers.paths import path_rows
from wattwire.run.layers.recordings import EVENT, Endpoint, Recording
from wattwire.run.layers.topics import topic_rows

PUB, SUB, RELAYED, HEARD = 11, 12, 13, 14
WAIT_SET, READER = 71, 72
MESSAGE = 81
COLUMNS = [layer.column for layer in LAYERS]
EXPECTED = {
    "client_publish": 1, "rcl_publish": 2, "rmw_publish": 4, "dds_write": 8, "transport": 16,
    "wake_up": 32, "executor": 64, "rcl_take": 128 + 8, "rmw_take": 256 + 4, "dds_take": 512,
    "client_take": 3,
}  # fmt: skip


def events(*rows: tuple[int, str, int, int, int]) -> Any:
    """Return events from rows of time, point, a, b and c."""
    codes = [(t, a, b, POINTS.index(point), c) for t, point, a, b, c in rows]
    return np.array(codes, EVENT)


def published(t: int, handle: int, stamp: int) -> list[tuple[int, str, int, int, int]]:
    """Return the events of a message published at a time, whose layers are those of EXPECTED."""
    return [
        (t, "client_publish", 0, MESSAGE, 0),  # rclcpp passes no handle
        (t + 1, "rcl_publish", 5, 0, 0),
        (t + 3, "rmw_begin", 5, MESSAGE, 0),
        (t + 5, "stamp", handle, stamp, 1),
        (t + 15, "dds_write", t + 7, 0, 0),
    ]


def taken(t: int, handle: int, stamp: int, waited: int) -> list[tuple[int, str, int, int, int]]:
    """Return the events of a message published at a time and taken by a thread that slept."""
    return [
        (waited + 1, "sleep", WAIT_SET, 0, 0),
        (t + 63, "wait", waited, 0, 0),
        (t + 127, "rcl_take", 6, 0, 0),
        (t + 255, "rmw_take", handle, 0, 0),
        (t + 1023, "dds_take", t + 511, 0, 0),
        (t + 1027, "rmw_taken", handle, stamp, 1),
        (t + 1035, "rcl_taken", 6, 0, 0),
        (t + 1037, "client_taken", 6, 0, 0),
        (t + 1038, "callback_start", 8, 0, 0),
    ]


def process(pid: int, node: str, threads: Sequence[Any], pub: int = 0, sub: int = 0) -> Recording:
    topics = {PUB: "/a", RELAYED: "/b", SUB: "/a", HEARD: "/b"}
    return Recording(
        pid,
        ("program",),
        dict(enumerate(threads, 1)),
        {pub: [Endpoint(0, topics[pub], node)]} if pub else {},
        {sub: [Endpoint(0, topics[sub], node)]} if sub else {},
    )


@pytest.fixture
def pair() -> list[Recording]:
    sender = process(1, "/s", [events(*published(100_000, PUB, 900))], pub=PUB)
    receiver = process(
        2,
        "/r",
        [
            events(*taken(100_000, SUB, 900, 1000)),
            events((90_000, "notify", WAIT_SET, 0, 0), (100_031, "notify", WAIT_SET, 0, 0)),
        ],
        sub=SUB,
    )
    return [sender, receiver]


def test_each_layer_has_its_planted_time_and_they_add_up(pair: list[Recording]) -> None:
    result = deliveries(pair)
    (row,) = result.frame.to_dicts()
    assert {layer.name: row[layer.column] for layer in LAYERS} == EXPECTED
    assert row["latency_ns"] == sum(EXPECTED.values()) == 1038
    assert not row["unmarked"]
    assert (row["topic"], row["sender"], row["receiver"]) == ("/a", "/s", "/r")
    assert result.outside == 0


def test_the_call_of_the_client_library_for_another_message_is_not_taken_over(
    pair: list[Recording],
) -> None:
    rows = published(100_000, PUB, 900)
    rows[0] = (100_000, "client_publish", 0, MESSAGE + 1, 0)
    pair[0] = process(1, "/s", [events(*rows)], pub=PUB)
    (row,) = deliveries(pair).frame.to_dicts()
    assert row["client_publish_ns"] is None and row["latency_ns"] == 1037


@pytest.mark.parametrize("work", ["timer", "service", "wait", "rcl_take"])
def test_the_callback_of_later_work_is_not_that_of_a_polled_message(work: str) -> None:
    """A program that polls has its message without a callback."""
    polled = [row for row in taken(100_000, SUB, 900, 1000) if row[1] != "callback_start"]
    later = [(150_000, work, 140_000, 0, 0), (150_010, "callback_start", 9, 0, 0)]
    receiver = process(2, "/r", [events(*polled, *later)], sub=SUB)
    sender = process(1, "/s", [events(*published(100_000, PUB, 900))], pub=PUB)
    assert deliveries([sender, receiver]).frame["latency_ns"].to_list() == [1037]


def test_the_callback_of_a_message_inside_the_process_is_not_that_of_a_polled_one() -> None:
    polled = [row for row in taken(100_000, SUB, 900, 1000) if row[1] != "callback_start"]
    inside = (150_010, "callback_start", 9, 0, 1)
    receiver = process(2, "/r", [events(*polled, inside)], sub=SUB)
    sender = process(1, "/s", [events(*published(100_000, PUB, 900))], pub=PUB)
    assert deliveries([sender, receiver]).frame["latency_ns"].to_list() == [1037]


def test_a_message_of_an_unknown_sender_is_counted_and_has_no_row(pair: list[Recording]) -> None:
    result = deliveries(pair[1:])
    assert (len(result.frame), result.outside) == (0, 1)


def test_messages_before_the_window_are_left_out(pair: list[Recording]) -> None:
    assert len(deliveries(pair, (100_000, 100_001)).frame) == 1
    result = deliveries(pair, (100_001, 200_000))
    assert (len(result.frame), result.topics) == (0, [])


@pytest.mark.parametrize("mark", ["dds_take", "rcl_take", "rmw_take", "rcl_taken"])
def test_a_missing_mark_is_counted_and_the_rest_still_adds_up(
    pair: list[Recording], mark: str
) -> None:
    rows = [row for row in taken(100_000, SUB, 900, 1000) if row[1] != mark]
    notified = (100_031, "notify", WAIT_SET, 0, 0)
    second = process(3, "/q", [events(*rows), events(notified)], sub=SUB)
    frame = deliveries([*pair, second]).frame.sort("receiver")
    assert frame["unmarked"].to_list() == [True, False]
    sums = frame.select(pl.sum_horizontal(COLUMNS)).to_series()
    assert (sums == frame["latency_ns"]).all()


@pytest.mark.parametrize("missing", ["wait", "notify"])
def test_a_wake_up_is_missing_only_where_others_of_the_subscription_have_one(
    pair: list[Recording], missing: str
) -> None:
    """A subscriber that polls never waits, and no reader of a waiting one is notified."""
    unnoticed = [row for row in taken(200_000, SUB, 901, 150_000) if row[1] != "wait"]
    sent = [*published(100_000, PUB, 900), *published(200_000, PUB, 901)]
    sender = process(1, "/s", [events(*sent)], pub=PUB)
    rows = [row for row in taken(100_000, SUB, 900, 1000) if row[1] != missing]
    notified = [] if missing == "notify" else [(100_031, "notify", WAIT_SET, 0, 0)]
    polling = process(3, "/q", [events(*rows, *unnoticed), events(*notified)], sub=SUB)
    waiting = taken(100_000, SUB, 900, 1000)
    receiver = process(
        2, "/r", [events(*waiting, *unnoticed), events((100_031, "notify", WAIT_SET, 0, 0))],
        sub=SUB,
    )  # fmt: skip
    frame = deliveries([sender, receiver, polling]).frame
    unmarked = {name: sum(f["unmarked"]) for (name,), f in frame.group_by("receiver")}
    assert unmarked == {"/r": 1, "/q": 0}
    assert (frame.select(pl.sum_horizontal(COLUMNS)).to_series() == frame["latency_ns"]).all()


@pytest.mark.parametrize("is_written_known", [True, False])
@pytest.mark.parametrize("write_ns", [50, 200, 400])
def test_a_take_that_began_before_the_write_has_no_negative_layers(
    write_ns: int, is_written_known: bool
) -> None:
    """A thread polls while the sender publishes: rcl_take at 127, rmw_take at 255."""
    sent = published(100_000 + write_ns, PUB, 900)
    got = [row for row in taken(100_000, SUB, 900, 1000) if row[1] not in ("wait", "sleep")]
    sender = process(1, "/s", [events(*sent if is_written_known else sent[:-1])], pub=PUB)
    frame = deliveries([sender, process(2, "/r", [events(*got)], sub=SUB)]).frame
    times = frame.select(COLUMNS)
    assert times.select(pl.min_horizontal(pl.all().min())).item() >= 0
    assert times.sum_horizontal().to_list() == frame["latency_ns"].to_list() == [1038 - write_ns]
    assert frame["unmarked"].to_list() == [write_ns > 127]


def test_a_latched_message_to_a_late_subscription_has_no_latency(pair: list[Recording]) -> None:
    late = replace(pair[1], subscriptions={SUB: [Endpoint(100_500, "/a", "/r")]})
    result = deliveries([pair[0], late])
    assert (len(result.frame), result.early, result.outside) == (0, 1, 0)
    (row,) = topic_rows(result)
    assert (row["published"], row["deliveries"], row["not_taken"]) == (1, 0, 0)


def test_messages_of_unknown_senders_after_the_window_are_not_counted(
    pair: list[Recording],
) -> None:
    assert deliveries(pair[1:], (100_000, 102_000)).outside == 1
    assert deliveries(pair[1:], (100_000, 101_000)).outside == 0
    assert deliveries(pair[1:], (102_000, 103_000)).outside == 0


def test_messages_without_a_time_stamp_are_counted_though_no_publisher_is_known() -> None:
    """Humble and Iron pass the message alone."""
    rows = [(100_005, "stamp", MESSAGE, 0, 0), (300_005, "stamp", MESSAGE, 0, 0)]
    result = deliveries([process(1, "/s", [events(*rows)], pub=PUB)], (100_000, 200_000))
    assert (result.unstamped, result.topics) == (1, [])


def lossy() -> list[Recording]:
    """Return recordings of ten messages, of which the receiver took seven."""
    sent, got, notified = [], [], []
    for at in range(1, 11):
        t = at * 100_000
        sent += published(t, PUB, at)
        if at > 3:
            got += taken(t, SUB, at, t - 1000)
            notified.append((t + 31, "notify", WAIT_SET, 0, 0))
    return [
        process(1, "/s", [events(*sent)], pub=PUB),
        process(2, "/r", [events(*got), events(*notified)], sub=SUB),
    ]


def test_messages_that_a_receiver_did_not_take_are_counted() -> None:
    (row,) = topic_rows(deliveries(lossy()))
    assert (row["published"], row["deliveries"], row["not_taken"]) == (10, 7, 3)
    deaf = process(3, "/deaf", [], sub=SUB)
    rows = topic_rows(deliveries([*lossy(), deaf]))
    counts = {row["receiver"]: (row["deliveries"], row["not_taken"]) for row in rows}
    assert counts == {"/r": (7, 3), "/deaf": (0, 10)}


def test_nodes_of_one_name_in_two_processes_stay_apart() -> None:
    sender, receiver = lossy()
    twin = replace(receiver, pid=9)
    rows = topic_rows(deliveries([sender, receiver, twin]))
    assert [(row["sender"], row["receiver"], row["deliveries"]) for row in rows] == [
        ("/s", "/r (process 1)", 7), ("/s", "/r (process 2)", 7),
    ]  # fmt: skip


def test_the_means_of_the_layers_add_up_where_one_message_lacks_a_layer() -> None:
    sender, receiver = lossy()
    kept = receiver.threads[1][receiver.threads[1]["t"] != 400_000 + 1023]  # one dds_take
    receiver = replace(receiver, threads={**receiver.threads, 1: kept})
    (row,) = topic_rows(deliveries([sender, receiver]))
    assert row["unmarked"] == 1
    assert sum(row["layers_ns"].values()) == pytest.approx(row["mean_ns"])


def test_the_time_in_which_a_thread_did_other_work_is_the_executors() -> None:
    """The message arrives while the thread works, so the next wait does not sleep."""
    work_ns = 5_000
    sent, got, notified = [], [], []
    for at in range(1, 4):
        t = at * 100_000
        sent += published(t, PUB, at)
        notified.append((t + 31, "notify", READER, 0, 0))
        late = [(t + work_ns + row[0], *row[1:]) for row in taken(0, SUB, at, 0)]
        late = [row for row in late if row[1] != "sleep"]
        got += [(row[0], row[1], row[2] + t + work_ns, *row[3:]) if row[1] in ("wait", "dds_take")
                else row for row in late]  # fmt: skip
    noise = [(t, "notify", 73, 0, 0) for t in range(0, 400_000, 50)]
    receiver = process(2, "/r", [events(*got), events(*sorted(notified + noise))], sub=SUB)
    frame = deliveries([process(1, "/s", [events(*sent)], pub=PUB), receiver]).frame
    assert not frame["unmarked"].any()
    assert frame["transport_ns"].to_list() == [16] * 3
    assert frame["wake_up_ns"].to_list() == [63] * 3
    assert frame["executor_ns"].to_list() == [work_ns + 127 - 31 - 63] * 3


def test_a_message_that_is_taken_before_its_notification_arrived_at_the_take() -> None:
    sent, got, notified = [], [], []
    for at in range(1, 201):
        t = at * 100_000
        sent += published(t, PUB, at)
        got += [row for row in taken(t, SUB, at, t - 1000) if row[1] != "sleep"]
        notified.append((t + (300 if at == 7 else 31), "notify", READER, 0, 0))
    receiver = process(2, "/r", [events(*got), events(*notified)], sub=SUB)
    frame = deliveries([process(1, "/s", [events(*sent)], pub=PUB), receiver]).frame
    assert not frame["unmarked"].any()
    late, usual = frame.row(6, named=True), frame.row(7, named=True)
    assert (late["transport_ns"], late["wake_up_ns"], late["executor_ns"]) == (127 - 15, 0, 0)
    assert (usual["transport_ns"], usual["wake_up_ns"], usual["executor_ns"]) == (16, 32, 64)


def test_one_message_that_a_busy_thread_takes_among_many_of_an_idle_one_is_marked() -> None:
    """The variable of the idle thread has fewer notifications than that of the reader."""
    sent, got, notified = [], [], []
    for at in range(1, 201):
        t = at * 100_000
        is_busy = at == 9
        sent += published(t, PUB, at)
        got += [row for row in taken(t, SUB, at, t - 1000) if row[1] != "sleep" or not is_busy]
        notified += [(t + 30, "notify", READER, 0, 0), (t + 31, "notify", READER, 0, 0)]
        notified += [] if is_busy else [(t + 32, "notify", WAIT_SET, 0, 0)]
    receiver = process(2, "/r", [events(*got), events(*notified)], sub=SUB)
    frame = deliveries([process(1, "/s", [events(*sent)], pub=PUB), receiver]).frame
    assert not frame["unmarked"].any()
    assert frame["transport_ns"].to_list() == [17] * 8 + [15] + [17] * 191


def graph(middle: Sequence[tuple[int, str, int, int, int]] = ()) -> pl.DataFrame:
    """Return the deliveries of /s → /r → /h, with events of the relay between take and publish."""
    relay = [*taken(100_000, SUB, 900, 1000), *middle, *published(110_000, RELAYED, 901)]
    notify = (100_031, "notify", WAIT_SET, 0, 0), (110_031, "notify", WAIT_SET, 0, 0)
    start = [(99_000, "wait", 98_000, 0, 0), (99_500, "timer", 4, 0, 0)]
    first = process(1, "/s", [events(*start, *published(100_000, PUB, 900))], pub=PUB)
    second = process(2, "/r", [events(*relay), events(*notify)], pub=RELAYED, sub=SUB)
    third = process(
        3, "/h", [events(*taken(110_000, HEARD, 901, 1000)), events(*notify)], sub=HEARD
    )
    return deliveries([first, second, third]).frame


def test_a_path_joins_the_messages_that_caused_each_other_and_its_parts_add_up() -> None:
    (path,) = path_rows(graph())
    assert (path["nodes"], path["topics"]) == (["/s", "/r", "/h"], ["/a", "/b"])
    assert path["started_by"] == "timer"
    assert path["hops_ns"] == [1038, 1038]
    assert path["work_ns"] == [10_000 - 1038]
    assert path["mean_ns"] == 11_038 == sum(path["hops_ns"]) + sum(path["work_ns"])


@pytest.mark.parametrize(
    ("point", "start"), [("timer", "timer"), ("wait", "application"), ("service", "service")]
)
def test_other_work_between_take_and_publish_begins_a_path_of_its_own(
    point: str, start: str
) -> None:
    frame = graph([(105_000, point, 104_000, 0, 0)])
    paths = {tuple(path["topics"]): path["started_by"] for path in path_rows(frame)}
    assert paths == {("/a",): "timer", ("/b",): start}


def test_no_recordings_give_no_rows() -> None:
    result = deliveries([])
    assert (len(result.frame), result.topics, path_rows(result.frame)) == (0, [], [])
