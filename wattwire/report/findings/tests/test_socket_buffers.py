"""Tests of the finding on datagrams dropped at full socket buffers."""

from __future__ import annotations

import polars as pl

from wattwire.report.findings import part, socket_buffers
from wattwire.report.findings.finding import Finding, Searched, Silence
from wattwire.report.findings.tests.made_up import FACTORS, evidence_of
from wattwire.report.tests.phrase_search import only, phrases_in


def finding_of(**columns: list[float | None]) -> Finding | Silence:
    evidence = evidence_of(FACTORS)
    evidence.usable = pl.DataFrame({"run": ["a", "b", "c", "d"], **columns})
    return socket_buffers.find(Searched(evidence, [], []))


def test_drops_equal_to_the_losses_of_each_run_are_shown_as_their_cause() -> None:
    finding = finding_of(
        datagrams_dropped=[23, 11, 0, None], lost=[23, 11, 6, 1],
        **{
            "datagrams_dropped.on.edge": [23, 11, 0, None],
            "datagrams_dropped.on.robot": [0, 0, 0, None],
            "lost.flow.command": [0, 0, 0, 0], "lost.flow.image": [23, 11, 6, None],
        },
    )  # fmt: skip
    assert isinstance(finding, Finding) and finding.shown and not finding.settles
    summary = only(finding.evidence, "socket_buffers.summary").values
    assert (summary["runs"], summary["counted"], summary["datagrams"]) == (2, 3, 34)
    assert summary["lost"] == 34
    assert only(finding.evidence, "socket_buffers.equal_in_all")
    (host,) = phrases_in(finding.evidence, "socket_buffers.host")
    (flow,) = phrases_in(finding.evidence, "socket_buffers.flow")
    assert host.values == {"host": "edge", "datagrams": 34}
    assert flow.values == {"flow": "image", "lost": 34}
    (table,) = finding.parts
    assert [(row["run"], row["datagrams"], row["lost"]) for row in table.rows] == [
        ("a", 23, 23), ("b", 11, 11),
    ]  # fmt: skip


def test_drops_that_differ_from_the_losses_are_only_suspected() -> None:
    finding = finding_of(datagrams_dropped=[7, 11, 0, 0], lost=[5, 11, 0, 0])
    assert isinstance(finding, Finding) and not finding.shown
    some = only(finding.evidence, "socket_buffers.equal_in_some").values
    assert some == {"equal": 1, "runs": 2}
    assert only([finding.settles], "socket_buffers.confirm")
    # One run alone may agree by chance.
    alone = finding_of(datagrams_dropped=[7, 0, 0, 0], lost=[7, 0, 0, 0])
    assert isinstance(alone, Finding) and not alone.shown


def test_without_drops_or_a_counter_there_is_no_finding() -> None:
    silent = finding_of(datagrams_dropped=[0, 0, None, 0], lost=[0, 0, 1, 0])
    assert isinstance(silent, Silence)
    assert only([silent.words], "socket_buffers.silent").values == {"counted": 3}
    absent = finding_of(lost=[0, 0, 1, 0])
    assert isinstance(absent, Silence) and absent.words.key == "socket_buffers.not_counted"


def test_the_page_runs_the_detector() -> None:
    assert socket_buffers.DETECTOR in part.detectors()
