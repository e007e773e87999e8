"""Build the section on system calls: the calls by treatment, and the largest differences.

Separate runs count system calls. Their times are not used.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from wattwire.analysis.charts import rounded
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.syscalls import SHOWN_MIN, Traced, collect, differing, documents_of
from wattwire.model import words
from wattwire.report.figures.calls import OTHER, calls_chart
from wattwire.report.figures.style import PALETTE
from wattwire.report.page_parts import PagePart
from wattwire.report.parts import Column, Figure, Fold, Section, Table, Text
from wattwire.report.tables.factor_columns import factor_columns
from wattwire.report.words.phrases import Phrase, Phrases

PHRASES = Phrases(
    "syscalls",
    {
        "title": "System calls",
        "what": (
            "After all other runs, the system calls of {runs:plural separate run} were counted. No "
            "other number on this page comes from such runs. The number of calls is divided by the "
            "number of messages sent. {method}"
        ),
        "strace": (
            "strace -c -f counted all system calls of each process. The counts include the start "
            "and the exit of the process, whose share decreases with the number of messages. The "
            "time of a call is its CPU time in the kernel as reported by strace, including the "
            "cost of tracing."
        ),
        "ebpf": (
            "The kernel (eBPF) counted the system calls from the end of the silent baseline "
            "to the end of the window. The time of a call is from entry to return, including "
            "waiting. Calls that wait (futex, epoll_wait, poll and similar) use no CPU while "
            "they wait and are listed separately; of the other calls, reads from a socket may "
            "also wait. CPU time in the kernel covers the process tree and has the resolution "
            "of the kernel's clock tick."
        ),
        "instead": "The calls were counted with strace instead of in the kernel: {reason}.",
        "uncounted": (
            "{calls:plural call was/calls were} not counted, because the tables were full."
        ),
        "none_valid": "No run in which system calls were counted is valid.",
        "one_treatment": "the treatment",
        "table": "System calls and kernel time",
        "note": (
            "Each value is a mean per message over the runs in which system calls were counted."
        ),
        # The figure.
        "figure": "System calls per message",
        "caption": (
            "Number of system calls per message, by name of the call, summed over all process "
            "trees. The most frequent calls have separate colours."
        ),
        # Comparison of the most and the least efficient treatment.
        "sides": "Comparison of the most and the least efficient treatment",
        "sides_note": (
            "Values are per message and summed over all process trees. The efficiency of a "
            "treatment is its median CPU time per message in the timed runs. If the counts of a "
            "call differ, this call is not necessarily the cause of the difference in CPU time."
        ),
        "difference": (
            "{level}{worst} used {ratio} times the CPU time of {best} and made {worst_calls:number "
            "3} system calls per message, compared with {best_calls:number 3}.{calls}"
        ),
        "level": "{level}: ",
        "calls": " The counts differ most for {calls:listed}.",
        "call": "{call} ({counts})",
        "counts": "{first:number 2} against {second:number 2}",
        # Table of all calls.
        "each": "Every system call",
        "each_note": (
            "The table omits calls that were made fewer than {least:g} times per message; the sums "
            "include them."
        ),
    },
)

STRACE = "strace"
GROUPED_BY = "language"
"""Factor within whose levels treatments are compared. If it does not vary, the first varied factor
other than the primary factor is used.
"""


def section(evidence: Evidence) -> Section | None:
    """Return the section on system calls, or None if no planned run counts them."""
    planned = [entry for entry in evidence.plan if entry.get("control") == "syscalls"]
    if not planned:
        return None
    part = Section("syscalls", PHRASES("title"))
    documents = documents_of(evidence)
    treatments = [
        replace(traced, title=traced.title or PHRASES("one_treatment"))
        for traced in collect(evidence, documents)
    ]
    part.parts.append(Text(_method_text(documents, len(planned))))
    part.parts += [Text(warning, "warning") for warning in _warnings(documents)]
    if not treatments:
        part.parts.append(Text(PHRASES("none_valid"), "warning"))
        return part
    part.parts.append(_per_treatment(evidence, treatments, documents))
    part.parts.append(_figure(treatments))
    part.parts += _side_by_side(evidence, treatments)
    part.parts.append(Fold(PHRASES("each"), [_every_call(evidence, treatments)]))
    return part


# -- sentences -------------------------------------------------------------------------------


def _by_strace(documents: Sequence[Mapping[str, Any]]) -> bool:
    return any(document.get("way") == STRACE for document in documents)


def _method_text(documents: Sequence[Mapping[str, Any]], planned: int) -> Phrase:
    method = PHRASES("strace") if _by_strace(documents) else PHRASES("ebpf")
    return PHRASES("what", runs=planned, method=method)


def _warnings(documents: Sequence[Mapping[str, Any]]) -> list[Phrase]:
    reasons = dict.fromkeys(
        str(d["because"]) for d in documents if d.get("way") == STRACE and d.get("because")
    )
    sentences = [PHRASES("instead", reason=reason) for reason in reasons]
    uncounted = sum(
        process.get("uncounted") or 0
        for document in documents
        for process in (document.get("processes") or {}).values()
    )
    if uncounted:
        sentences.append(PHRASES("uncounted", calls=round(uncounted)))
    return sentences


# -- tables ----------------------------------------------------------------------------------


def _roles(treatments: Sequence[Traced]) -> list[str]:
    """Return the roles sorted by name, which places clients before servers."""
    return sorted({role for treatment in treatments for role in treatment.calls})


def _per_treatment(
    evidence: Evidence, treatments: Sequence[Traced], documents: Sequence[Mapping[str, Any]]
) -> Table:
    strace = _by_strace(documents)
    columns = list(factor_columns(evidence))
    for role in _roles(treatments):
        title = role.replace("_", " ")
        columns += [
            Column(f"{role}_calls", "calls", "measured", group=title),
            Column(f"{role}_kernel", "CPU in the kernel, µs", "measured", group=title),
        ]
        if strace:
            continue
        columns += [
            Column(f"{role}_share", "kernel share of CPU, %", "measured", group=title),
            Column(f"{role}_working", "in working calls, µs", "measured", group=title),
            Column(f"{role}_waiting", "in wait-like calls, µs", "measured", group=title),
        ]
    rows = []
    for treatment in treatments:
        row: dict[str, Any] = dict(zip(evidence.varied, treatment.levels, strict=True))
        for role, calls in treatment.calls.items():
            figures = treatment.figures.get(role, {})
            share = figures.get("kernel_share")
            row[f"{role}_calls"] = sum(value[0] for value in calls.values())
            row[f"{role}_kernel"] = figures.get("kernel_us_per_message")
            row[f"{role}_share"] = None if share is None else 100 * share
            row[f"{role}_working"] = figures.get("syscall_working_us_per_message")
            row[f"{role}_waiting"] = figures.get("syscall_waiting_us_per_message")
        rows.append(row)
    return Table("syscalls", PHRASES("table"), columns, rows, PHRASES("note"))


def _every_call(evidence: Evidence, treatments: Sequence[Traced]) -> Table:
    columns = [
        *factor_columns(evidence),
        Column("role", "process tree"),
        Column("call", "call"),
        Column("calls", "per message", "measured"),
        Column("us", "time per message, µs", "measured"),
        Column("us_each", "time per call, µs", "measured"),
    ]
    rows: list[dict[str, Any]] = []
    for treatment in treatments:
        levels = dict(zip(evidence.varied, treatment.levels, strict=True))
        for role in sorted(treatment.calls):
            shown = sorted(treatment.calls[role].items(), key=lambda pair: -pair[1][0])
            rows += [
                {
                    **levels, "role": role.replace("_", " "), "call": name, "calls": count,
                    "us": us, "us_each": us / count if count else None,
                }
                for name, (count, us) in shown
                if count >= SHOWN_MIN
            ]  # fmt: skip
    note = PHRASES("each_note", least=SHOWN_MIN)
    return Table("syscalls_each", PHRASES("each"), columns, rows, note)


# -- comparison ------------------------------------------------------------------------------


def _grouping_factor(evidence: Evidence) -> str | None:
    other_factors = [name for name in evidence.varied if name != evidence.primary]
    if GROUPED_BY in evidence.varied and len(evidence.varied) > 1:
        return GROUPED_BY
    return other_factors[0] if other_factors else None


def _side_by_side(evidence: Evidence, treatments: Sequence[Traced]) -> list[Any]:
    """Return a table and sentences that compare the most and the least efficient treatments.

    Treatments are compared within each level of the grouping factor, if there is such a factor. The
    result is empty if there are no two treatments to compare.
    """
    factor = _grouping_factor(evidence)
    index = evidence.varied.index(factor) if factor else None
    groups: dict[str, list[Traced]] = {}
    for treatment in treatments:
        if math.isfinite(treatment.cpu_us):
            groups.setdefault("" if index is None else treatment.levels[index], []).append(
                treatment
            )
    rows, sentences = [], []
    for level, members in groups.items():
        if len(members) < 2:
            continue
        best, worst = (choose(members, key=lambda traced: traced.cpu_us) for choose in (min, max))
        pairs = differing(best, worst)
        title = evidence.title(factor, level) if factor else ""
        rows.append(
            {
                "level": level, "best": best.title, "best_cpu": best.cpu_us,
                "best_calls": best.total, "worst": worst.title, "worst_cpu": worst.cpu_us,
                "worst_calls": worst.total,
                "calls": "; ".join(f"{name} {_pair_text(pair)}" for name, pair in pairs),
            }
        )  # fmt: skip
        sentences.append(_sentence(title, best, worst, pairs))
    if not rows:
        return []
    head = Column("level", words.factor_title(factor) if factor else "", factor=factor or "")
    columns = [
        head if factor is None else next(c for c in factor_columns(evidence) if c.key == factor),
        Column("best", "treatment", group="most efficient"),
        Column("best_cpu", "CPU, µs", "measured", group="most efficient"),
        Column("best_calls", "calls", "measured", group="most efficient"),
        Column("worst", "treatment", group="least efficient"),
        Column("worst_cpu", "CPU, µs", "measured", group="least efficient"),
        Column("worst_calls", "calls", "measured", group="least efficient"),
        Column("calls", "calls that differ most (most, least efficient)"),
    ]
    if factor:
        rows = [{**row, factor: row["level"]} for row in rows]
    return [
        Table("syscalls_sides", PHRASES("sides"), columns, rows, PHRASES("sides_note")),
        *(Text(sentence) for sentence in sentences),
    ]


def _pair_text(pair: tuple[float, float]) -> Phrase:
    return PHRASES("counts", first=pair[0], second=pair[1])


def _sentence(
    title: str, best: Traced, worst: Traced, pairs: Sequence[tuple[str, tuple[float, float]]]
) -> Phrase:
    ratio = words.number(worst.cpu_us / best.cpu_us, 3) if best.cpu_us > 0 else words.MISSING
    calls = [
        PHRASES("call", call=name, counts=_pair_text((in_worst, in_best)))
        for name, (in_best, in_worst) in pairs
    ]
    return PHRASES(
        "difference",
        level=PHRASES("level", level=title) if title else "",
        worst=worst.title,
        ratio=ratio,
        best=best.title,
        worst_calls=worst.total,
        best_calls=best.total,
        calls=PHRASES("calls", calls=calls) if calls else "",
    )


# -- figure ----------------------------------------------------------------------------------


def _figure(treatments: Sequence[Traced]) -> Figure:
    """Return stacked bars of calls per message, in which rare calls share a colour."""
    sums: dict[str, float] = defaultdict(float)
    for treatment in treatments:
        for name, count in treatment.merged().items():
            sums[name] += count / max(treatment.total, SHOWN_MIN)  # equal weight per treatment
    frequent = sorted(sums, key=lambda name: -sums[name])[: len(PALETTE) - 1]
    points = []
    for treatment in treatments:
        counts: dict[str, float] = defaultdict(float)
        for name, count in treatment.merged().items():
            counts[name if name in frequent else OTHER] += count
        points += [
            {
                "treatment": treatment.title,
                "colour": name,
                "value": rounded(counts[name]),
                "place": index,
            }
            for index, name in enumerate([*frequent, OTHER])
            if counts.get(name)
        ]
    chart = calls_chart(points, [treatment.title for treatment in treatments], [*frequent, OTHER])
    return Figure("syscalls", PHRASES("figure"), PHRASES("caption"), chart)


PART = PagePart(100, lambda data: [section(data.evidence)], measured_only=True)
