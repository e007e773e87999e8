"""Tests of the page's section on findings, with their strength or the reasons for none."""

from __future__ import annotations

import numpy as np

from wattwire.analysis.latency import Series
from wattwire.report.findings.finding import Finding, Silence
from wattwire.report.findings.part import Findings, look
from wattwire.report.findings.tests.made_up import FACTORS, evidence_of
from wattwire.report.parts import Text
from wattwire.report.sections.findings import section
from wattwire.report.tests.phrase_search import keys_in, only

ONE = Finding("one", "Messages wait", False, "A cause.", ("12 of 20 messages.",), "Vary it.")


def texts_of(findings: Findings) -> list[str]:
    """Return the texts after the explanation of the section."""
    return [part.words for part in section(findings).parts if isinstance(part, Text)][1:]


def test_a_finding_says_cause_evidence_and_what_would_prove_it() -> None:
    found = Findings((ONE,), (Silence("One rate."),))
    title, *texts, others = texts_of(found)
    assert title.values["finding"] == ONE.title
    assert title.values["standing"].key == "finding.suspected"
    assert texts == [ONE.cause, *ONE.evidence, ONE.settles]
    assert (others.key, others.values["reasons"]) == ("findings.other_detectors", "One rate.")
    assert only(found.in_short, "all_findings.finding").values["title"] == ONE.title


def test_without_a_finding_the_reasons_stand_alone() -> None:
    silent = Findings((), (Silence("One rate."),))
    (text,) = texts_of(silent)
    assert (text.key, text.values["reasons"]) == ("findings.no_finding", "One rate.")
    assert silent.in_short == ""


def test_a_campaign_without_a_usable_run_is_not_called_clean() -> None:
    evidence = evidence_of(FACTORS)
    found = look(evidence, {"b1-p1": Series(np.array([]), 0)})
    assert keys_in(texts_of(found)) == ["findings.no_finding", "all_findings.no_latencies"]
