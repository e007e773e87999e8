"""Build the section on limits, which are bounds on responses."""

from __future__ import annotations

from wattwire.analysis.answering.confidence import CONFIDENCE
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.limits import any_broken, check_limits
from wattwire.report.page_parts import HeadLine, PageData, PagePart
from wattwire.report.parts import Column, Section, Table, Text
from wattwire.report.words import limits
from wattwire.report.words.phrases import Phrases

PHRASES = Phrases(
    "limits",
    {
        "title": "Limits",
        "table": "Limits on responses",
        "note": (
            "Each interval is computed from one value per run, in the response's unit. The "
            "intervals are simultaneous over all limits at {confidence:confidence} (Bonferroni). "
            "“Holds”: the whole interval is within the limit. “Broken”: the whole interval is "
            "beyond the limit."
        ),
    },
)


def section(evidence: Evidence) -> Section | None:
    """Return the section on limits, or None for a study without limits."""
    checked = check_limits(evidence)
    if not checked:
        return None
    part = Section("limits", PHRASES("title"))
    part.parts.append(Text(limits.in_short(checked), "warning" if any_broken(checked) else ""))
    rows = [
        {
            "limit": limits.limit(check),
            "verdict": check.verdict,
            "value": check.estimate,
            "runs": check.runs,
            "base": limits.base_value(check),
            "unsent": 100 * check.unsent_share,
        }
        for check in checked
    ]
    bases = (
        [Column("base", "base variant, not judged")] if any(check.base for check in checked) else []
    )
    is_any_unsent = any(check.unsent_share for check in checked)
    unsent = [Column("unsent", "due messages never sent", "measured", "%")] if is_any_unsent else []
    part.parts.append(
        Table(
            "limits",
            PHRASES("table"),
            [
                Column("limit", "limit"),
                Column("verdict", "verdict"),
                Column("value", "typical run [interval]", "measured"),
                Column("runs", "runs", "measured"),
                *unsent,
                *bases,
            ],
            rows,
            PHRASES("note", confidence=CONFIDENCE),
        )
    )
    return part


def _head(data: PageData) -> list[HeadLine]:
    checked = check_limits(data.evidence)
    return [HeadLine(10, limits.in_short(checked), page_only=True)] if checked else []


PART = PagePart(30, lambda data: [section(data.evidence)], _head)
