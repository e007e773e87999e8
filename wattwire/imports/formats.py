"""Recognize the output of common tools that is no table, and name how to make a table of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "Zstandard",
    b"PK\x03\x04": "a ZIP archive or a workbook such as .xlsx",
}
"""First bytes of compressed files → format."""
ROW_PER_RUN = "a CSV file with a header line and a row per run"


@dataclass(frozen=True)
class Known:
    """Output of a tool, recognized by `pattern` in the first characters of a file."""

    name: str
    pattern: re.Pattern[str]
    remedy: str


KNOWN = (
    Known(
        "hyperfine's JSON",
        re.compile(r'\{\s*"results"\s*:\s*\[\s*\{\s*"command"'),
        f'Each number in "times" of a command is a run: write {ROW_PER_RUN}, with the columns '
        "command and time. (--export-csv of hyperfine has only a mean per command.)",
    ),
    Known(
        "a summary of k6",
        re.compile(r'"http_req_duration(\{[^"]*\})?"\s*:'),
        "A summary describes one run: keep one file per run, and write the numbers to compare, "
        f'such as "med", to {ROW_PER_RUN}.',
    ),
    Known(
        "a report of ghz",
        re.compile(r'"latencyDistribution"\s*:'),
        "A report describes one run: keep one file per run, and write the numbers to compare, "
        f'such as "latency" at 50 %, to {ROW_PER_RUN}.',
    ),
    Known(
        "a report of wrk",
        re.compile(r"Running \S+ test @ .*\n.*threads and .*connections"),
        "A report describes one run: keep one file per run, and write the numbers to compare, "
        f"such as the latency at 50 %, to {ROW_PER_RUN}.",
    ),
    Known(
        "a report of GNU time",
        re.compile(r"\s*Command being timed:"),
        "A report describes one run. To write rows instead, use "
        "`time --append --output runs.csv --format LEVEL,%e,%M`, and add a header line.",
    ),
)


LOGS = {
    "k6's CSV": {"metric_name", "timestamp", "metric_value"},
    "ghz's CSV": {"duration (ms)", "status", "error"},
    "JMeter's log": {"timeStamp", "elapsed", "label", "responseCode"},
    "oha's CSV": {"request-start", "request-duration"},
    "hey's CSV": {"response-time", "DNS+dialup", "status-code"},
}
"""Logs of load generators with a row per request → columns that they have."""


def log_of(header: Iterable[str]) -> str | None:
    """Return the log of requests that has these columns, or None."""
    columns = set(header)
    return next((name for name, known in LOGS.items() if known <= columns), None)


def compression(start: bytes) -> str | None:
    """Return the format of a compressed file by its first bytes, or None."""
    return next((name for magic, name in COMPRESSED.items() if start.startswith(magic)), None)


def known(text: str) -> Known | None:
    """Return the tool whose output begins with `text`, or None."""
    return next((tool for tool in KNOWN if tool.pattern.search(text)), None)


def is_ndjson(text: str) -> bool:
    """Return whether the first line of a JSON text is a whole value and another value follows."""
    first, _, rest = text.lstrip().partition("\n")
    try:
        json.loads(first)
    except ValueError:
        return False
    return rest.lstrip().startswith("{")
