"""Read the header and the rows of a CSV file. For text that is no CSV table, name the cause."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

import polars as pl

from wattwire.imports import formats
from wattwire.model.errors import UsageError

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
"""Syntax of a number; Python's float also accepts 1_000 and digits of other scripts."""
DELIMITERS = ",;\t"
SAMPLE_LINES = 30
"""Number of lines from which the delimiter and the cause of an error are determined."""
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
"""First line by which Excel declares the delimiter."""
_ALIGNED = re.compile(r"\S {2,}\S")

LINE = " line"
"""Column of the line numbers. No column of a file has this name, because names are stripped."""
HEAD_CHARACTERS = 100_000
SNIFFED = 10_000
"""Characters in which the format of a text that is no table is recognized."""
CHUNK_ROWS = 1 << 16
"""Rows that are in memory as Python objects, which take ten times the memory of columns."""


def read_table(path: Path) -> pl.DataFrame:
    """Return the cells as texts, in columns named by the header, and the line of each row in LINE.

    Raise UsageError with the line and the probable cause of an error.
    """
    head = _head(path)
    first, _, rest = head.partition("\n")
    declared = _SEPARATOR_LINE.fullmatch(first)
    body = rest if declared else head
    _check_format(path, body)
    delimiter = declared[1] if declared else _delimiter(body)
    with path.open(encoding="utf-8-sig") as file:
        try:
            lines = _lines(path, file, delimiter, 1 if declared else 0)
            sample = list(itertools.islice(lines, SAMPLE_LINES))
            header = _header(path, sample, delimiter)
            rows = itertools.chain(sample[1:], lines)
            frames = []
            while chunk := list(itertools.islice(rows, CHUNK_ROWS)):
                for line, cells in chunk:
                    if len(cells) != len(header):
                        raise UsageError(
                            f"{path}: line {line}: found {len(cells)} cells; the header has "
                            f"{len(header)}." + _cause(sample, delimiter, cells)
                        )
                frames.append(_frame(header, chunk))
        except UnicodeDecodeError as error:
            raise _not_utf8(path, error) from error
    return pl.concat(frames)


def _frame(header: Sequence[str], rows: Sequence[tuple[int, list[str]]]) -> pl.DataFrame:
    columns = zip(*(cells for _, cells in rows), strict=True)
    return pl.DataFrame(
        [
            pl.Series(LINE, [line for line, _ in rows], dtype=pl.Int64),
            *(pl.Series(*named, dtype=pl.String) for named in zip(header, columns, strict=True)),
        ]
    )


def _lines(
    path: Path, file: TextIO, delimiter: str, lines_before: int
) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the stripped cells of the first line and of each filled line."""
    for _ in range(lines_before):
        next(file, "")
    reader = csv.reader(file, delimiter=delimiter)
    is_first = True
    try:
        for cells in reader:
            stripped = [cell.strip() for cell in cells]
            if is_first or any(stripped):
                yield lines_before + reader.line_num, stripped
                is_first = False
    except csv.Error as error:
        line = lines_before + reader.line_num
        raise UsageError(f"{path}: line {line}: cannot be read as CSV ({error})") from error


def _head(path: Path) -> str:
    """Return the beginning of the file, from which its format is determined."""
    if path.is_dir():
        raise UsageError(f"{path}: this is a folder; name a CSV file with a header line")
    if not path.is_file():
        raise UsageError(f"{path}: this file does not exist; name a CSV file with a header line")
    with path.open("rb") as file:
        compression = formats.compression(file.read(8))
    if compression:
        raise UsageError(
            f"{path}: this file is compressed ({compression}); decompress it, or save it as CSV"
        )
    try:
        with path.open(encoding="utf-8-sig") as file:
            return file.read(HEAD_CHARACTERS)
    except UnicodeDecodeError as error:
        raise _not_utf8(path, error) from error


def _not_utf8(path: Path, error: UnicodeDecodeError) -> UsageError:
    return UsageError(f"{path}: not UTF-8 text ({error.reason}); save it as CSV in UTF-8.")


def _check_format(path: Path, text: str) -> None:
    """Raise UsageError for JSON, reports of tools, and a comment in the first line."""
    start = text.lstrip()
    tool = formats.known(start[:SNIFFED])
    if tool:
        raise UsageError(f"{path}: line 1: this is {tool.name}, not a table. {tool.remedy}")
    if start.startswith(("{", "[")) and '":' in start[:SNIFFED]:
        kind = "NDJSON" if start.startswith("{") and formats.is_ndjson(start) else "JSON"
        raise UsageError(
            f"{path}: line 1: this is {kind}, not CSV. Convert the records to a CSV file with a "
            "header line and a row per run."
        )
    if start.startswith(("#", "//", "%")):
        line = text[: len(text) - len(start)].count("\n") + 1
        raise UsageError(
            f'{path}: line {line}: found "{_short(start)}"; the first line must name the columns. '
            "Delete comments, and the comment character if it precedes the column names."
        )


def check_no_log(path: Path, header: Sequence[str]) -> None:
    """Raise UsageError if the columns are those of a load generator's log of requests."""
    tool = formats.log_of(header)
    if tool:
        raise UsageError(
            f"{path}: line 1: these are the columns of {tool}, whose rows are requests within a "
            "run and not independent runs. Name the column of the run with --run COL, or write a "
            f"number of each log, such as its median, to {formats.ROW_PER_RUN}. If each row is a "
            "run, add --rows-are-runs."
        )


def _delimiter(text: str) -> str:
    """Return the delimiter with which all sampled lines have the same number of cells.

    If there is none, return the most frequent delimiter of the first line.
    """
    first = text.partition("\n")[0]

    def rank(delimiter: str) -> tuple[bool, int]:
        sizes = {len(cells) for cells in _sampled(text, delimiter) if any(map(str.strip, cells))}
        return len(sizes) == 1 and sizes != {1}, first.count(delimiter)

    return max(DELIMITERS, key=rank)


def _sampled(text: str, delimiter: str) -> list[list[str]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        return list(itertools.islice(reader, SAMPLE_LINES))
    except csv.Error:
        return []


def _header(path: Path, lines: Sequence[tuple[int, list[str]]], delimiter: str) -> list[str]:
    """Return the names of the columns. Raise UsageError if the first line is not a header."""
    line, header = lines[0] if lines else (1, [])
    if not any(header):
        raise UsageError(f"{path}: the file is empty; its first line must name the columns")
    if len(lines) == 1:
        raise UsageError(f"{path}: the file has a header but no rows; add at least one row")
    if len(header) == 1 and header[0].count("|") > 1:
        raise UsageError(
            f'{path}: line {line}: the columns are separated by "|". Separate them with commas, '
            "semicolons or tabs."
        )
    spaced = " " in header[0] and all(len(cells) == 1 for _, cells in lines)
    if len(header) == 1 and (spaced or _ALIGNED.search(header[0])):
        raise UsageError(
            f"{path}: line {line}: the columns are separated by spaces. Separate them with commas, "
            "semicolons or tabs."
        )
    repeated = [name for index, name in enumerate(header) if name in header[:index]]
    if "" in repeated:
        raise UsageError(
            f"{path}: line {line}: {header.count('')} columns have no name. Delete lines above the "
            "names of the columns, such as merged headings, and name each column."
            + _cause(lines, delimiter, header)
        )
    if repeated:
        raise UsageError(
            f'{path}: line {line}: found two columns "{repeated[0]}"; rename one of them.'
            + _cause(lines, delimiter, header)
        )
    data = [cells for _, cells in lines[1 : SAMPLE_LINES + 1] if len(cells) == len(header)]
    numeric = [
        index
        for index in range(len(header))
        if data and all(NUMBER.fullmatch(cells[index]) for cells in data)
    ]
    if numeric and all(NUMBER.fullmatch(header[index]) for index in numeric):
        raise UsageError(
            f"{path}: line {line}: found numbers instead of names of columns "
            f"({_short(', '.join(header))}). Add a header line. If these are names, add a letter "
            "to each."
        )
    return header


def _cause(lines: Sequence[tuple[int, list[str]]], delimiter: str, cells: Sequence[str]) -> str:
    """Return a sentence on the probable cause of an unexpected number of cells, or ""."""
    if cells[0].startswith(("#", "//", "%")):
        return " This line looks like a comment; delete comments."
    sampled = lines[:SAMPLE_LINES]
    sizes = Counter(len(cells) for _, cells in sampled)
    size = max(sizes, key=lambda size: (size > 1, sizes[size]))
    begin = next(line for line, cells in sampled if len(cells) == size)
    if sizes[size] > 1 and len(lines[0][1]) < size and begin > lines[1][0]:
        return (
            f" Line {begin} looks like the header: delete the lines before it, and write what they "
            "state into columns."
        )
    numbers = [cells[0] for _, cells in lines[1:]]
    if len(cells) == len(lines[0][1]) + 1 and numbers == [str(n + 1) for n in range(len(numbers))]:
        return (
            " If the first cells are numbers of rows, as in tables of R, add a name for their "
            "column at the beginning of the header line."
        )
    if delimiter == "," and len(sizes) > 1 and max(sizes) > len(lines[0][1]):
        return (
            " A comma may be part of a number or of a name: put such cells in quotes, write "
            "numbers with decimal points, or separate the cells with semicolons."
        )
    return ""


def _short(text: str) -> str:
    line = text.partition("\n")[0]
    return line if len(line) <= 40 else line[:40] + "…"
