"""Build the section on variants, with the verdicts that `compare` gives for the campaign."""

from __future__ import annotations

from typing import Any

from wattwire import stats
from wattwire.analysis.comparing.common import Wanted, judges_variants
from wattwire.analysis.comparing.decision import WORSE, Item
from wattwire.analysis.comparing.within_campaign import compare_inside
from wattwire.analysis.dataset import Evidence
from wattwire.model.errors import UsageError
from wattwire.report.page_parts import PagePart
from wattwire.report.parts import Column, Fold, Section, Table, Text
from wattwire.report.print.comparison import basis, completed
from wattwire.report.words import comparing
from wattwire.report.words.comparing_notes import notes
from wattwire.report.words.phrases import Phrases

PHRASES = Phrases(
    "variants",
    {
        "title": "Variants",
        "table": "Verdicts by treatment",
        "basis": "Basis of these verdicts",
    },
)


def section(evidence: Evidence) -> Section | None:
    """Return the section with every treatment's verdict, or None for a study without variants."""
    if not judges_variants(evidence):
        return None
    part = Section("variants", PHRASES("title"))
    try:
        judged = compare_inside(evidence, Wanted())
    except UsageError:
        part.parts.append(Text(comparing.verdict(evidence), "warning"))
        return part
    part.parts.append(
        Text(comparing.first_line(judged), "warning" if judged.verdict == WORSE else "lead")
    )
    part.parts += [Text(sentence) for sentence in completed(judged)]
    part.parts.append(_table([_row(item) for item in judged.shown], basis(judged)))
    part.parts.append(Fold(PHRASES("basis"), [Text(note) for note in notes(judged)]))
    return part


def _row(item: Item) -> dict[str, Any]:
    ranks = item.by_ranks
    return {
        "treatment": item.treatment,
        "response": item.response.title,
        "head": item.head,
        "base": item.base,
        "verdict": item.verdict,
        "ratio": None if item.shares else item.ratio if item.exact is None else item.exact,
        "ranks": ranks,
        "level": 100 * ranks.level if isinstance(ranks, stats.Interval) else None,
        "runs": item.base_runs + item.head_runs,
        "why": comparing.result_of(item) if item.shares or item.values else comparing.why(item),
    }


def _table(rows: list[dict[str, Any]], note: str) -> Table:
    return Table(
        "variants",
        PHRASES("table"),
        [
            Column("treatment", "treatment"),
            Column("response", "response"),
            Column("head", "variant"),
            Column("base", "against"),
            Column("verdict", "verdict"),
            Column("ratio", "ratio [interval]", "measured"),
            Column("ranks", "by ranks", "measured"),
            Column("level", "exact confidence level", "measured", "%", 4),
            Column("runs", "runs", "measured"),
            Column("why", "reason"),
        ],
        rows,
        note,
    )


PART = PagePart(20, lambda data: [section(data.evidence)])
