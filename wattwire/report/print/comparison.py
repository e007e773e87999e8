"""Format a comparison for pull requests (Markdown) and build servers (JUnit)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

from wattwire import stats
from wattwire.analysis.topics.comparison.decision import (
    UNCLEAR,
    WORSE,
    Item,
)
from wattwire.analysis.topics.comparison.result import Comparison
from wattwire.analysis.topics.limits.numbers import BROKEN, Limits
from wattwire.analysis.topics.limits.numbers import UNCLEAR as UNDECIDED
from wattwire.model import words
from wattwire.report.topic_page import Sentences

MARKS = {WORSE: "❌ worse", UNCLEAR: "❔ cannot tell"}
LIMIT_MARKS = {BROKEN: "❌", UNDECIDED: "❔"}
OK_MARK = "✅"
NO_LIMITS = Limits()
COMPARISON, LIMIT = Sentences("comparison"), Sentences("limits")


def first_line(judged: Comparison | None, limits: Limits) -> str:
    """Return sentences on the results of the comparison and the limits."""
    sentences = [COMPARISON.first_line(judged)] if judged else []
    return " ".join([*sentences, LIMIT.summary(limits)] if limits.checks else sentences)


def rows(judged: Comparison) -> list[tuple[str, str, str, str]]:
    """Return treatment, response, verdict, and ratio or reason of each shown comparison."""
    return [
        (item.treatment, item.response.title, item.verdict, COMPARISON.numbers_and_reason(item))
        for item in judged.shown
    ]


def limit_sentences(limits: Limits) -> list[str]:
    """Return a sentence on each limit of the study."""
    return [f"Limit {LIMIT.sentence(check)}" for check in limits.checks]


def remarks(judged: Comparison | None) -> list[str]:
    """Return sentences on detectable changes, completed runs, the method, and other notes."""
    if judged is None:
        return []
    # The first line of an undecided comparison already has the detectable changes.
    detectable = "" if judged.verdict == UNCLEAR else COMPARISON.detectable(judged)
    sentences = [detectable, COMPARISON.completed(judged), COMPARISON.basis(judged)]
    return [*filter(None, sentences), *map(COMPARISON.note, judged.notes)]


def nothing_usable(judged: Comparison | None, limits: Limits) -> bool:
    """Return whether the comparison or, without a comparison, the limits have no valid run."""
    return limits.nothing_usable if judged is None else judged.nothing_usable


def markdown(judged: Comparison | None, limits: Limits = NO_LIMITS) -> str:
    """Return the comparison and the limits as Markdown, for pull requests and job summaries."""
    lines = [f"**{_escaped(first_line(judged, limits))}**"]
    if judged is not None:
        lines += ["", "| treatment | response | verdict | ratio | by ranks | runs |"]
        lines += ["|---|---|---|---|---|---|"]
        for item in judged.shown:
            mark = MARKS.get(item.verdict, f"{OK_MARK} {item.verdict}")
            cells = (
                item.treatment,
                item.response.title,
                mark,
                COMPARISON.numbers_and_reason(item),
                COMPARISON.by_ranks(item) or words.MISSING,
            )
            lines.append(_row(*cells, f"{item.base_runs} + {item.head_runs}"))
    if limits.checks:
        lines += ["", "| limit | verdict | value |", "|---|---|---|"]
        for check in limits.checks:
            mark = f"{LIMIT_MARKS.get(check.verdict, OK_MARK)} {check.verdict}"
            lines.append(_row(LIMIT.limit(check), mark, LIMIT.value(check)))
    bullets = [f"- {_escaped(note)}" for note in remarks(judged)]
    return "\n".join([*lines, *([""] if bullets else []), *bullets]) + "\n"


def _row(*cells: str) -> str:
    return "| " + " | ".join(_escaped(cell) for cell in cells) + " |"


def junit(
    judged: Comparison | None, limits: Limits = NO_LIMITS, unclear_is_bad: bool = False
) -> str:
    """Return JUnit XML with a test case per treatment and response, and per limit.

    A worse result is a failure. An unclear verdict is a skipped case, or a failure if
    `unclear_is_bad`. If no run is valid, an additional case is an error, so that the build does not
    succeed.
    """
    suites = ElementTree.Element("testsuites", name="wattwire")
    if judged is not None:
        cases = [
            _Case(f"{item.head} against {item.base}", f"{item.response.title}, {item.treatment}",
                  item.verdict == WORSE, item.verdict == UNCLEAR, COMPARISON.message(item))
            for item in judged.items
        ]  # fmt: skip
        suite = _suite(suites, "compare", cases, unclear_is_bad)
        output = ElementTree.SubElement(suite, "system-out")
        output.text = "\n".join((COMPARISON.first_line(judged), *remarks(judged)))
    if limits.checks:
        limit_cases = [
            _Case("limits", LIMIT.limit(check), check.verdict == BROKEN,
                  check.verdict == UNDECIDED, LIMIT.sentence(check))
            for check in limits.checks
        ]  # fmt: skip
        _suite(suites, "limits", limit_cases, unclear_is_bad)
    if nothing_usable(judged, limits):
        _no_valid_run(suites, first_line(judged, limits))
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True).decode() + "\n"


def _no_valid_run(suites: ElementTree.Element, message: str) -> None:
    """Add a test suite with a single case that is an error."""
    suite = ElementTree.SubElement(
        suites, "testsuite", name="runs", tests="1", failures="0", errors="1", skipped="0", time="0"
    )
    case = ElementTree.SubElement(
        suite, "testcase", classname="runs", name="there are valid runs", time="0"
    )
    ElementTree.SubElement(case, "error", message=message, type="no valid run").text = message


class _Case:
    """The content of a JUnit test case."""

    def __init__(self, group: str, name: str, bad: bool, unclear: bool, message: str) -> None:
        self.group, self.name, self.bad = group, name, bad
        self.unclear, self.message = unclear, message


def _suite(
    suites: ElementTree.Element, name: str, cases: Sequence[_Case], unclear_is_bad: bool
) -> ElementTree.Element:
    failed = [case.bad or (case.unclear and unclear_is_bad) for case in cases]
    skipped = sum(case.unclear and not unclear_is_bad for case in cases)
    suite = ElementTree.SubElement(
        suites, "testsuite", name=name, tests=str(len(cases)), failures=str(sum(failed)),
        errors="0", skipped=str(skipped), time="0",
    )  # fmt: skip
    for case, bad in zip(cases, failed, strict=True):
        element = ElementTree.SubElement(
            suite, "testcase", classname=case.group, name=case.name, time="0"
        )
        if bad:
            kind = WORSE if case.bad else UNCLEAR
            failure = ElementTree.SubElement(element, "failure", message=case.message, type=kind)
            failure.text = case.message
        elif case.unclear:
            ElementTree.SubElement(element, "skipped", message=case.message)
    return suite


def json_document(judged: Comparison) -> dict[str, Any]:
    """Return a comparison as JSON values."""
    return {
        "verdict": judged.verdict,
        "first_line": COMPARISON.first_line(judged),
        "base": judged.base,
        "heads": list(judged.heads),
        "margin": judged.margin,
        "level_together": judged.confidence,
        "level_of_each": judged.level,
        "family": judged.family,
        "looks": judged.looks,
        "method": COMPARISON.method(judged),
        "nothing_usable": judged.nothing_usable,
        "detectable": {response.column: shares for response, shares in judged.detectable().items()},
        "items": [_item_json(item) for item in judged.items],
        "notes": [*map(COMPARISON.note, judged.notes)],
    }


def _item_json(item: Item) -> dict[str, Any]:
    ratio = item.ratio if isinstance(item.ratio, stats.Interval) else None
    by_ranks = item.by_ranks if isinstance(item.by_ranks, stats.Interval) else None
    difference = item.difference if isinstance(item.difference, stats.Interval) else None
    return {
        "treatment": item.treatment,
        "response": item.response.column,
        "head": item.head,
        "verdict": item.verdict,
        "ratio": _finite(ratio.estimate) if ratio else item.exact,
        "low": _finite(ratio.low) if ratio else None,
        "high": _finite(ratio.high) if ratio else None,
        "by_ranks": [
            _finite(v) for v in (by_ranks.estimate, by_ranks.low, by_ranks.high, by_ranks.level)
        ]
        if by_ranks
        else None,
        "shares": [_finite(share) for share in item.shares] if item.shares else None,
        "values": list(item.values) if item.values else None,
        "difference": [difference.estimate, difference.low, difference.high]
        if difference
        else None,
        "base_runs": item.base_runs,
        "head_runs": item.head_runs,
        "noise_factor": math.exp(item.noise) if item.noise is not None else None,
        "why": COMPARISON.why(item) or (None if ratio or difference else str(item.ratio)),
    }


def _finite(value: float) -> float | None:
    """Return `value`, or None for infinity and NaN, which JSON cannot represent."""
    return value if math.isfinite(value) else None


def _escaped(text: str) -> str:
    """Return `text` escaped for a cell of a Markdown table."""
    for mark in "\\|<>*_`":
        text = text.replace(mark, f"&#{ord(mark)};" if mark in "<>|" else f"\\{mark}")
    return text.replace("\n", " ")
