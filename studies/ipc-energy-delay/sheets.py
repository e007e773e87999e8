"""Read the authors' own sheets: a column per language, a row per run, without the run's date.

`statistics_<node>/<ipc>.txt` holds the sums of samples of each run, and `measurements/` what the
tables were made from: energies (padded there), times, and resources. No run is made from a row
of theirs: nothing links it to a pass. Medians behind printed numbers come from them where the
passes themselves are not all here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .observed import LANGUAGES, Collected

_SHORT = {
    "c#": "csharp", "csharp": "csharp", "go": "go", "java": "java", "js": "javascript",
    "javascript": "javascript", "php": "php", "py": "python", "python": "python", "ruby": "ruby",
}  # fmt: skip
METRICS = {"mrss": "memory_max_kib", "mpf": "faults_minor", "vcs": "switches_voluntary"}
_METRIC_ORDER = ("mpf", "mrss", "vcs")
SHEET_BYTES_MAX = 4_000_000
WHY = "sheet whose rows nothing links to a pass; printed numbers are compared with it"


@dataclass(frozen=True)
class Sheet:
    """Columns of numbers by name, in the file's order of rows; None where a cell holds none."""

    file: str
    columns: Mapping[str, tuple[float | None, ...]]
    rows: int

    def known(self, name: str) -> list[float]:
        """The numbers above zero of a column; the authors write 0 and NaN for what is missing."""
        return [value for value in self.columns.get(name, ()) if value]


Sheets = dict[tuple[str, str, str, str], Sheet]
"""(platform, kind, node or role, technology); kinds: sums, padded, time, resources."""


def read(source: Path, folders: Mapping[str, Path], collected: Collected) -> Sheets:
    """Read the sheets that tables are compared with; others are set aside by name."""
    found: Sheets = {}
    for platform, folder in folders.items():
        for place in ("statistics_client", "statistics_server", "measurements"):
            base = folder / place
            for path in sorted(p for p in base.rglob("*") if p.is_file()):
                name = path.relative_to(source).as_posix().encode("utf-8", "replace").decode()
                wanted = _kind(place, path.relative_to(base).as_posix())
                if wanted is None:
                    collected.leave(name, "summary or copy of sheets that stand beside it")
                    continue
                sheet = _sheet(path, name)
                if isinstance(sheet, str):
                    collected.leave(name, sheet)
                    continue
                found[(platform, *wanted)] = sheet
                collected.leave(name, WHY, sheet.rows)
    return found


def _kind(place: str, rest: str) -> tuple[str, str, str] | None:
    """Kind, node or role, technology of a sheet by its place and name."""
    if place.startswith("statistics_"):
        match = re.fullmatch(r"(grpc|rpc|rest)\.txt", rest)
        return ("sums", place.removeprefix("statistics_"), match[1]) if match else None
    match = re.fullmatch(r"(client|server)/(grpc|rpc|rest)_energy\.txt", rest)
    if match:
        return "padded", match[1], match[2]
    match = re.fullmatch(r"time/(grpc|rpc|rest)\.txt", rest)
    if match:
        return "time", "client", match[1]
    match = re.fullmatch(r"(grpc|rpc|rest)_(client|server)_resources\.txt", rest)
    return ("resources", match[2], match[1]) if match else None


def _sheet(path: Path, name: str) -> Sheet | str:
    """A sheet's columns, or why they can't be read. Cells are parted by blanks of any kind."""
    try:
        if path.stat().st_size > SHEET_BYTES_MAX:
            return "sheet too long to be one"
        text = path.read_bytes().decode("utf-8", errors="replace")
    except OSError as error:
        return f"cannot be read ({error.strerror or 'damaged'})"
    lines = [line.split() for line in text.splitlines() if line.strip()]
    if len(lines) < 2:
        return "sheet without a row"
    names = _names(lines[0])
    if names is None:
        return "sheet whose header names no languages"
    rows = [line for line in lines[1:] if len(line) == len(names)]
    if not rows:
        return "sheet whose rows do not fit its header"
    columns = {column: tuple(_cell(row[at]) for row in rows) for at, column in enumerate(names)}
    return Sheet(name, columns, len(rows))


def _names(header: list[str]) -> list[str] | None:
    """Columns by our names: LANGUAGE, or METRIC.LANGUAGE; None for another header.

    The sheets of resources have 7 columns for each of three metrics; ARM's write "0" for the
    name of the language that was not run there, so a name may be known by its place only.
    """
    if len(header) == len(LANGUAGES):
        named = [_SHORT.get(cell.lower().split("_")[0]) for cell in header]
        return [str(name) for name in named] if None not in named else None
    if len(header) != 3 * len(LANGUAGES):
        return None
    order = ("csharp", "go", "java", "javascript", "php", "python", "ruby")
    names = []
    for at, cell in enumerate(header):
        metric, language = _METRIC_ORDER[at // len(order)], order[at % len(order)]
        short, _, told = cell.lower().partition("_")
        if cell != "0" and (_SHORT.get(short) != language or told != metric):
            return None
        names.append(f"{METRICS[metric]}.{language}")
    return names


def _cell(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
