"""Compare all numbers of two reports on the same campaigns, made by two versions of the code.

    python -m tools.compare_pages OLD_DIR NEW_DIR [CAUSES.toml]

Each folder holds campaigns, `NAME/report/index.html`. Compared are the CSV tables; the tables,
charts and sentences of the page; and the numbers of the new `analysis.json` against the old tables.
A difference is a number that differs, or one that only one side has. CAUSES.toml names those that
are intended; the exit code is 1 if there is any other:

    [[cause]]
    name = "warm-up excluded from costs"
    commit = "4ee297f"
    where = "csv costs-by-role .*"     # regular expression on "CAMPAIGN: PLACE"
    kind = "differs"                   # or "only old", "only new"; absent: any
    change_max = 1e-6                  # at most this relative change; absent: any
"""

from __future__ import annotations

import math
import re
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from tools.report_numbers import NUMBER, Report, Table, numbers, read_report, value_of
from wattwire.catalog.manifest import tomllib

# Names that differ in the new code. All other names are the same.
RENAMED: dict[str, dict[str, str]] = {
    "section": {"asked": "design", "reproduced": "replication", "laid-out": "requested-tables"},
    "table": {"violin-power-w": "box-power-w"},
    "column": {  # table (without its number) and column
        "answers: with the runs set aside": "with the excluded runs",
        "differences: df of that": "df, means",
        "differences: of means [interval]": "means: difference [interval]",
        "controls: pairs of it": "pairs with / without",
        "latency-percentiles: lost": "lost or failed",
        "paper-path-rates: verdict turned by removal": "verdict reversed by removal",
        "provenance: rows left out": "rows excluded",
        "finding-delayed-acknowledgements: beside it": "next to the mode",
        "finding-delayed-acknowledgements: of them excluded": "excluded",
        "finding-delayed-acknowledgements: its centre ms": "centre of the mode ms",
        "reproduced-remarks: verdict": "match",
        "syscalls: its share of all CPU, %": "kernel share of CPU, %",
        "syscalls: its share of all CPU, % again": "kernel share of CPU, % again",
        "what is known": "explanation",
    },
    "cell": {
        "usable": "valid",
        "unknown": "invalid",
        "ok": "valid",
        "set aside": "excluded",
        "undecided": "no difference detected",
        "treatments left out": "treatments skipped",
        "false alarms at 5 %": "false positives at 5 %",
    },
}
ROUNDING = 1e-9  # tolerance for floating-point sums in another order
SHOWN = 1e-4  # the page's explorer stores five digits of each run's values
PAIRS_MAX = 250_000  # maximum number of pairs of unequal rows that are compared with each other
# Minimum similarity of the words around two mentions of a number. A common section adds 0.2, so an
# equal number in the same section matches even if its words are new.
SAME_VALUE_SCORE = 0.2
SAME_SECTION_SCORE = 0.5
WORD = re.compile(r"[^\W\d_]{2,}")


class Difference(NamedTuple):
    """A number that the two reports do not have in common."""

    kind: str
    where: str
    old: float | None
    new: float | None

    @property
    def change(self) -> float:
        """Return the relative change; infinite if one side has no number."""
        if self.old is None or self.new is None:
            return math.inf
        return abs(self.new - self.old) / (max(abs(self.old), abs(self.new)) or 1)


class Comparison:
    """Numbers of equal values by source, and the list of differences."""

    def __init__(self) -> None:
        self.equal: Counter[str] = Counter()
        self.rounded: Counter[str] = Counter()
        self.differences: list[Difference] = []

    def pair(self, where: str, old: float | None, new: float | None) -> None:
        """Count a number that both reports have, or store the difference."""
        source = where.split(" ", 1)[0]
        if old is None or new is None:
            self.differences.append(
                Difference("only new" if old is None else "only old", where, old, new)
            )
        elif old == new:
            self.equal[source] += 1
        elif math.isclose(old, new, rel_tol=ROUNDING):
            self.rounded[source] += 1
        else:
            self.differences.append(Difference("differs", where, old, new))

    def cells(self, where: str, old: str, new: str) -> None:
        """Compare the numbers of two cells in order, or by value if one cell has more numbers."""
        ours, theirs = numbers(old), numbers(new)
        if len(ours) != len(theirs):
            shared = Counter(ours) & Counter(theirs)
            for value in shared.elements():
                self.pair(where, value, value)
            ours = list((Counter(ours) - shared).elements())
            theirs = list((Counter(theirs) - shared).elements())
        for a, b in zip_longest(ours, theirs):
            self.pair(where, a, b)

    def table(self, name: str, old: Table, new: Table) -> None:
        """Compare two tables row by row. Rows may have moved, and words may have changed."""
        for a, b in _paired_rows(_renamed(name, old), _renamed(name, new)):
            row = a or b or {}
            title = ", ".join(v for v in row.values() if v and not _is_number(v))[:80]
            for column in dict.fromkeys([*(a or {}), *(b or {})]):
                where = f"{name} | {title} | {column}"
                self.cells(where, (a or {}).get(column, ""), (b or {}).get(column, ""))

    def text(self, old: list[tuple[str, str]], new: list[tuple[str, str]]) -> None:
        """Compare the numbers in the sentences of two pages by value and surrounding words."""
        ours, theirs = list(_in_context(old)), list(_in_context(new))
        pairs, ours, theirs = _paired_by_words(ours, theirs, "value", SAME_VALUE_SCORE)
        for a, b in pairs:
            self.pair("text", a.value, b.value)
        pairs, ours, theirs = _paired_by_words(ours, theirs, "section", SAME_SECTION_SCORE)
        for a, b in pairs:
            self.pair(f"text {b.section} | {a.snippet} → {b.snippet}", a.value, b.value)
        for a in ours:
            self.pair(f"text {a.section} | {a.snippet}", a.value, None)
        for b in theirs:
            self.pair(f"text {b.section} | {b.snippet}", None, b.value)


def _renamed(name: str, table: Table) -> Table:
    cells = RENAMED["cell"]
    columns = {}
    for column in table[0] if table else ():
        known = RENAMED["column"]
        in_table = re.sub(r"-\d+", "", f"{name.rpartition(' ')[2]}: {column}")
        columns[column] = known.get(in_table, known.get(column, column))
    return [{columns.get(k, k): cells.get(v, v) for k, v in row.items()} for row in table]


def _paired_rows(
    old: Table, new: Table
) -> Iterator[tuple[dict[str, str] | None, dict[str, str] | None]]:
    """Yield corresponding rows: equal rows, then equal labels, then the most equal cells."""
    shared = {c for row in old for c in row} & {c for row in new for c in row}
    labels = [c for c in shared if not any(_is_number(row.get(c, "")) for row in (*old, *new))]
    keys: list[Callable[[dict[str, str]], Hashable]] = [
        lambda row: tuple(row.get(c, "") for c in shared),
        lambda row: tuple(row.get(c, "") for c in labels),
    ]
    for key in keys:
        waiting = defaultdict(list)
        for row in new:
            waiting[key(row)].append(row)
        left = []
        for row in old:
            if waiting[key(row)]:
                yield row, waiting[key(row)].pop(0)
            else:
                left.append(row)
        old, new = left, [row for rows in waiting.values() for row in rows]
    if len(old) * len(new) <= PAIRS_MAX:
        for row in [*old]:
            best = max(new, key=lambda other: _equal_cells(row, other), default=None)
            if best is not None and 2 * _equal_cells(row, best) >= sum(map(bool, row.values())):
                yield row, best
                old, new = [r for r in old if r is not row], [r for r in new if r is not best]
    yield from ((row, None) for row in old)
    yield from ((None, row) for row in new)


def _is_number(cell: str) -> bool:
    return NUMBER.fullmatch(cell) is not None


def _equal_cells(a: dict[str, str], b: dict[str, str]) -> int:
    return sum(
        bool(cell) and (cell == b.get(c) or _close(cell, b.get(c, ""))) for c, cell in a.items()
    )


def _close(a: str, b: str) -> bool:
    if not (_is_number(a) and _is_number(b)):
        return False
    return math.isclose(*numbers(a), *numbers(b), rel_tol=ROUNDING)


class _Mention(NamedTuple):
    value: float
    section: str
    words: frozenset[str] = frozenset()
    snippet: str = ""


def _in_context(text: Iterable[tuple[str, str]]) -> Iterator[_Mention]:
    """Yield each number of the sentences with the five words before and after it."""
    for section, block in text:
        for match in NUMBER.finditer(block):
            before = WORD.findall(block[: match.start()])[-5:]
            after = WORD.findall(block[match.end() :])[:5]
            snippet = block[max(0, match.start() - 50) : match.end() + 40]
            words = frozenset(word.lower() for word in (*before, *after))
            yield _Mention(
                value_of(match), RENAMED["section"].get(section, section), words, snippet
            )


def _paired_by_words(
    old: Sequence[_Mention], new: Sequence[_Mention], same: str, score_min: float
) -> tuple[list[tuple[_Mention, _Mention]], list[_Mention], list[_Mention]]:
    """Return pairs with an equal field `same` and similar words, and the unpaired mentions."""
    scored = []
    for i, a in enumerate(old):
        for j, b in enumerate(new):
            if getattr(a, same) == getattr(b, same):
                score = len(a.words & b.words) / (len(a.words | b.words) or 1)
                score += 0.2 * (a.section == b.section)
                if score >= score_min:
                    scored.append((-score, abs(i - j), i, j))
    new_of: dict[int, int] = {}
    taken: set[int] = set()
    for _, _, i, j in sorted(scored):
        if i not in new_of and j not in taken:
            new_of[i] = j
            taken.add(j)
    return (
        [(old[i], new[j]) for i, j in new_of.items()],
        [a for i, a in enumerate(old) if i not in new_of],
        [b for j, b in enumerate(new) if j not in taken],
    )


def compare_analysis(comparison: Comparison, old: Report, new: Report) -> None:
    """Compare the new analysis.json with the old answers, runs and all other old numbers."""
    answers = {
        tuple(row[c] for c in ("question", "response", "level", "baseline")): row
        for name in ("csv answers", "csv differences")
        for row in old.tables.get(name, [])
    }
    for contrast in new.analysis.get("contrasts", []):
        if "estimate" not in contrast:
            continue
        named = ("question", "response_title", "level_title", "baseline_title")
        key = tuple(contrast[k] for k in named)
        kind = contrast["kind"]
        columns = {"estimate": kind, "low": f"{kind}_low", "high": f"{kind}_high"}
        for name, column in columns.items():
            value = contrast[name]
            cell = "" if value is None else repr(value)
            where = f"analysis contrasts | {', '.join(key)} | {name}"
            comparison.cells(where, answers.get(key, {}).get(column, ""), cell)
    _compare_treatments(comparison, old, new)
    pool = sorted({n for table in old.tables.values() for row in table for cell in row.values()
                   for n in numbers(cell)})  # fmt: skip
    for part in ("controls", "best_alternatives", "changes", "limits", "warm_up", "stopping"):
        for path, value in _leaves(new.analysis.get(part)):
            near = [n for n in pool if math.isclose(n, value, rel_tol=ROUNDING)]
            comparison.pair(f"analysis {part} | {path}", near[0] if near else None, value)


def _compare_treatments(comparison: Comparison, old: Report, new: Report) -> None:
    """Compare medians and geometric means with the old page's runs, to five digits."""
    titles = {c["response"]: c["response_title"] for c in new.analysis.get("contrasts", [])}
    means: dict[str, Callable[[list[float]], float]] = {
        "medians": statistics.median,
        "geometric_means": statistics.geometric_mean,
    }
    for treatment in new.analysis.get("treatments", []):
        levels = {str(level) for level in treatment["levels"].values()}
        runs = [
            run for run in old.runs
            if run["used"] == "usable"
            and levels == {v for k, v in run.items() if re.fullmatch(r"f\d+", k)}
        ]  # fmt: skip
        for part, mean in means.items():
            for response, value in treatment[part].items():
                cells = [run.get(f"metric {titles.get(response)}", "") for run in runs]
                before = [float(cell) for cell in cells if cell]
                is_infinite = "latency" in response and not all(cells)  # the page has no number
                if value is None or not before or is_infinite:
                    continue
                where = f"analysis treatments | {sorted(levels)} | {part} of {response}"
                is_same = math.isclose(mean(before), value, rel_tol=SHOWN)
                comparison.pair(where, value if is_same else mean(before), value)


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers of a document, each with its path."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{index}]")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, float(value)


def compare(old: Report, new: Report) -> Comparison:
    """Return the equal and the differing numbers of two reports."""
    comparison = Comparison()
    names_now = {}
    for name in old.tables:
        kind, _, rest = name.rpartition(" ")
        names_now[name] = f"{kind} {RENAMED['table'].get(rest, rest)}".strip()
    for name, now in names_now.items():
        comparison.table(now, old.tables[name], new.tables.get(now, []))
    for name in new.tables.keys() - names_now.values():
        comparison.table(name, [], new.tables[name])
    comparison.text(old.text, new.text)
    compare_analysis(comparison, old, new)
    return comparison


# Printing


def cause_of(campaign: str, difference: Difference, causes: Iterable[dict[str, Any]]) -> str:
    """Return the name of the first cause that explains a difference; "" without a cause."""
    for cause in causes:
        if (
            re.search(cause["where"], f"{campaign}: {difference.where}")
            and cause.get("kind", difference.kind) == difference.kind
            and difference.change <= cause.get("change_max", math.inf)
        ):
            return str(cause["name"])
    return ""


def main(arguments: Sequence[str]) -> int:
    """Print the comparison of each campaign; return 1 if a difference has no known cause."""
    if len(arguments) not in (2, 3):
        print(__doc__)
        return 2
    old, new = Path(arguments[0]), Path(arguments[1])
    causes = []
    if len(arguments) == 3:
        causes = tomllib.loads(Path(arguments[2]).read_text("utf-8"))["cause"]
    unexplained = 0
    pages = sorted(old.glob("*/report/index.html"))
    if not pages:
        print(f"{old}: no campaign with a report here, as in {old}/NAME/report/index.html")
        return 2
    for page in pages:
        campaign = page.parents[1].name
        result = compare(read_report(page.parent), read_report(new / campaign / "report"))
        named = [(cause_of(campaign, d, causes), d) for d in result.differences]
        unexplained += sum(not name for name, _ in named)
        _print_campaign(campaign, result, named)
    print(f"\n{unexplained} differences without a known cause")
    return int(unexplained > 0)


def _print_campaign(
    campaign: str, result: Comparison, named: Sequence[tuple[str, Difference]]
) -> None:
    kinds = Counter(difference.kind for _, difference in named)
    equal, rounded = result.equal.total(), result.rounded.total()
    print(f"\n== {campaign}")
    print(f"{equal + rounded + kinds['differs']} numbers compared: {equal} equal, {rounded} equal")
    print(f"to {ROUNDING:g}, {kinds['differs']} differ; {kinds['only old']} only old,", end=" ")
    print(f"{kinds['only new']} only new")
    sources = result.equal + result.rounded
    print("  equal by source: " + ", ".join(f"{k} {n}" for k, n in sources.items()))
    for (name, kind), count in sorted(Counter((n, d.kind) for n, d in named).items()):
        print(f"  {count:5} {kind}: {name or 'NO KNOWN CAUSE'}")
    rows: Counter[str] = Counter()
    for name, difference in sorted(named, key=lambda entry: (entry[0], entry[1].where)):
        place = f"[{name or '?'}] {difference.kind}: {difference.where}"
        if difference.kind != "differs" and not difference.where.startswith("text"):
            rows[place] += 1
            continue
        print(f"    {place}: " + " → ".join("-" if v is None else f"{v!r}" for v in difference[2:]))
    for place, count in rows.items():
        print(f"    {place}: {count} numbers")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
