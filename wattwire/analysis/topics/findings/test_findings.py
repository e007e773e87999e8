"""Tests of the page's section on findings, with their strength or the reasons for none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wattwire.analysis.answering.answer_types import Answers
from wattwire.analysis.latency import Series
from wattwire.analysis.topics.findings.datagrams import DropRun, Drops
from wattwire.analysis.topics.findings.detector import Searched
from wattwire.analysis.topics.findings.fragments.numbers import Discards, Fragments
from wattwire.analysis.topics.findings.idle.numbers import Idle
from wattwire.analysis.topics.findings.numbers import Detection, Findings, detectors, findings
from wattwire.analysis.topics.findings.tests.made_up import FACTORS, evidence_of
from wattwire.report.parts import Table, Text
from wattwire.report.topic_page import TopicPage, topic_page

DISCARDS = Discards(Drops(3, (DropRun((), "b", 12.0, 9.0),), {}, {}))
FRAGMENTS = Detection("findings/fragments", Fragments((DISCARDS,), 3))
IDLE = Detection("findings/idle", Idle())


def keys_of(page: TopicPage) -> list[tuple[str, str]]:
    texts = (part for _, part in page.parts if isinstance(part, Text))
    return [(text.key, text.value) for text in texts if text.key]


def test_a_finding_has_its_strength_its_parts_and_the_other_detectors_below() -> None:
    result = Findings(True, True, (FRAGMENTS, IDLE))
    assert [found.finding for found in result.found] == [DISCARDS]
    assert result.silent == (IDLE,)
    page = topic_page("findings", result)
    assert keys_of(page) == [
        ("findings/fragments", "suspected"), ("fragments.runs", "1"), ("findings.silent", "1"),
    ]  # fmt: skip
    assert [part.id for _, part in page.parts if isinstance(part, Table)] == [
        "finding-unassembled-datagrams"
    ]
    ((place, line),) = page.terminal_lines
    assert place == (60,)
    assert line == "Findings: datagrams discarded during reassembly (suspected)."
    assert not page.has_no_data


def test_a_cause_that_the_study_shows_is_called_shown() -> None:
    shown = Fragments((replace(DISCARDS, is_shown=True),), 3)
    page = topic_page("findings", Findings(True, True, (Detection("findings/fragments", shown),)))
    assert keys_of(page)[0] == ("findings/fragments", "shown by this study")
    assert keys_of(page)[-1] != ("findings.silent", "0")


def test_without_a_finding_the_reasons_stand_alone() -> None:
    page = topic_page("findings", Findings(True, True, (IDLE,)))
    assert keys_of(page) == [("findings.silent", "1")]
    assert page.terminal_lines == page.lines == ()
    assert page.title and page.has_no_data


def test_a_campaign_without_a_usable_run_is_not_called_clean() -> None:
    answers = Answers((), 1, 0.95, None, 0)
    result = findings(evidence_of(FACTORS), {"b1-p1": Series(np.array([]), 0)}, answers)
    assert result == Findings(is_searched=True)
    assert keys_of(topic_page("findings", result)) == [("findings.no_latencies", "")]


def test_the_page_of_a_campaign_without_messages_has_no_findings() -> None:
    assert topic_page("findings", Findings()).title == ""


@pytest.mark.parametrize("name", detectors())
def test_a_detector_states_why_it_has_no_finding(name: str) -> None:
    result = detectors()[name].search(Searched(evidence_of(FACTORS), []))
    assert not result.found
    page = topic_page("findings", Findings(True, True, (Detection(f"findings/{name}", result),)))
    *_, (_, reason) = page.parts
    assert isinstance(reason, Text) and reason.key == "findings.silent"
    assert len(reason.words) > len("No finding.")
