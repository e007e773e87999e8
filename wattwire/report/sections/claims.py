"""Build the section on claims of a publication, each shown, refuted or not answerable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from wattwire import stats
from wattwire.analysis.answering.answer_types import Answers
from wattwire.analysis.answering.confidence import CONFIDENCE
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.publication.claims import (
    NOT_ANSWERABLE,
    REFUTED,
    REFUTED_IN_PART,
    SHOWN,
    SHOWN_IN_PART,
    UNDECIDED,
    Comparison,
    DecidedClaim,
    DecidedClaims,
    Levels,
)
from wattwire.analysis.responses import resolve
from wattwire.model import words
from wattwire.model.treatment import Level
from wattwire.report.page_parts import HeadLine, PageData, PagePart
from wattwire.report.parts import Column, Section, Table, Text
from wattwire.report.words.phrases import Phrase, Phrases, joined

PHRASES = Phrases(
    "claims",
    {
        "title": "Claims of the publication",
        "lead": (
            "The claims are those of the publication; the verdicts hold for the machine and the "
            "programs of this campaign."
        ),
        "claim": "Claim {number} ({source}): {text}",
        "table": "Comparisons that decide the claims",
        "note": (
            "Ratio: the geometric mean of the left side divided by that of the right side, within "
            "blocks, times the multiples. It comes from the model of the answers, fitted to the "
            "runs of comparisons that differ only in numeric levels. Sides are matched over the "
            "other factors. The intervals are "
            "simultaneous over {family:plural ratio} of all claims at {confidence:confidence} "
            "(Bonferroni); the answers are a separate family. “Lower” and “higher”: the interval "
            "excludes 1.{margin} A claim that the left side is lower is shown if it is lower, and "
            "refuted if it is higher or equivalent. A claim that the sides are equal is shown if "
            "they are equivalent, and refuted if one is lower. A claim that the left side is at "
            "most equal is shown in both cases, and refuted if it is higher. No other result "
            "decides the claim."
        ),
        "margin": " “Equivalent”: the interval is within the study's margin of ± {margin:percent}.",
        "measured": "measured",
        "of_estimate": "estimate",
        # The lines at the top of the page.
        "counts": "Claims of the publication: {counts:listed}.",
        "count": "{claims} {verdict}",
        "question": "{question} “{text}” {answer}",
        # The verdict on a claim, with its ratios.
        "verdict": "{verdict:capital}. {ratios}",
        "ratios": "{response:capital} of {left} divided by that of {right}{where}: {groups}.",
        "where": " ({levels})",
        "times": "{times:g} × {side}",
        "group": "{outcome}: {ratios:listed 8}",
        "ratio": "{interval:interval}{label}",
        "label": " ({name})",
        "at": "{sides} at {levels}",
        "estimate": (
            "The ratio is an estimate, because a multiple of a measured value was not itself "
            "measured."
        ),
        "no_number": "Without a ratio: {reasons}.",
        "reason": "{labels:listed 8}: {reason}",
        "not_answerable": "Not answerable: {reason}.",
    },
)
VERDICTS = (SHOWN, SHOWN_IN_PART, REFUTED, REFUTED_IN_PART, UNDECIDED, NOT_ANSWERABLE)
"""Verdicts in the order of the page."""
OUTCOMES: Mapping[str, str] = {"lower": "lower", "higher": "higher", **words.OUTCOMES}
"""Outcome of a comparison → its text, in the order of a sentence."""


def section(evidence: Evidence, answers: Answers, decided: DecidedClaims) -> Section:
    """Return the section of a study with claims."""
    part = Section("claims", PHRASES("title"), [Text(PHRASES("lead"), "note")])
    for number, item in enumerate(decided.items, 1):
        claim = item.claim
        title = PHRASES("claim", number=number, source=claim.source, text=claim.text)
        part.parts += [Text(title, "question"), Text(sentence(evidence, item), "item")]
        part.parts += [Text(claim.note, "note")] if claim.note else []
    table = _table(evidence, answers, decided)
    part.parts += [table] if table.rows else []
    return part


def _table(evidence: Evidence, answers: Answers, decided: DecidedClaims) -> Table:
    rows: list[dict[str, Any]] = []
    for number, item in enumerate(decided.items, 1):
        claim = item.claim
        for comparison in item.comparisons:
            left, right = (
                times(multiple, side_title(evidence, side))
                for multiple, side in (
                    (claim.left_times, comparison.left),
                    (claim.right_times, comparison.right),
                )
            )
            has_ratio = isinstance(comparison.result, stats.Interval)
            kind = PHRASES("of_estimate") if claim.is_estimate else PHRASES("measured")
            rows.append(
                {
                    "claim": str(number),
                    "response": resolve(claim.response, evidence.described).title,
                    "left": left,
                    "right": right,
                    "at": side_title(evidence, comparison.at),
                    "ratio": comparison.result,
                    "kind": kind if has_ratio else "",
                    "outcome": OUTCOMES.get(comparison.outcome, ""),
                    "decision": comparison.decision,
                }
            )
    margin = PHRASES("margin", margin=answers.margin) if answers.margin is not None else ""
    note = PHRASES("note", family=decided.family, confidence=CONFIDENCE, margin=margin)
    columns = [
        Column("claim", "claim"),
        Column("response", "response"),
        Column("left", "left"),
        Column("right", "right"),
        Column("at", "at"),
        Column("ratio", "left / right [interval]", "measured"),
        Column("kind", "kind"),
        Column("outcome", "left is"),
        Column("decision", "claim"),
    ]
    return Table("claims", PHRASES("table"), columns, rows, note)


def in_short(evidence: Evidence, decided: DecidedClaims) -> Phrase:
    """Return the numbers of claims by verdict, and the answers to the questions of claims."""
    counted = Counter(item.verdict for item in decided.items)
    counts = [
        PHRASES("count", claims=counted[verdict], verdict=verdict)
        for verdict in VERDICTS
        if counted[verdict]
    ]
    answers = [
        PHRASES(
            "question",
            question=item.claim.question,
            text=item.claim.text,
            answer=_answer(evidence, item),
        )
        for item in decided.items
        if item.claim.question
    ]
    return joined([*answers, PHRASES("counts", counts=counts)])


def sentence(evidence: Evidence, item: DecidedClaim) -> Phrase:
    """Return the verdict on a claim, with the ratios that decide it or the reason for none."""
    ratios = _ratios(evidence, item)
    if not ratios:
        return PHRASES("not_answerable", reason=item.reason or _reasons(evidence, item))
    sentences = joined([ratios, *_notes(evidence, item)])
    return PHRASES("verdict", verdict=item.verdict, ratios=sentences)


def _answer(evidence: Evidence, item: DecidedClaim) -> Phrase:
    """Return the verdict on a claim with its ratios, or the reason for none, without notes."""
    ratios = _ratios(evidence, item)
    if not ratios:
        return PHRASES("not_answerable", reason=item.reason or _reasons(evidence, item))
    return PHRASES("verdict", verdict=item.verdict, ratios=ratios)


def _notes(evidence: Evidence, item: DecidedClaim) -> list[Phrase]:
    notes = [PHRASES("estimate")] if item.claim.is_estimate else []
    reasons = _reasons(evidence, item)
    return [*notes, *([PHRASES("no_number", reasons=reasons)] if reasons else [])]


def _ratios(evidence: Evidence, item: DecidedClaim) -> Phrase:
    """Return the ratios of a claim by outcome; "" if it has none."""
    claim = item.claim
    groups = []
    for outcome, text in OUTCOMES.items():
        compared = [entry for entry in item.comparisons if entry.outcome == outcome]
        if compared:
            ratios = [_ratio(evidence, item, entry) for entry in compared]
            groups.append(PHRASES("group", outcome=text, ratios=ratios))
    if not groups:
        return Phrase()
    rest = {name: levels for name, levels in claim.where.items() if name not in claim.by}
    where = [_either(evidence, name, levels) for name, levels in rest.items()]
    return PHRASES(
        "ratios",
        response=resolve(claim.response, evidence.described).title,
        left=times(claim.left_times, _sides(evidence, claim.left)),
        right=times(claim.right_times, _sides(evidence, claim.right)),
        where=PHRASES("where", levels=", ".join(where)) if where else "",
        groups=joined(groups, "; "),
    )


def _ratio(evidence: Evidence, item: DecidedClaim, comparison: Comparison) -> Phrase:
    name = label(evidence, item, comparison)
    label_phrase = PHRASES("label", name=name) if name else ""
    return PHRASES("ratio", label=label_phrase, interval=comparison.result)


def _reasons(evidence: Evidence, item: DecidedClaim) -> Phrase | str:
    """Return the reasons why comparisons have no ratio; "" if all have one.

    A reason names its comparisons unless it holds for all of them.
    """
    labels: dict[str, list[str]] = {}
    for entry in item.comparisons:
        if not isinstance(entry.result, stats.Interval):
            labels.setdefault(str(entry.result), []).append(label(evidence, item, entry))
    if [len(names) for names in labels.values()] == [len(item.comparisons)]:
        return next(iter(labels))
    return joined(
        (PHRASES("reason", labels=names, reason=reason) for reason, names in labels.items()), "; "
    )


def label(evidence: Evidence, item: DecidedClaim, comparison: Comparison) -> str:
    """Return the levels that distinguish a comparison from the others of its claim."""
    sides = [
        side_title(evidence, {name: level for name, level in side.items() if len(listed[name]) > 1})
        for side, listed in (
            (comparison.left, item.claim.left),
            (comparison.right, item.claim.right),
        )
    ]
    varied, at = " / ".join(filter(None, sides)), side_title(evidence, comparison.at)
    return PHRASES("at", sides=varied, levels=at) if varied and at else varied or at


def side_title(evidence: Evidence, levels: Levels) -> str:
    """Return the names of some levels, separated by commas."""
    return ", ".join(evidence.title(*level) for level in levels.items())


def times(multiple: float, side: str) -> str:
    """Return the name of a side with its multiple."""
    return side if multiple == 1 else PHRASES("times", times=multiple, side=side)


def _sides(evidence: Evidence, levels: Mapping[str, Sequence[Level]]) -> str:
    return ", ".join(_either(evidence, name, allowed) for name, allowed in levels.items())


def _either(evidence: Evidence, factor: str, levels: Sequence[Level]) -> str:
    return words.listed([evidence.title(factor, level) for level in levels])


def _head(data: PageData) -> list[HeadLine]:
    if not data.evidence.study.claims:
        return []
    return [HeadLine(5, in_short(data.evidence, data.claims))]


def _sections(data: PageData) -> list[Section]:
    if not data.evidence.study.claims:
        return []
    return [section(data.evidence, data.answers, data.claims)]


PART = PagePart(12, _sections, _head)
