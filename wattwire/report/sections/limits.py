"""The page's part on limits: what the study says a response may be at most or at least."""

from __future__ import annotations

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.limits import CONFIDENCE, any_broken, check_limits, in_short
from wattwire.model import words
from wattwire.report.parts import Column, Section, Table, Text


def section(evidence: Evidence) -> Section | None:
    """The page's part on limits; None where the study has none."""
    checked = check_limits(evidence)
    if not checked:
        return None
    part = Section("limits", "Limits")
    part.parts.append(Text(in_short(checked), "warning" if any_broken(checked) else ""))
    rows = [
        {
            "limit": one.what(),
            "verdict": one.verdict,
            "value": one.found,
            "runs": one.runs,
            "base": one.base_value(),
        }
        for one in checked
    ]
    bases = [Column("base", "base variant, not judged")] if any(o.base for o in checked) else []
    part.parts.append(
        Table(
            "limits",
            "What the study asks of its responses",
            [
                Column("limit", "limit"),
                Column("verdict", "verdict"),
                Column("value", "typical run [interval]", "measured"),
                Column("runs", "runs", "measured"),
                *bases,
            ],
            rows,
            "Intervals over run summaries, in the response's unit, all limits together at "
            f"{words.confidence(CONFIDENCE)} (Bonferroni). Holds: the whole interval keeps the "
            "limit. Broken: none of it does.",
        )
    )
    return part
