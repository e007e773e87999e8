"""The table of the streams of `topics`, and the sentences below it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from wattwire.analysis.streams.numbers import (
    AHEAD,
    NO_MESSAGE,
    OTHER_HOST,
    Delays,
    ProbeCost,
    Stamps,
    Stream,
    Watched,
)
from wattwire.analysis.streams.recorded import Graph
from wattwire.analysis.streams.remarks import remarks
from wattwire.catalog import Catalog
from wattwire.cli.topics.stream_table import lines_of
from wattwire.stats.series.streams import SequenceFaults

STREAM = Stream(
    topic="/scan", node="/laser", type="p/T", gid="00", qos={}, same_host=True, messages=100,
    before=0, rate_hz=10.0, interval_sd_ms=1.5, bytes_mean=2000.0, bytes_per_s=20000.0,
    latency=Delays(111.0, 222.0, 333.0, 444.0, 100), no_latency="",
    age=Delays(5000.0, 6000.0, 7000.0, 8000.0, 100), no_age="", stamps=Stamps(100, 0, 0, 0),
    faults=SequenceFaults(7, 3, 0), silent_s=None, gone=False,
)  # fmt: skip


def result(*streams: Stream, graph: Graph | None = None) -> Watched:
    return Watched(10.0, list(streams), graph or Graph(), ProbeCost(0.02, 50.0, 40 * 1024))


def sentences(watched: Watched) -> str:
    catalog = Catalog()
    return "\n".join(remarks(watched, catalog.probe(next(iter(catalog.probes))).remedies))


def test_a_row_has_rate_size_latency_age_and_faults() -> None:
    _, titles, row = lines_of(result(STREAM), 200)
    cells = dict(zip(titles.replace(" µs", "").split(), row.split(), strict=False))
    assert cells["topic"] == "/scan" and cells["node"] == "/laser"
    assert all(text in row for text in ("10.0", "2 kB", "20 kB", "111", "222", "333", "444"))
    assert "5.00 ms" in row and row.split()[-2:] == ["7", "3"]


def test_a_percentile_of_lost_messages_is_infinite_and_one_of_few_is_missing() -> None:
    lossy = replace(STREAM, latency=Delays(111.0, None, math.inf, math.inf, 93))
    cells = lines_of(result(lossy), 200)[2].split()
    assert cells[cells.index("111") :][:4] == ["111", "–", "∞", "∞"]
    text = sentences(result(lossy))
    assert "A percentile needs enough independent messages: 200 for p95. If" in text
    assert "A lost message is infinitely late" in text
    assert "infinitely late" not in sentences(result(STREAM))


def test_messages_that_arrived_after_a_later_one_are_called_reordered() -> None:
    titles = lines_of(result(STREAM), 200)[1].split()
    assert titles[-2:] == ["lost", "reordered"] and "late" not in titles


def test_a_narrow_screen_has_fewer_columns_and_keeps_what_was_lost() -> None:
    lines = lines_of(result(STREAM), 60)
    assert max(map(len, lines[1:])) <= 60
    assert "lost" in lines[1] and "p50" in lines[1] and "± ms" not in lines[1]
    assert "Omitted on this narrow screen: ± ms" in " ".join(lines[3:])
    assert len(lines_of(result(STREAM), 200)) == 3


@pytest.mark.parametrize(
    ("changes", "cell", "sentence"),
    [
        ({"latency": None, "no_latency": OTHER_HOST, "same_host": False}, "other host",
         "the publisher is on another host, whose clock is not related to this one"),
        ({"latency": None, "no_latency": AHEAD, "same_host": None}, "other clock",
         "published after their arrival"),
        ({"faults": None}, "no seq.", "this RMW gives no sequence, so losses are unknown"),
        ({"same_host": None}, "111", "the host of the publisher is unknown"),
        ({"silent_s": 4.0}, "111", "no message in the last 4.00 s of the window"),
        ({"gone": True}, "111", "the publisher ended in the window"),
        ({"messages": 0, "before": 1, "latency": None, "no_latency": NO_MESSAGE}, "–",
         "no message of the window of 10.0 s, but 1 message from before it"),
        ({"faults": SequenceFaults(0, 0, 2)}, "111", "2 messages arrived more than once"),
        ({"publishers": 2}, "111", "2 publishers followed one another, as after a restart"),
    ],
)  # fmt: skip
def test_each_situation_has_a_cell_and_a_sentence(
    changes: dict[str, object], cell: str, sentence: str
) -> None:
    stream = replace(STREAM, **changes)  # type: ignore[arg-type]
    assert cell in lines_of(result(stream), 200)[2]
    assert sentence in sentences(result(stream))
    assert sentence not in sentences(result(STREAM))


def test_publishers_of_another_type_and_unmatched_ones_are_named() -> None:
    graph = Graph()
    topic = {"kind": "topic", "type": "p/T", "problem": "", "publishers": 2}
    graph.take({**topic, "topic": "/a", "readable": 1, "matched": 1})
    graph.take({**topic, "topic": "/b", "readable": 2, "matched": 1})
    text = sentences(result(STREAM, graph=graph))
    assert "/a: 1 of its 2 publishers have another type than p/T" in text
    assert "/b: the probe matches 1 of its 2 publishers" in text


def test_messages_without_a_known_sender_are_explained_once() -> None:
    marked = replace(STREAM, node="", gid="0c", unattributed=True)
    text = sentences(result(STREAM, marked, replace(marked, gid="0d")))
    assert text.count("does not tell which node sent a message") == 1
    assert "each with its own row" not in text


def test_the_remedy_of_a_missing_type_is_not_that_of_a_failed_subscription() -> None:
    topic = {"kind": "topic", "topic": "/a", "type": "p/T", "publishers": 1, "readable": 0}
    texts = []
    for cause in ("type", "subscription"):
        graph = Graph()
        graph.take({**topic, "problem": "no such thing", "cause": cause})
        texts.append(sentences(result(STREAM, graph=graph)))
    assert "Source the workspace" in texts[0] and "Source the workspace" not in texts[1]
    assert all("/a (p/T) is not read: no such thing." in text for text in texts)


def test_how_the_probe_read_a_topic_is_told_if_it_may_miss_messages() -> None:
    graph = Graph()
    graph.take({
        "kind": "topic", "topic": "/scan", "type": "p/T", "problem": "", "publishers": 2,
        "readable": 2, "matched": 2, "resubscribed": 1, "errors": 3, "last_error": "no memory",
        "read_with": {"reliability": "best_effort"},
    })  # fmt: skip
    reliable = replace(STREAM, qos={"reliability": "reliable"})
    text = sentences(replace(result(reliable, graph=graph), subscribed_s={"/scan": 4.0}))
    assert "the probe subscribed again, because its publishers changed, 4.00 s after" in text
    assert "/scan: 3 failures to read it, the last one: no memory." in text
    assert "so the probe reads with best effort" in text
    assert "reads with best effort" not in sentences(result(STREAM, graph=graph))


def test_a_clock_that_was_set_and_the_cost_of_the_probe_are_named() -> None:
    watched = replace(result(STREAM), jumps=[(4.0, -0.25)])
    text = sentences(watched)
    assert "The wall clock was set by −250 ms, 4.00 s after the begin" in text
    assert "The probe used 2.0 % of a core, 50.0 µs of CPU time per message" in text
    assert "40.0 MiB" in text
    assert "too short to measure the cost" in sentences(replace(watched, cost=None))
