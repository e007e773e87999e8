"""Read the numbers of a report: CSV tables, tables, charts and text of the page, analysis.json."""

from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

# Exclude the digits of names (p99, b01-p001, v1.2.3). A no-break space separates thousands.
NUMBER = re.compile(
    r"(?<![\w.])[-−+]?\d+(?:[\u202f\xa0,]\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?"
    r"(?:\s?×\s?10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?"
)
SUPERSCRIPT = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")

Table = list[dict[str, str]]


class Report(NamedTuple):
    """Content of a report: tables by name, and the other text of the page by section."""

    tables: dict[str, Table]
    text: list[tuple[str, str]]
    runs: Table
    analysis: dict[str, Any]


def numbers(text: str) -> list[float]:
    """Return the numbers in `text`, in order."""
    return [value_of(match) for match in NUMBER.finditer(text)]


def value_of(match: re.Match[str]) -> float:
    """Return the value of a matched number."""
    digits = re.sub("[\u202f\xa0,]", "", match[0]).replace("−", "-")
    mantissa, _, exponent = re.sub(r"\s", "", digits).partition("×10")
    return float(f"{mantissa}e{exponent.translate(SUPERSCRIPT)}") if exponent else float(mantissa)


class _Page(HTMLParser):
    """Parser that collects the visible text of a page: tables by name, other blocks by section."""

    CELLS = frozenset({"td", "th"})
    BLOCKS = CELLS | {"p", "li", "h1", "h2", "h3", "summary", "section", "table"}

    def __init__(self) -> None:
        super().__init__()
        self.section, self.table, self.hidden, self.script = "header", "", "", ""
        self.rows: dict[str, list[list[str]]] = defaultdict(list)
        self.headers: dict[str, list[str]] = {}
        self.text: list[tuple[str, str]] = []
        self.scripts: dict[str, str] = {}
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        identity = dict(attributes).get("id") or ""
        if tag in self.BLOCKS:
            self._end_of_block(tag)
        if tag in ("script", "style", "nav") and not self.hidden:
            self.hidden, self.script = tag, identity
        if tag == "section":
            self.section = identity
        if tag == "div" and identity.startswith("table-"):
            self.table = identity.removeprefix("table-")
        if tag == "tr":
            self.rows[self.table].append([])

    def handle_endtag(self, tag: str) -> None:
        if tag in self.CELLS:
            self.rows[self.table][-1].append(self._words())
        elif tag in self.BLOCKS:
            self._end_of_block(tag)
        if tag == "thead":
            self.headers[self.table] = self.rows[self.table].pop()
        if tag == self.hidden:
            self.hidden = ""

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.words.append(data)
        elif self.script:
            self.scripts[self.script] = self.scripts.get(self.script, "") + data

    def tables(self) -> Iterator[tuple[str, Table]]:
        """Yield the name and the rows of each table; the columns have the titles of its heading."""
        for name, rows in self.rows.items():
            titles: list[str] = []
            for title in self.headers.get(name, []):
                titles.append(title + " again" * titles.count(title))
            yield (
                name,
                [
                    {
                        title or str(i): cell
                        for i, (title, cell) in enumerate(zip_longest(titles, row, fillvalue=""))
                    }
                    for row in rows
                ],
            )

    def _words(self) -> str:
        text = re.sub(r"[ \n]+", " ", "".join(self.words)).strip()
        self.words = []
        return text

    def _end_of_block(self, tag: str) -> None:
        if text := self._words():
            self.text.append((self.section, text))


def _unpacked(packed: dict[str, Any]) -> Table:
    """Return the rows of a page's packed columns, with all cells as text."""
    columns = {}
    for name, column in packed["columns"].items():
        cells = column
        if isinstance(column, dict):
            cells = [None if at is None else column["words"][at] for at in column["at"]]
        columns[name] = ["" if c is None else c if isinstance(c, str) else repr(c) for c in cells]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def read_report(folder: Path) -> Report:
    """Return the content of the report in `folder`."""
    tables: dict[str, Table] = {}
    for path in sorted(folder.glob("tables/*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            tables[f"csv {path.stem}"] = list(csv.DictReader(file))
    page = _Page()
    page.feed((folder / "index.html").read_text("utf-8"))
    tables.update((f"page table {name}", table) for name, table in page.tables())
    drawn = json.loads(page.scripts.get("charts") or '{"charts": {}}')
    for name, chart in drawn["charts"].items():
        if "datasets" in chart:
            points = drawn["points"][chart["datasets"]["points"]]
            tables[f"chart {name}"] = _unpacked(points)
    explorer = json.loads(page.scripts.get("explorer-data", "{}"))
    runs = _unpacked(explorer["runs"]) if explorer else []
    titles = [entry["title"] for entry in explorer.get("responses", [])]
    for run in runs:
        for index, title in enumerate(titles):
            run[f"metric {title.rpartition(' (')[0] or title}"] = run.pop(f"r{index}", "")
    analysis = folder / "analysis.json"
    return Report(
        tables | {"explorer": runs},
        page.text,
        runs,
        json.loads(analysis.read_text("utf-8")) if analysis.exists() else {},
    )
