"""The page's part: what is found stands with its standing, what is silent with its reason."""

from __future__ import annotations

import numpy as np

from wattwire.analysis.latency import Series
from wattwire.report.findings.finding import Finding, Silence
from wattwire.report.findings.part import Findings, look
from wattwire.report.findings.tests.made_up import FACTORS, evidence_of
from wattwire.report.parts import Text
from wattwire.report.sections.findings import section

ONE = Finding("one", "Messages wait", False, "A cause.", ("12 of 20 messages.",), "Vary it.")


def words_of(findings: Findings) -> list[str]:
    return [part.words for part in section(findings).parts if isinstance(part, Text)]


def test_a_finding_says_cause_evidence_and_what_would_prove_it() -> None:
    found = Findings((ONE,), (Silence("One rate."),))
    told = words_of(found)
    assert told[1:] == [
        "Messages wait: suspected",
        "A cause.",
        "12 of 20 messages.",
        "Vary it.",
        "Other detectors: One rate.",
    ]
    assert found.in_short == "Found: messages wait (suspected)."


def test_without_a_finding_the_reasons_stand_alone() -> None:
    silent = Findings((), (Silence("One rate."),))
    assert words_of(silent)[1:] == ["No finding. One rate."]
    assert silent.in_short == ""


def test_a_campaign_without_a_usable_run_is_not_called_clean() -> None:
    evidence = evidence_of(FACTORS)
    found = look(evidence, {"b1-p1": Series(np.array([]), 0)})
    assert words_of(found)[1:] == ["No finding. No usable run has latencies to analyse."]
