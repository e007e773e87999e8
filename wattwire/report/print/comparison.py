"""A comparison for a terminal, for a pull request (Markdown) and for a build server (JUnit)."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from wattwire import stats
from wattwire.analysis.comparing.decision import (
    COMPLETED,
    CONFIDENCE,
    UNCLEAR,
    WORSE,
    Item,
    Judged,
    factor,
)
from wattwire.analysis.limits import BROKEN, Checked, in_short
from wattwire.model import words

MARKS = {WORSE: "❌ worse", UNCLEAR: "❔ cannot tell"}
OK_MARK = "✅"


def first_line(judged: Judged | None, limits: Sequence[Checked]) -> str:
    """The answer in plain words: of the comparison, of the limits, or of both."""
    told = [judged.first_line()] if judged else []
    return " ".join([*told, in_short(limits)] if limits else told)


def text_lines(judged: Judged | None, limits: Sequence[Checked] = ()) -> list[str]:
    """Comparison and limits in plain lines; the first is the answer."""
    told = [first_line(judged, limits), ""]
    if judged is not None:
        told += [*_table(judged.shown), ""]
    told += [f"Limit {one.sentence()}" for one in limits]
    return told + _remarks(judged)


def _table(shown: Sequence[Item]) -> list[str]:
    rows = [(item.treatment, item.response.title, item.verdict, _numbers(item)) for item in shown]
    widths = [max(len(row[at]) for row in rows) for at in range(3)] if rows else []
    told = []
    for row in rows:
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)]
        told.append("  " + "  ".join([*cells, row[3]]))
    return told


def _remarks(judged: Judged | None) -> list[str]:
    if judged is None:
        return []
    detectable = filter(None, (judged.detectable_words(),))
    return [*detectable, *completed(judged), basis(judged), *judged.notes]


def nothing_usable(judged: Judged | None, limits: Sequence[Checked]) -> bool:
    """Whether there is no valid run to compare; without a comparison, none to hold to a limit."""
    if judged is not None:
        return judged.nothing_usable
    return bool(limits) and all(one.runs == 0 for one in limits)


def completed(judged: Judged) -> list[str]:
    """One line for all the treatments in which every run completed; none where there is none."""
    good = [item for item in judged.items if item.unremarkable]
    if not good:
        return []
    runs = words.plural(sum(item.base_runs + item.head_runs for item in good), "run")
    rest = sum(item.response == COMPLETED for item in judged.items) - len(good)
    where = f", in {words.plural(len(good), 'treatment')} of {len(good) + rest}" if rest else ""
    return [f"Every run completed: {runs}{where}."]


def basis(judged: Judged) -> str:
    """What the intervals are and what they hold with."""
    together = f"{words.confidence(CONFIDENCE)} together"
    looks = f" and {judged.looks} looks" if judged.looks > 1 else ""
    return (
        f"Ratios are of geometric means, head over base; {judged.method}. Intervals hold at "
        f"{together} over {words.plural(judged.family, 'answer')}{looks} (Bonferroni: each at "
        f"{words.confidence(judged.level)}). Worse: the whole interval lies beyond the margin. "
        "Not worse: none of it does."
    )


def markdown(judged: Judged | None, limits: Sequence[Checked] = ()) -> str:
    """Comparison and limits for a pull request or a job's summary."""
    lines = [f"**{_escaped(first_line(judged, limits))}**"]
    if judged is not None:
        lines += ["", "| treatment | response | verdict | ratio | by ranks | runs |"]
        lines += ["|---|---|---|---|---|---|"]
        for item in judged.shown:
            mark = MARKS.get(item.verdict, f"{OK_MARK} {item.verdict}")
            cells = (item.treatment, item.response.title, mark, _numbers(item), _ranks(item))
            lines.append(_row(*cells, f"{item.base_runs} + {item.head_runs}"))
    if limits:
        lines += ["", "| limit | verdict | value |", "|---|---|---|"]
        for one in limits:
            mark = "❌" if one.verdict == BROKEN else OK_MARK if one.sure else "❔"
            lines.append(_row(one.what(), f"{mark} {one.verdict}", one.value()))
    remarks = [f"- {_escaped(note)}" for note in _remarks(judged)]
    return "\n".join([*lines, *([""] if remarks else []), *remarks]) + "\n"


def _row(*cells: str) -> str:
    return "| " + " | ".join(_escaped(cell) for cell in cells) + " |"


def junit(
    judged: Judged | None, limits: Sequence[Checked] = (), unclear_is_bad: bool = False
) -> str:
    """JUnit XML: a test case for each treatment and response, and for each limit.

    Worse is a failure; what cannot be told is skipped, or a failure where that counts as bad.
    Where no run is valid, a case of its own is an error, so that a build server shows no success.
    """
    suites = ElementTree.Element("testsuites", name="wattwire")
    if judged is not None:
        cases = [
            _Case(f"{item.head} against {item.base}", f"{item.response.title}, {item.treatment}",
                  item.verdict == WORSE, item.verdict == UNCLEAR, _message(item))
            for item in judged.items
        ]  # fmt: skip
        suite = _suite(suites, "compare", cases, unclear_is_bad)
        notes = ElementTree.SubElement(suite, "system-out")
        notes.text = "\n".join((judged.first_line(), *_remarks(judged)))
    if limits:
        of_limits = [
            _Case("limits", one.what(), one.verdict == BROKEN, not one.sure, one.sentence())
            for one in limits
        ]
        _suite(suites, "limits", of_limits, unclear_is_bad)
    if nothing_usable(judged, limits):
        _no_valid_run(suites, first_line(judged, limits))
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True).decode() + "\n"


def _no_valid_run(suites: ElementTree.Element, message: str) -> None:
    """A suite of one case that is an error."""
    suite = ElementTree.SubElement(
        suites, "testsuite", name="runs", tests="1", failures="0", errors="1", skipped="0", time="0"
    )
    case = ElementTree.SubElement(
        suite, "testcase", classname="runs", name="there are valid runs", time="0"
    )
    ElementTree.SubElement(case, "error", message=message, type="no valid run").text = message


class _Case:
    """A test case before it is XML."""

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


def _numbers(item: Item) -> str:
    if item.response == COMPLETED:
        return item.why
    if isinstance(item.difference or item.ratio, stats.Interval) and item.why:
        return f"{item.ratio_words()}; {item.why}"
    return item.ratio_words()


def _message(item: Item) -> str:
    return f"{item.verdict}: {_numbers(item)} ({item.base_runs} + {item.head_runs} runs)"


def _ranks(item: Item) -> str:
    if not isinstance(item.by_ranks, stats.Interval):
        return words.MISSING
    found = item.by_ranks
    return (
        f"{factor(found.estimate)} ({factor(found.low)} to {factor(found.high)}, "
        f"{words.confidence(found.level)})"
    )


def _escaped(text: str) -> str:
    """Text that a Markdown table's cell shows as it is."""
    for mark in "\\|<>*_`":
        text = text.replace(mark, f"&#{ord(mark)};" if mark in "<>|" else f"\\{mark}")
    return text.replace("\n", " ")
