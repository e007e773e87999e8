"""Which process a publisher belongs to, and its CPU time per message."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from wattwire.analysis.streams.numbers import Delays, Stamps, Stream, Watched
from wattwire.analysis.streams.recorded import Graph
from wattwire.run.exec.watched_topics import cpu_per_message, document_of, pid_of
from wattwire.stats.series.streams import SequenceFaults

MODULUS = 1 << 16


def member(pid: int, *argv: str) -> dict[str, Any]:
    return {"pid": pid, "argv": argv}


def numbered(pid: int, node: str = "/talker") -> dict[str, Any]:
    return {"node": node, "process": {"pid": pid, "modulus": MODULUS}}


def test_the_lower_bits_of_a_number_find_a_process_if_they_fit_only_one() -> None:
    members = [member(7), member(MODULUS + 8)]
    assert pid_of(numbered(7), members) == 7
    assert pid_of(numbered(8), members) == MODULUS + 8
    assert pid_of(numbered(9), members) is None
    assert pid_of(numbered(8), [*members, member(8)]) is None


def test_without_a_number_the_command_line_that_names_the_node_decides() -> None:
    talker = member(7, "talker", "--ros-args", "-r", "__node:=talker", "-r", "__ns:=/left")
    fact = {"node": "/left/talker", "process": None}
    assert pid_of(fact, [talker, member(8, "talker")]) == 7
    assert pid_of({**fact, "node": "/talker"}, [talker]) is None
    assert pid_of(fact, [talker, {**talker, "pid": 9}]) is None
    # A number that fits no measured process is that of another one, whatever its node's name.
    assert pid_of(numbered(9, "/left/talker"), [talker]) is None


def end(pid: int | None, messages: int) -> dict[str, Any]:
    return {"pid": pid, "published": messages}


def test_cpu_per_message_counts_what_a_process_publishes_and_what_it_receives() -> None:
    document = {"streams": [end(1, 100), end(2, 60), end(None, 5)], "readers": [end(2, 100)]}
    rows = [
        {"pid": 1, "process": "talker", "cpu_s": 0.001},
        {"pid": 2, "process": "python3 relay.py", "cpu_s": 0.016},
        {"pid": 3, "process": "idle", "cpu_s": 1.0},
        {"process": "(outside the scans)", "cpu_s": 1.0},
    ]
    figures = cpu_per_message(document, rows)
    assert figures == {
        "talker_cpu_per_message_us": 10.0, "python3_relay_py_cpu_per_message_us": 100.0
    }  # fmt: skip
    twice = [*rows, {"pid": 4, "process": "talker", "cpu_s": 1.0}]
    more = {**document, "streams": [*document["streams"], end(4, 10)]}
    assert "talker_cpu_per_message_us" not in cpu_per_message(more, twice)


STREAM = Stream(
    topic="/scan", node="/laser", type="p/T", gid="00", qos={}, same_host=True, messages=100,
    before=0, rate_hz=10.0, interval_sd_ms=1.5, bytes_mean=2000.0, bytes_per_s=20000.0,
    latency=Delays(111.0, 222.0, 333.0, 444.0, 100), no_latency="", age=None, no_age="",
    stamps=Stamps(0, 0, 0, 0), faults=SequenceFaults(7, 3, 2), silent_s=None, gone=True,
)  # fmt: skip
REMEDIES = {"no_type": "t", "no_match": "m", "unsequenced": "no sequence"}


def subscribed(gid: str, pid: int | None, node: str = "/slam") -> dict[str, Any]:
    process = None if pid is None else {"pid": pid, "modulus": MODULUS}
    return {"topic": "/scan", "node": node, "gid": gid, "qos": {}, "process": process}


def document_with(*readers: dict[str, Any], **changes: Any) -> dict[str, Any]:
    graph = Graph(readers={(row["topic"], row["gid"]): row for row in readers})
    result = Watched(10.0, [replace(STREAM, **changes)], graph, None, remedies=REMEDIES)
    return document_of(result, [member(7), member(8)])


def test_published_messages_include_the_lost_and_not_the_repeated_ones() -> None:
    document = document_with(subscribed("01", 7))
    assert [end["published"] for end in (*document["streams"], *document["readers"])] == [105, 105]
    taken = document_with(subscribed("01", 7), faults=None)
    assert [end["published"] for end in (*taken["streams"], *taken["readers"])] == [100, 100]


def test_subscriptions_of_a_node_in_a_process_are_one_reader() -> None:
    document = document_with(
        subscribed("01", 7), subscribed("02", 7), subscribed("03", 8), subscribed("04", 7, "/map")
    )
    counts = [(row["pid"], row["node"], row["subscriptions"]) for row in document["readers"]]
    assert counts == [(7, "/slam", 2), (8, "/slam", 1), (7, "/map", 1)]
    unknown = document_with(subscribed("01", None), subscribed("02", None))["readers"]
    assert [row["subscriptions"] for row in unknown] == [2]


def test_the_document_has_the_remarks_of_topics() -> None:
    ended, unsequenced = (
        " ".join(document_with(**changes)["remarks"]) for changes in ({}, {"faults": None})
    )
    assert "the publisher ended in the window" in ended
    assert "no sequence, so losses are unknown" in unsequenced
