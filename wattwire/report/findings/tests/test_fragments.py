"""Tests of the finding on datagrams discarded during reassembly."""

from __future__ import annotations

import polars as pl

from wattwire.report.findings import fragments
from wattwire.report.findings.finding import Finding, Silence
from wattwire.report.findings.tests.made_up import FACTORS, evidence_of
from wattwire.report.tests.phrase_search import only


def finding_of(**columns: list[float | None]) -> Finding | Silence:
    evidence = evidence_of(FACTORS)
    evidence.usable = pl.DataFrame({"run": ["a", "b", "c", "d"], **columns})
    return fragments.find(evidence)


def test_runs_that_discarded_datagrams_are_found_with_their_losses() -> None:
    finding = finding_of(datagrams_unassembled=[0, 12, None, 3], lost=[4, 9, 1, 2])
    assert isinstance(finding, Finding) and not finding.shown
    summary = only(finding.evidence, "fragments.summary").values
    assert summary == {"runs": 2, "counted": 3, "datagrams": 15, "lost": 11}
    (table,) = finding.parts
    assert [(row["run"], row["datagrams"], row["lost"]) for row in table.rows] == [
        ("b", 12, 9), ("d", 3, 2),
    ]  # fmt: skip


def test_without_a_discarded_datagram_or_a_counter_there_is_no_finding() -> None:
    silent = finding_of(datagrams_unassembled=[0, 0, None, 0])
    assert isinstance(silent, Silence)
    assert only(silent, "fragments.silent").values == {"counted": 3, "frames": ""}
    # Frames that a full queue dropped left incomplete datagrams, which no counter shows yet.
    saturated = finding_of(
        datagrams_unassembled=[0, 0, 0, 0], link_queue_full_share=[0.5, 0.6, 0.6, 0.5],
        link_lost_share=[0.0, 0.0, 0.0, 0.0],
    )  # fmt: skip
    shares = only(saturated, "fragments.frames").values
    assert shares["queue"] == 0.55 and shares["lost"] == 0
    absent = finding_of(lost=[0, 0, 1, 0])
    assert isinstance(absent, Silence) and absent.words.key == "fragments.not_counted"
