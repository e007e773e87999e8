"""Print the topics that a probe watched, and the CPU time per message by process and topic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from wattwire.analysis.topics.processes.executed import Value
from wattwire.analysis.topics.watched.numbers import MessageCost, WatchedTopic, WatchedTopics
from wattwire.cli import wrap
from wattwire.cli.quantities import size_words
from wattwire.model.words import MISSING, mean_count, number
from wattwire.report.topic_page import Sentences
from wattwire.stats import Interval

SENTENCES = Sentences("watched")
TITLES = ("topic", "node", "1/s", "size", "p50 µs", "p95 µs", "p99 µs", "age p50 ms", "lost")


def lines(watched: WatchedTopics, width: int) -> Iterator[str]:
    """Yield a table of the topics, one of the costs, and the sentences on both."""
    yield ""
    if watched.topics:
        rows = [[*TITLES], *map(_topic, watched.topics)]
        yield from wrap.table(rows, "<<" + ">" * (len(TITLES) - 2), width, indent="")
        yield ""
    if watched.costs:
        rows = [["process", "messages", "1/s", "CPU µs per message"], *map(_cost, watched.costs)]
        yield from wrap.table(rows, "<<>>", width, indent="")
        yield ""
    for sentence in sentences(watched):
        yield wrap.wrapped(sentence, width, hanging="")


def sentences(watched: WatchedTopics) -> Iterator[str]:
    """Yield the sentences on the numbers and on what is missing."""
    yield SENTENCES.counts(watched) if watched.topics else SENTENCES.nothing(watched)
    yield from map(SENTENCES.unread, watched.unread)
    yield from map(SENTENCES.mismatch, watched.mismatches)
    for row in watched.remarks:
        yield SENTENCES.remark(row, watched)
    if watched.excluded and watched.topics:
        yield SENTENCES.excluded(watched)
    if watched.costs:
        yield SENTENCES.derived(watched)
    if watched.unknown:
        yield SENTENCES.unknown(watched)
    if watched.probe:
        yield SENTENCES.probe(watched)


def as_json(watched: WatchedTopics) -> dict[str, Any]:
    """Return the rows of the topics and of the costs as JSON values."""
    return {
        "windows": watched.windows,
        "messages": watched.messages,
        "streams": [_plain(row) for row in watched.topics],
        "cpu_per_message": [_plain(row) for row in watched.costs],
        "unknown": list(watched.unknown),
        "repeated": list(watched.repeated),
        "remarks": [asdict(row) for row in watched.remarks],
        "unread": [asdict(row) for row in watched.unread],
        "excluded": list(watched.excluded),
        "mismatches": [asdict(row) for row in watched.mismatches],
        "probe": asdict(watched.probe) if watched.probe else None,
    }


def _plain(row: WatchedTopic | MessageCost) -> dict[str, Any]:
    return {
        key: {"mean": value.estimate, "low": value.low, "high": value.high}
        if isinstance(value := getattr(row, key), Interval)
        else shown
        for key, shown in asdict(row).items()
    }


def _topic(row: WatchedTopic) -> list[str]:
    size = row.bytes_mean.estimate if isinstance(row.bytes_mean, Interval) else row.bytes_mean
    latencies = [
        _cell(value) if value is not None else SENTENCES.latency(row)
        for value in (row.p50_us, row.p95_us, row.p99_us)
    ]
    return [
        ": ".join(filter(None, (row.variant, row.topic))),
        row.publisher,
        _cell(row.rate_hz),
        MISSING if size is None else size_words(size),
        *latencies,
        _cell(row.age_p50_us, 1e-3),
        SENTENCES.unsequenced(row) if row.lost is None else _cell(row.lost, form=mean_count),
    ]


def _cost(row: MessageCost) -> list[str]:
    bound = "" if row.bound_us is None else "≤ "
    return [
        ": ".join(filter(None, (row.variant, row.process))),
        f"{SENTENCES.way(row)} {row.topic}".strip(),
        _cell(row.rate_hz),
        bound + _cell(row.cpu_us if row.bound_us is None else row.bound_us),
    ]


def _cell(value: Value, factor: float = 1.0, form: Callable[[float], str] = number) -> str:
    if value is None:
        return MISSING
    if isinstance(value, Interval):
        low, high = form(factor * value.low), form(factor * value.high)
        return f"{form(factor * value.estimate)} [{low}, {high}]"
    return form(factor * value)
