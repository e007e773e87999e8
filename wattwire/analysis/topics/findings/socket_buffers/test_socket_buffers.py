"""Tests of the finding on datagrams dropped at full socket buffers."""

from __future__ import annotations

import polars as pl

from wattwire.analysis.topics.findings.datagrams import DropRun, Drops
from wattwire.analysis.topics.findings.detector import Searched
from wattwire.analysis.topics.findings.numbers import detectors
from wattwire.analysis.topics.findings.socket_buffers import DETECTOR
from wattwire.analysis.topics.findings.socket_buffers.numbers import (
    FullBuffers,
    SocketBuffers,
    socket_buffers,
)
from wattwire.analysis.topics.findings.tests.made_up import FACTORS, evidence_of
from wattwire.report.parts import Table, Text
from wattwire.report.topic_page import Sentences, topic_page

REASON = Sentences("findings/socket_buffers").reason


def result_of(**columns: list[float | None]) -> SocketBuffers:
    evidence = evidence_of(FACTORS)
    evidence.usable = pl.DataFrame({"run": ["a", "b", "c", "d"], **columns})
    return socket_buffers(Searched(evidence, []))


def test_drops_equal_to_the_losses_of_each_run_are_shown_as_their_cause() -> None:
    (buffers,) = result_of(
        datagrams_dropped=[23, 11, 0, None], lost=[23, 11, 6, 1],
        **{
            "datagrams_dropped.on.edge": [23, 11, 0, None],
            "datagrams_dropped.on.robot": [0, 0, 0, None],
            "lost.flow.command": [0, 0, 0, 0], "lost.flow.image": [23, 11, 6, None],
        },
    ).found  # fmt: skip
    assert buffers.is_shown and buffers.explains_all
    drops = buffers.drops
    assert (len(drops.runs), drops.counted, drops.datagrams, drops.lost) == (2, 3, 34, 34)
    assert drops.by_host == {"edge": 34} and drops.lost_by_flow == {"image": 34}
    assert [(row.run, row.datagrams, row.lost) for row in drops.runs] == [
        ("a", 23, 23), ("b", 11, 11),
    ]  # fmt: skip


def test_drops_that_differ_from_the_losses_are_only_suspected() -> None:
    (buffers,) = result_of(datagrams_dropped=[7, 11, 0, 0], lost=[5, 11, 0, 0]).found
    assert not buffers.is_shown and not buffers.explains_all
    assert (buffers.drops.equal, len(buffers.drops.runs)) == (1, 2)
    # One run alone may agree by chance.
    (alone,) = result_of(datagrams_dropped=[7, 0, 0, 0], lost=[7, 0, 0, 0]).found
    assert alone.explains_all and not alone.is_shown


def test_without_drops_or_a_counter_there_is_no_finding() -> None:
    silent = result_of(datagrams_dropped=[0, 0, None, 0], lost=[0, 0, 1, 0])
    assert silent == SocketBuffers(counted=3)
    absent = result_of(lost=[0, 0, 1, 0])
    assert absent == SocketBuffers(counted=0)
    assert REASON(silent) != REASON(absent)


def test_the_page_runs_the_detector() -> None:
    assert DETECTOR in detectors().values()


def test_the_page_has_the_sums_by_host_and_flow_and_a_row_per_run() -> None:
    runs = (DropRun((), "a", 23.0, 23.0), DropRun((), "b", 11.0, 12.0))
    buffers = FullBuffers(Drops(3, runs, {"edge": 34}, {"image": 35}), ("settings.room",))
    *texts, table = (part for _, part in topic_page("findings/socket_buffers", buffers).parts)
    summary, remedy, confirmation = (text for text in texts if isinstance(text, Text))
    assert (summary.key, summary.value) == ("socket_buffers.runs", "2")
    assert "(host edge: 34)" in summary.words and "(flow image: 35)" in summary.words
    assert "settings.room" in remedy.words
    assert confirmation.key == "socket_buffers.confirm"
    assert isinstance(table, Table)
    assert table.rows == [
        {"run": "a", "datagrams": 23.0, "lost": 23.0}, {"run": "b", "datagrams": 11.0, "lost": 12.0}
    ]  # fmt: skip
