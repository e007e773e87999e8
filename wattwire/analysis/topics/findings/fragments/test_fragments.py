"""Tests of the finding on datagrams discarded during reassembly."""

from __future__ import annotations

import polars as pl

from wattwire.analysis.topics.findings.datagrams import DropRun, Drops
from wattwire.analysis.topics.findings.detector import Searched
from wattwire.analysis.topics.findings.fragments.numbers import (
    Discards,
    Fragments,
    FramesDropped,
    fragments,
)
from wattwire.analysis.topics.findings.tests.made_up import FACTORS, evidence_of
from wattwire.report.parts import Table, Text
from wattwire.report.topic_page import Sentences, topic_page

REASON = Sentences("findings/fragments").reason


def result_of(**columns: list[float | None]) -> Fragments:
    evidence = evidence_of(FACTORS)
    evidence.usable = pl.DataFrame({"run": ["a", "b", "c", "d"], **columns})
    return fragments(Searched(evidence, []))


def test_runs_that_discarded_datagrams_are_found_with_their_losses() -> None:
    (discards,) = result_of(datagrams_unassembled=[0, 12, None, 3], lost=[4, 9, 1, 2]).found
    assert not discards.is_shown
    drops = discards.drops
    assert (len(drops.runs), drops.counted, drops.datagrams, drops.lost) == (2, 3, 15, 11)
    assert [(row.run, row.datagrams, row.lost) for row in drops.runs] == [
        ("b", 12, 9), ("d", 3, 2),
    ]  # fmt: skip


def test_without_a_discarded_datagram_or_a_counter_there_is_no_finding() -> None:
    silent = result_of(datagrams_unassembled=[0, 0, None, 0])
    assert silent == Fragments(counted=3)
    # Frames that a full queue dropped left incomplete datagrams, which no counter shows yet.
    saturated = result_of(
        datagrams_unassembled=[0, 0, 0, 0], link_queue_full_share=[0.5, 0.6, 0.6, 0.5],
        link_lost_share=[0.0, 0.0, 0.0, 0.0],
    )  # fmt: skip
    assert saturated == Fragments(counted=4, frames=FramesDropped(0.55, 0.0))
    absent = result_of(lost=[0, 0, 1, 0])
    assert absent == Fragments(counted=0)
    assert len({REASON(result) for result in (silent, saturated, absent)}) == 3
    assert "55 %" in REASON(saturated).replace("\N{NARROW NO-BREAK SPACE}", " ")


def test_the_page_has_a_row_per_run() -> None:
    discards = Discards(Drops(3, (DropRun((), "b", 12.0, 9.0),), {}, {}))
    *texts, table = (part for _, part in topic_page("findings/fragments", discards).parts)
    assert [(text.key, text.value) for text in texts if isinstance(text, Text)] == [
        ("fragments.runs", "1"), ("", ""),
    ]  # fmt: skip
    assert isinstance(table, Table)
    assert table.rows == [{"run": "b", "datagrams": 12.0, "lost": 9.0}]
