"""Topics that a probe watched, and the CPU time per message of the processes on them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from wattwire.analysis.topics.watched.numbers import (
    PUBLISHES,
    RECEIVES,
    MessageCost,
    WatchedTopics,
    watched_topics,
)
from wattwire.cli.exec import topics_table
from wattwire.model.deployment import Request
from wattwire.report.topic_page import topic_page
from wattwire.stats import Interval

REQUEST = Request(("launch",), probe="mw/probe")
P50_US = {"p50_us": 400.0, "p95_us": None, "p99_us": None, "max_us": 900.0}


def stream(topic: str, pid: int | None, messages: int, **changes: Any) -> dict[str, Any]:
    return {
        "topic": topic, "node": f"/n{pid}", "gid": "00", "type": "std_msgs/msg/String",
        "qos": {"reliability": "reliable"}, "messages": messages, "rate_hz": messages / 10.0,
        "interval_sd_ms": 0.5, "bytes_mean": 24.0, "bytes_per_s": 24.0 * messages / 10.0,
        "latency": {**P50_US, "count": messages, "reasons": {"p95_us": "too_few"}},
        "no_latency": "", "age": None, "faults": {"lost": 0, "reordered": 0, "repeated": 0},
        "pid": pid, "published": messages, **changes,
    }  # fmt: skip


def reader(topic: str, pid: int | None, messages: int) -> dict[str, Any]:
    return {"topic": topic, "node": f"/n{pid}", "qos": {}, "pid": pid, "published": messages,
            "subscriptions": 1}  # fmt: skip


def document(messages: int, **changes: Any) -> dict[str, Any]:
    """Return a window of 10 s with a relay (pid 2) between a talker (1) and a listener (3)."""
    return {
        "window_s": 10.0,
        "streams": [stream("/a", 1, messages), stream("/b", 2, messages)],
        "readers": [reader("/a", 2, messages), reader("/b", 3, messages)],
        "unread": [], "excluded": ["/rosout"], "mismatches": [], "remarks": [],
        "cost": {"cpu_share": 0.01, "cpu_us_per_message": 100.0, "memory_peak_kib": 2048},
        **changes,
    }  # fmt: skip


def evidence(*documents: dict[str, Any], request: Request = REQUEST) -> Any:
    runs = [f"r{at}" for at in range(len(documents))]
    processes = pl.DataFrame([
        {"run": run, "attempt": 1, "subject": "command", "process": name, "pid": pid, "cpu_s": s}
        for run in runs
        for pid, (name, s) in enumerate((("talker", 0.1), ("relay", 0.4), ("listener", 0.2)), 1)
    ])  # fmt: skip
    return SimpleNamespace(
        imported=False,
        study=SimpleNamespace(request=request),
        reader=SimpleNamespace(processes=lambda: processes),
        usable=pl.DataFrame([{"run": run, "attempt": 1} for run in runs]),
        runs={run: {"topics": d} for run, d in zip(runs, documents, strict=True)},
    )


def costs_of(result: WatchedTopics) -> dict[tuple[str, str, str], MessageCost]:
    return {(cost.process, cost.way, cost.topic): cost for cost in result.costs}


def test_cpu_per_message_is_exact_for_one_topic_and_a_bound_for_one_of_several() -> None:
    result = watched_topics(evidence(document(1000)))
    costs = costs_of(result)
    talker, listener = costs["talker", PUBLISHES, "/a"], costs["listener", RECEIVES, "/b"]
    assert (talker.cpu_us, talker.bound_us) == (pytest.approx(100.0), None)
    assert (listener.cpu_us, listener.bound_us) == (pytest.approx(200.0), None)
    whole = costs["relay", "", ""]
    assert whole.cpu_us == pytest.approx(200.0) and whole.topics == 2
    for way, topic in ((RECEIVES, "/a"), (PUBLISHES, "/b")):
        cost = costs["relay", way, topic]
        assert (cost.cpu_us, cost.bound_us) == (None, pytest.approx(400.0))
    assert len(costs) == 5 and result.has_bounds


def test_windows_are_the_replicates_of_an_interval() -> None:
    result = watched_topics(evidence(*(document(n) for n in (900, 1000, 1100))))
    first = result.topics[0]
    assert isinstance(first.rate_hz, Interval) and first.rate_hz.estimate == pytest.approx(100.0)
    assert first.windows == 3 and first.messages == pytest.approx(1000.0)
    assert isinstance(costs_of(result)["talker", PUBLISHES, "/a"].cpu_us, Interval)


def test_a_percentile_on_lost_messages_has_no_mean() -> None:
    lost = stream("/a", 1, 10, latency={**P50_US, "reasons": {"p99_us": "lost"}, "count": 5})
    result = watched_topics(evidence(document(10), document(10, streams=[lost])))
    row = result.topics[0]
    assert row.p99_us is None and row.is_lost == ("p99_us",) and row.p50_us == 400.0


def test_ends_without_a_measured_process_are_named_and_have_no_cost() -> None:
    streams = [stream("/a", None, 5), stream("/b", 9, 5)]
    result = watched_topics(evidence(document(5, streams=streams, readers=[])))
    assert result.costs == () and result.unknown == ("/a (/nNone)", "/b (/n9)")
    assert {row.process for row in result.topics} == {""}


def test_a_campaign_without_a_probe_has_no_topics() -> None:
    assert watched_topics(evidence(request=Request(("launch",)))) == WatchedTopics()


def test_the_page_marks_bounds_and_says_how_costs_are_derived() -> None:
    mismatch = {"topic": "/c", "sending_node": "/x", "receiving_node": "/y", "reason": "R; "}
    unread = {"topic": "/d", "type": "own/msg/T", "problem": "no such package"}
    result = watched_topics(evidence(document(1000, mismatches=[mismatch], unread=[unread])))
    page = topic_page("watched", result)
    section = page.section()
    assert section is not None
    tables = {part.id: part for part in section.parts if hasattr(part, "rows")}
    costs = {row["process"] + row["way"]: row for row in tables["watched-costs"].rows}
    assert costs["relayall of its topics"]["cpu_us"] == pytest.approx(200.0)
    assert "≤ 400" in costs["relaypublishes"]["cpu_us"]
    assert "upper bound" in tables["watched-costs"].note
    texts = " ".join(page.texts)
    assert "/y never receives messages of /x" in texts and "no such package" in texts
    assert "/rosout" in texts


def test_a_window_without_messages_is_a_warning() -> None:
    empty = document(0, streams=[], readers=[], cost=None)
    result = watched_topics(evidence(empty))
    assert result.topics == () and result.windows == 1
    texts = " ".join(topic_page("watched", result).texts)
    assert "read no message" in texts and "the same domain, discovery and middleware" in texts
    assert result.probe is None


def test_several_publishers_of_a_node_in_a_window_have_a_row_each() -> None:
    gids = {"0110ab01": 1000, "0110ab02": 500, "0110cd01": 300}
    streams = [stream("/a", 1, messages, gid=gid) for gid, messages in gids.items()]
    result = watched_topics(evidence(document(1, streams=streams, readers=[])))
    rows = {row.publisher: row.rate_hz for row in result.topics}
    assert rows == {"/n1 (ab01)": 100.0, "/n1 (ab02)": 50.0, "/n1 (cd01)": 30.0}
    assert {row.node for row in result.topics} == {"/n1"}
    (cost,) = result.costs
    assert cost.messages == 1800 and cost.cpu_us == pytest.approx(1e6 * 0.1 / 1800)


def latency_texts(**reasons: str) -> str:
    latency = {**dict.fromkeys(P50_US), "reasons": reasons, "count": 9}
    only = stream("/a", 1, 250, latency=latency)
    result = watched_topics(evidence(document(1, streams=[only], readers=[])))
    section = topic_page("watched", result).section()
    assert section is not None
    (table,) = (part for part in section.parts if getattr(part, "id", "") == "watched-topics")
    return str(table.rows[0]["p99_us"])


def test_only_a_percentile_on_lost_messages_is_infinite() -> None:
    assert "too few" in latency_texts(p99_us="too_few", max_us="lost")
    assert "∞" in latency_texts(p99_us="lost", max_us="lost")


def test_costs_are_over_the_published_messages_and_several_subscriptions_are_named() -> None:
    unnumbered = stream("/a", 1, 900, published=1000, faults=None)
    several = {**reader("/a", 2, 1000), "subscriptions": 2}
    of_run = evidence(document(1, streams=[unnumbered], readers=[several]))
    result = watched_topics(of_run)
    assert costs_of(result)["talker", PUBLISHES, "/a"].messages == 1000
    assert (result.repeated, result.has_unnumbered) == (("/a (/n2)",), True)
    section = topic_page("watched", result).section()
    assert section is not None
    note = next(part.note for part in section.parts if getattr(part, "id", "") == "watched-costs")
    assert "/a (/n2)" in note and "those that the probe took" in note


def test_remarks_that_differ_only_in_numbers_are_one() -> None:
    texts = ("/a1: no message in the last 1.20 s", "/a1: no message in the last 900 ms", "x.")
    of_windows = [document(9, remarks=[text]) for text in texts]
    result = watched_topics(evidence(*of_windows))
    assert [(row.text, row.windows) for row in result.remarks] == [(texts[0], 2), ("x.", 1)]
    page = " ".join(topic_page("watched", result).texts)
    assert f"{texts[0]} (2 of 3 windows)" in page


def test_a_probe_alone_is_the_total() -> None:
    pages = [
        " ".join(topic_page("watched", watched_topics(evidence(document(9), request=r))).texts)
        for r in (REQUEST, Request(probe="mw/probe"))
    ]
    assert ["which no total includes" in page for page in pages] == [True, False]


def test_lost_messages_of_a_window_are_an_integer_on_page_and_terminal() -> None:
    faults = {"lost": 6, "reordered": 1, "repeated": 0}
    lossy = stream("/a", 1, 12_345, faults=faults)
    result = watched_topics(evidence(document(1, streams=[lossy], readers=[])))
    parts = topic_page("watched", result).parts
    (table,) = (part for _, part in parts if getattr(part, "id", "") == "watched-topics")
    texts = {column.key: table.text(column, table.rows[0]) for column in table.columns}
    assert [texts[key] for key in ("messages", "lost", "reordered")] == ["12\u202f345", "6", "1"]
    (row,) = (line for line in topics_table.lines(result, 200) if line.startswith("/a "))
    assert row.split()[-1] == "6"
