"""Prove security with planted holes: each hole must be reported in every control run `proof`.

A hole is a change of one text in a copy of a middleware's folder. Each copy is measured in a
campaign of its own, over an emulated link between two namespaces. The folders without a hole have
an open and a secured treatment: the secured one must be proved in every run, and the payload must
be seen on the link in every run of the open one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.rigs.planted_links import toml
from wattwire.catalog import Catalog
from wattwire.run.proof.result import DELIVERED, FILL, RECEIVED
from wattwire.store import Campaign

REPEATS = 20
COLUMNS = RECEIVED, DELIVERED, FILL
RIG: dict[str, Any] = {
    "hosts": {"near": {"kind": "netns"}, "far": {"kind": "netns"}},
    "networks": {"link": {"link": "no-delay", "near": ["near"]}},
    "placements": {"apart": {"sender": "near", "receiver": "far", "service": "far"}},
}
STUDY = """
title = "Planted holes"
[factors]
"settings.security" = {levels}
[fixed]
cell = "{cell}"
pattern = "topic"
payload_bytes = 256
rate_hz = 50
network = "link"
placement = "apart"
[plan]
blocks = 1
proof_runs = {repeats}
controls = false
duration_s = 1
warmup_s = 0.0
baseline_s = 0.1
quiet_wait_s = 0.0
"""


class Hole(NamedTuple):
    """A hole in a middleware: changes (file of its folder, text, what replaces the text).

    `columns` of a run must report it. Those that are 0 in an open run, too, are not among them.
    """

    cell: str
    name: str
    columns: tuple[str, ...]
    changes: tuple[tuple[str, str, str], ...]


REFUSING = "require_certificate true\n"
TLS_OF_BROKER = f"""cafile {{tls.authority}}
certfile {{tls.certificate}}
keyfile {{tls.key}}
{REFUSING}"""
UNCHECKED, PLAIN = "authority not checked, anonymous allowed", "no encryption"
"""With UNCHECKED, the side that accepts connections asks for no certificate. The libraries have no
option to accept certificates of any authority and to require one. In DDS, the governance allows
unauthenticated participants, and protects no topic.
"""
ANONYMOUS = "<allow_unauthenticated_participants"
RULES_OF_TOPICS = (
    "discovery_protection", "liveliness_protection", "read_access_control", "write_access_control",
)  # fmt: skip
UNPROTECTED_DATA = tuple(
    ("middleware.toml", f"<{kind}_protection_kind>ENCRYPT<", f"<{kind}_protection_kind>NONE<")
    for kind in ("metadata", "data")
)
HOLES = (
    Hole("mqtt/python", UNCHECKED, (RECEIVED, DELIVERED), (("middleware.toml", REFUSING, ""),)),
    Hole("mqtt/python", PLAIN, COLUMNS, (
        ("middleware.toml", TLS_OF_BROKER, ""),
        ("python/connection.py", 'kit.setting("security") == "on"', "False"),
    )),
    Hole("zenoh/python", UNCHECKED, (DELIVERED,), (
        ("python/configuration.py", 'table["enable_mtls"] = True', 'table["enable_mtls"] = False'),
    )),
    Hole("cyclonedds/cpp", UNCHECKED, COLUMNS, (
        ("middleware.toml", f"{ANONYMOUS}>false<", f"{ANONYMOUS}>true<"),
        ("middleware.toml", "<rtps_protection_kind>ENCRYPT<", "<rtps_protection_kind>NONE<"),
        *((("middleware.toml", f"<enable_{name}>true<", f"<enable_{name}>false<"))
          for name in RULES_OF_TOPICS),
        *UNPROTECTED_DATA,
    )),
    Hole("cyclonedds/cpp", PLAIN, (FILL,), (
        ("middleware.toml", "<rtps_protection_kind>ENCRYPT<", "<rtps_protection_kind>NONE<"),
        *UNPROTECTED_DATA,
    )),
    Hole("zenoh/python", PLAIN, (DELIVERED, FILL), (
        ("python/configuration.py", 'bool(kit.setting("security") == "on")', "False"),
    )),
)  # fmt: skip


class Counts(NamedTuple):
    """Runs of the kind `proof`: of the secured and the open treatment."""

    secured: list[dict[str, Any]]
    opened: list[dict[str, Any]]


def measure(cell: str, repeats: int, hole: Hole | None, folder: Path) -> Counts:
    """Measure a campaign of a cell with a hole, or without any; return its rows `proof`."""
    folder.mkdir()
    environment = dict(os.environ)
    if hole is not None:
        plant(hole, folder / "root")
        known = filter(None, [str(folder / "root"), environment.get("WATTWIRE_PATH")])
        environment["WATTWIRE_PATH"] = os.pathsep.join(known)
    levels = '["on"]' if hole else '["off", "on"]'
    study, rig, campaign = folder / "study.toml", folder / "rig.toml", folder / "campaign"
    study.write_text(STUDY.format(cell=cell, repeats=repeats, levels=levels))
    rig.write_text(toml(RIG))
    subprocess.run(
        [sys.executable, "-m", "wattwire", "run", str(study), "--rig", str(rig), "--campaign",
         str(campaign), "--look", "--yes", "--no-report", "--plain"],
        check=True, capture_output=True, env=environment,
    )  # fmt: skip
    stored = Campaign(campaign)
    try:
        rows = [row for row in stored.rows() if row.get("control") == "proof"]
    finally:
        stored.close()
    rows = last_attempts(row for row in rows if row.get(RECEIVED) is not None)
    level = "factor.settings.security"
    return Counts(
        [row for row in rows if row.get(level, "on") == "on"],
        [row for row in rows if row.get(level) == "off"],
    )


def last_attempts(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the row of the last attempt of each run, because a busy machine repeats some."""
    last = {row["run"]: row for row in sorted(rows, key=lambda row: int(row["attempt"]))}
    return list(last.values())


def plant(hole: Hole, root: Path) -> None:
    """Copy the middleware of a hole to a root of its own, with the hole."""
    source = Catalog().cell(hole.cell).middleware.folder
    copy = root / "middleware" / source.name
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__", "tests", "target"))
    for file, find, replacement in hole.changes:
        path = copy / file
        text = path.read_text(encoding="utf-8")
        if text.count(find) != 1:
            found = text.count(find)
            raise ValueError(f"{path}: found {find!r} {found} times, so no hole can be planted")
        path.write_text(text.replace(find, replacement), encoding="utf-8")


def is_reported(row: dict[str, Any]) -> bool:
    """Return whether a run reports a hole, as the page does: from messages and frames alone."""
    return any(row.get(name) for name in COLUMNS)


def is_found(row: dict[str, Any], hole: Hole) -> bool:
    """Return whether all columns that must report a hole do so."""
    return all(row.get(name) for name in hole.columns)


def report(repeats: int, patterns: Sequence[str] = ("*",)) -> None:
    """Print a row for each cell without a hole, and for each planted hole."""
    print("\n## Security, proved with and without planted holes\n")
    print("| cell | hole | runs | reported | expected | verdict |\n|---|---|---|---|---|---|")
    for cell in dict.fromkeys(hole.cell for hole in HOLES):
        if not any(Path(cell).match(pattern) for pattern in patterns):
            continue
        with tempfile.TemporaryDirectory(prefix="wattwire-bench-") as name:
            sound = measure(cell, repeats, None, Path(name, "sound"))
            _print(cell, "none, secured", [is_reported(row) for row in sound.secured], repeats, 0)
            seen = [bool(row.get(FILL)) for row in sound.opened]
            _print(cell, "none, open", seen, repeats, repeats)
            for number, hole in enumerate(each for each in HOLES if each.cell == cell):
                holed = measure(cell, repeats, hole, Path(name, str(number)))
                found = [is_found(row, hole) for row in holed.secured]
                _print(cell, hole.name, found, repeats, repeats)


def _print(cell: str, hole: str, reports: Sequence[bool], repeats: int, expected: int) -> None:
    reported, runs = sum(reports), len(reports)
    verdict = "passed" if reported == expected and (runs == repeats or expected) else "failed"
    print(
        f"| {cell} | {hole} | {runs} | {reported} of {repeats} | {expected} | {verdict} |",
        flush=True,
    )
