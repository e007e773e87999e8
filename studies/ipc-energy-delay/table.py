"""Read a table with a row per run that others made from the authors' files."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from pathlib import Path

from .observed import IPCS, LANGUAGES, NODES, PLATFORMS, UNMETERED, Collected, Value, stamp

NEEDED = frozenset(
    "source platform measured_node ipc language run samples energy_raw_j min_w max_w "
    "time_client_s user_client_s sys_client_s time_server_s user_server_s sys_server_s mrss_kb "
    "mpf vcs elapsed_s exit_status".split()
)
RESOURCES = {
    "mrss_kb": "memory_max_kib", "mpf": "faults_minor", "vcs": "switches_voluntary",
    "elapsed_s": "elapsed_s", "exit_status": "exit_status",
}  # fmt: skip
ENERGY = {
    "energy_raw_j": "energy_raw_j", "samples": "energy_samples", "min_w": "energy_sample_min_w",
    "max_w": "energy_sample_max_w",
}  # fmt: skip


def find(source: Path) -> Path | None:
    """The table: `source` itself, or the first file in it with such a header; None without one."""
    if source.is_file():
        return source if _is_table(source) else None
    return next((file for file in sorted(source.glob("*.csv")) if _is_table(file)), None)


def _is_table(path: Path) -> bool:
    try:
        with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
            return set(next(csv.reader(file), [])) >= NEEDED
    except (OSError, csv.Error):
        return False


def read(path: Path, collected: Collected) -> None:
    """Read a table's rows into `collected`; what files gave already stays as it is."""
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        reader = csv.DictReader(_without_zeros(file), strict=False)
        try:
            for row in reader:
                why = _row(path.name, reader.line_num, row, collected)
                if why:
                    collected.leave(f"{path.name}, line {reader.line_num}", why, 1)
        except csv.Error as error:
            at = f"{path.name}, line {reader.line_num} and all below"
            collected.leave(at, f"no table of commas from here on ({error})", 1)


def _without_zeros(lines):  # type: ignore[no-untyped-def]
    """The lines without the byte 0, which the csv module refuses on some versions."""
    return (line.replace("\0", "\ufffd") for line in lines)


def _row(name: str, line: int, row: Mapping[str, str | None], collected: Collected) -> str:
    """Take one row in. Returns why nothing comes from it, or nothing."""
    began = stamp(row["run"] or "")
    platform, node, ipc = row["platform"], row["measured_node"], row["ipc"]
    known = platform in PLATFORMS and node in NODES and ipc in IPCS
    if began is None or not known or row["language"] not in LANGUAGES:
        return "row that names no run of the study"
    if row["source"] not in ("energy", "resources"):
        return "row that is neither of energy nor of resources"
    metered = str(node) if row["source"] == "energy" else UNMETERED
    key = (str(platform), metered, began, str(ipc), str(row["language"]))
    values = _energy(row, str(node)) if row["source"] == "energy" else _resources(row, str(node))
    if not values:
        return "row without a number"
    run = collected.at(key, str(row["run"]))
    for column, (number, how) in values.items():
        run.values.setdefault(column, Value(number, name, 1, 0, f"{how} of the run's row", line))
    return ""


def _energy(row: Mapping[str, str | None], node: str) -> dict[str, tuple[float, str]]:
    found = {}
    for column, stem in ENERGY.items():
        number = _number(row[column])
        # Without a sample nothing was measured, and 0 is not a count that anything rests on.
        if number is not None and not (column == "samples" and number == 0):
            found[f"{stem}.{node}"] = (number, column)
    for role in NODES:
        elapsed = _number(row[f"time_{role}_s"])
        if elapsed is not None:
            found[f"elapsed_s.{role}"] = (elapsed, f"time_{role}_s")
        parts = [_number(row[f"{part}_{role}_s"]) for part in ("user", "sys")]
        if parts[0] is not None and parts[1] is not None:
            told = f"user_{role}_s + sys_{role}_s"
            found[f"cpu_s.{role}"] = (round(parts[0] + parts[1], 6), told)
    return found


def _resources(row: Mapping[str, str | None], node: str) -> dict[str, tuple[float, str]]:
    found = {}
    for column, stem in RESOURCES.items():
        number = _number(row[column])
        if number is not None:
            found[f"{stem}.{node}"] = (number, column)
    return found


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
